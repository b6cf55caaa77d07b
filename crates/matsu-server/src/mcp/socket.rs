//! MCP on a byte stream: the daemon's socket after its preamble, or a process's own stdin and stdout.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use matsu_core::access::{Rights, Role};
use matsu_core::id::NodeId;
use matsu_core::principal::Principal;
use matsu_runtime::access::Access;
use matsu_runtime::chats::sessions::Sessions;
use matsu_runtime::dispatch::presets::Offer;
use matsu_runtime::tool::Workplace;
use rmcp::ServiceExt;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::direct_calls::DirectCalls;
use super::lines::Lines;
use super::{Connection, McpHandler};
use crate::app::App;
use crate::auth::open_calls::{Kind, OpenCall};
use crate::auth::{Caller, hash};
use crate::guards::requests::{Presented, identify};
use crate::peer::Peer;

/// What a relay sends first. Not to be printed: it may carry a secret.
#[derive(Clone, Serialize, Deserialize)]
pub struct Preamble {
    pub version: String,
    /// Tells relays of the same user apart.
    pub instance: String,
    /// As given with `--tools`.
    pub tools: String,
    /// Seconds this client can be held.
    pub hold: Option<u64>,
    /// Folders that the client's work may lie in; empty: nothing was said about it.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// Where the client was started.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The folder of the project that the client works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The session that the client works in, where Matsu started the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
    /// A user's token. A relay of an older version has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// It says when its client has taken a reply. One of an older version does not.
    #[serde(default)]
    pub acknowledges: bool,
}

/// What the daemon answers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Greeting {
    pub version: String,
    /// Set if the preamble was refused; the connection ends then.
    pub error: Option<String>,
    /// It is refused for now only: the supervisor of a run finds no daemon at the moment.
    #[serde(default)]
    pub retryable: bool,
}

/// Serves a relay: preamble, greeting, then MCP until one side ends.
///
/// # Errors
/// A stream that breaks before the greeting.
pub async fn converse<R, W>(app: App, peer: Peer, preamble: &str, reader: R, mut writer: W) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let connection = match serde_json::from_str::<Preamble>(preamble) {
        Ok(preamble) => connection(&app, preamble, peer).await,
        Err(error) => Err(format!("the preamble cannot be read: {error}")),
    };
    let error = connection.as_ref().err().cloned();
    let greeting = Greeting { version: app.version().to_owned(), error, retryable: false };
    writer.write_all(format!("{}\n", serde_json::to_string(&greeting)?).as_bytes()).await?;
    writer.flush().await?;
    if let Ok(connection) = connection {
        serve(app, connection, reader, writer, AtEnd::HangUp).await;
    }
    Ok(())
}

/// The client at the other end: a session or a user, by the token it presents. Without one it sees the tools and can
/// call none.
async fn connection(app: &App, preamble: Preamble, peer: Peer) -> Result<Connection, String> {
    let mut offer = Offer::parse(&preamble.tools)?;
    let named = Workplace { roots: preamble.roots, cwd: preamble.cwd, project: preamble.project };
    let (mut caller, mut workplace) = (Caller::local_owner(&preamble.instance), Workplace::default());
    let (mut session_token, mut refusal, mut call) = (None, None, None);
    match (preamble.session_token, preamble.token) {
        (Some(token), _) => {
            peer.check_runs_token(&token)?;
            let session =
                Sessions::of(app.runtime()).session_by_token(&token).await.map_err(|error| error.to_string())?;
            let session = session.ok_or("unknown session token; it is valid until its run or session ends")?;
            caller.principal = session.principal();
            caller.rights =
                Arc::new(Access::of(app.runtime()).rights_of(&session.owner).await.map_err(|error| error.to_string())?);
            if let Some(grants) = &session.grants {
                offer = Offer::granted(grants);
            }
            call = Some(app.open_calls().enter(&hash(&token), Kind::Session));
            session_token = Some(Arc::from(token));
        }
        (None, Some(token)) => {
            peer.check_users_token()?;
            let (found, presented) = identify(app, &token).await.map_err(|problem| problem.detail().to_owned())?;
            if matches!(presented, Presented::Session(_)) {
                return Err("a session token was sent as a user token; pass it in MATSU_SESSION_TOKEN".to_owned());
            }
            call = Some(presented.open(app));
            caller = Caller { instance: caller.instance, ..found };
            workplace = named;
        }
        (None, None) => {
            peer.check_users_token()?;
            refusal = Some(RESTART);
            caller = Caller { principal: Principal::user(""), rights: Arc::new(nothing()), ..caller };
        }
    }
    offer = offer.within(&caller.rights);
    Ok(Connection {
        caller: Some(caller),
        offer,
        hold_max: preamble.hold.map(Duration::from_secs),
        workplace: Arc::new(workplace),
        session_token,
        // Not the relay's own name: one relay may reach the daemon, or its successor, over several connections, and
        // what went out over one that broke may never have arrived.
        id: format!("conn/{}", NodeId::mint(app.runtime().clock().now())).into(),
        run: peer.socket_of,
        refusal,
        call: call.map(Arc::new),
        acknowledges: preamble.acknowledges,
        ended: CancellationToken::new(),
    })
}

