//! MCP on a byte stream: the daemon's socket after its preamble, or a process's own stdin and stdout.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use matsu_core::id::NodeId;
use matsu_runtime::agents::RunSeat;
use matsu_runtime::dispatch::presets::Offer;
use matsu_runtime::tool::Workplace;
use rmcp::ServiceExt;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::handler::local_caller;
use super::lines::Lines;
use super::{Connection, McpHandler};
use crate::app::App;

/// A preamble is one short line; whoever sends more is no relay of ours.
const PREAMBLE_BYTES_MAX: u64 = 64 * 1024;

/// What a relay says first. Not to be printed: it may carry a secret.
#[derive(Serialize, Deserialize)]
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
    /// Whose presence the client is, where an agent was started by somebody of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
}

/// What the daemon answers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Greeting {
    pub version: String,
    /// Set if the preamble was refused; the connection ends then.
    pub error: Option<String>,
}

/// Speaks with a relay: preamble, greeting, then MCP until one side ends.
///
/// # Errors
/// A stream that breaks before the greeting.
pub async fn converse<R, W>(app: App, run: Option<RunSeat>, reader: R, mut writer: W) -> io::Result<()>
where
    R: AsyncBufRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let mut line = String::new();
    let mut limited = reader.take(PREAMBLE_BYTES_MAX);
    let read = app.runtime().clock().within(app.bounds().request, limited.read_line(&mut line)).await;
    read.ok_or(io::ErrorKind::TimedOut)??;
    let reader = limited.into_inner();
    let connection = match serde_json::from_str::<Preamble>(&line) {
        Ok(preamble) => connection(&app, preamble, run).await,
        Err(error) => Err(format!("the preamble cannot be read: {error}")),
    };
    let error = connection.as_ref().err().cloned();
    let greeting = Greeting { version: app.version().to_owned(), error };
    writer.write_all(format!("{}\n", serde_json::to_string(&greeting)?).as_bytes()).await?;
    writer.flush().await?;
    if let Ok(connection) = connection {
        serve(app, connection, reader, writer).await;
    }
    Ok(())
}

/// Whoever opens the socket is the store's own user, unless a session token says that it is less. A process of a run
/// is the run's session, whatever it presents.
async fn connection(app: &App, preamble: Preamble, run: Option<RunSeat>) -> Result<Connection, String> {
    let mut caller = local_caller(&preamble.instance);
    let mut offer = Offer::parse(&preamble.tools)?;
    let of_run = run.as_ref().map(|run| Arc::clone(run.token.reveal()));
    let session_token = of_run.or(preamble.session_token.map(Arc::from));
    if let Some(token) = &session_token {
        let session = app.runtime().session_by_token(token).await.map_err(|error| error.to_string())?;
        let session = session.ok_or("the session token is not known")?;
        caller.principal = session.principal();
        if let Some(grants) = &session.grants {
            offer = Offer::granted(grants);
        }
    }
    Ok(Connection {
        caller: Some(caller),
        offer,
        hold_max: preamble.hold.map(Duration::from_secs),
        workplace: Arc::new(Workplace { roots: preamble.roots, cwd: preamble.cwd }),
        session_token,
        // Not the relay's own name: one relay may reach the daemon, or its successor, over several connections, and
        // what went out over one that broke may never have arrived.
        id: format!("conn/{}", NodeId::mint(app.runtime().clock().now())),
        run,
    })
}

/// Speaks MCP in this very process, for `--no-daemon`.
///
/// # Errors
/// A toolset that does not exist.
pub async fn serve_here<R, W>(app: App, preamble: Preamble, reader: R, writer: W) -> Result<(), String>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let connection = connection(&app, preamble, None).await?;
    serve(app, connection, reader, writer).await;
    Ok(())
}

async fn serve<R, W>(app: App, connection: Connection, reader: R, writer: W)
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let instance = connection.caller.as_ref().map(|caller| caller.instance.clone());
    let shutdown = app.shutdown().clone();
    let handler = McpHandler::new(app.clone(), connection);
    match handler.serve_with_ct(Lines::new(reader, writer), shutdown.child_token()).await {
        Ok(running) => {
            let _ = running.waiting().await;
        }
        Err(error) => tracing::debug!(%error, "a client left before it said who it is"),
    }
    if let Some(instance) = instance {
        app.runtime().cursors().forget(&instance);
    }
}