/// What a relay without a token may do. It still sees which tools there are.
fn nothing() -> Rights {
    Rights::new(Role::Member, Vec::new(), None)
}

const RESTART: &str = "restart Matsu in your client: the relay that the client started is of an older version and \
                       presents no token, so its calls are refused. Restarting the client, or its server matsu, starts \
                       the installed version";

/// Serves MCP in this very process, for `--no-daemon`.
///
/// # Errors
/// A toolset that does not exist.
pub async fn serve_here<R, W>(app: App, preamble: Preamble, reader: R, writer: W) -> Result<(), String>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let named = preamble.clone();
    let workplace = Workplace { roots: named.roots, cwd: named.cwd, project: named.project };
    let mut connection = connection(&app, preamble, Peer::default()).await?;
    // There is no relay in between that could say so.
    connection.acknowledges = false;
    // This process is its user's own and has opened the store itself.
    if connection.refusal.take().is_some() {
        let instance = connection.caller.take().map(|caller| caller.instance);
        let owner = Caller::local_owner("here");
        connection.caller = Some(Caller { instance: instance.unwrap_or(owner.instance.clone()), ..owner });
        connection.workplace = Arc::new(workplace);
    }
    serve(app, connection, reader, writer, AtEnd::Answer).await;
    Ok(())
}

/// How long a client that has closed its output is still answered.
const LAST_ANSWERS_MAX: Duration = Duration::from_millis(500);

/// What open calls get when this process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtEnd {
    /// An error: nothing else would answer.
    Answer,
    /// Nothing: the relay sends them again to the next daemon.
    HangUp,
}

async fn serve<R, W>(app: App, mut connection: Connection, reader: R, writer: W, at_end: AtEnd)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let instance = connection.caller.as_ref().map(|caller| caller.instance.clone());
    let ends = if at_end == AtEnd::Answer { app.shutdown().child_token() } else { CancellationToken::new() };
    connection.ended = ends.clone();
    let call = connection.call.clone();
    let handler = McpHandler::new(app.clone(), connection);
    let lines = Lines::new(reader, writer).with_calls(DirectCalls::new(handler.clone(), ends.clone()));
    let (hanging_up, left) = (lines.hanging_up(), lines.ended());
    let begun = tokio::select! {
        begun = handler.serve_with_ct(lines, ends.clone()) => Some(begun),
        // Also before the client has named itself.
        () = over(call.as_deref()) => None,
        () = app.shutdown().cancelled() => None,
    };
    match begun {
        None => {}
        Some(Ok(running)) => {
            let waiting = running.waiting();
            tokio::pin!(waiting);
            tokio::select! {
                // Nothing can be answered any more, so calls that still wait end too.
                _ = &mut waiting => ends.cancel(),
                () = over(call.as_deref()) => {
                    ends.cancel();
                    let _ = waiting.await;
                }
                () = left.cancelled() => {
                    // Its waits end at once, so that a live client gets what comes. A process that answers on its own
                    // stdout may still be read after its stdin has ended.
                    if at_end == AtEnd::Answer {
                        let _ = app.runtime().clock().within(LAST_ANSWERS_MAX, &mut waiting).await;
                    }
                    ends.cancel();
                }
                () = app.shutdown().cancelled(), if at_end == AtEnd::HangUp => {
                    hanging_up.await;
                    ends.cancel();
                    let _ = waiting.await;
                }
            }
        }
        Some(Err(error)) => tracing::debug!(%error, "client disconnected before its handshake"),
    }
    if let Some(instance) = instance {
        app.runtime().cursors().forget(&instance);
    }
}

/// Returns when the token of a connection holds no longer.
async fn over(call: Option<&OpenCall>) {
    match call {
        Some(call) => call.over().cancelled().await,
        None => std::future::pending().await,
    }
}
