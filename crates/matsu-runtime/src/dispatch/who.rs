//! The caller: the session that a call names, whether it is still active, and what it may do.
//!
//! The session is the first of what the transport presents (a child's own token, a bearer, the request's metadata) and
//! the `session_token` argument that every tool accepts. Where one is named, the call is made for that session only.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use matsu_core::access::{Folders, Rights};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::SessionId;
use matsu_core::ports::store::{AcknowledgeGiven, ReadStanding, SessionKey, Standing, StoreError, TouchSession};
use matsu_core::secret;
use matsu_core::session::{EndReason, Session, SessionState, Unread};

use crate::access::Access;
use crate::agents::LiveRuns;
use crate::tool::rules::SessionNeed;
use crate::tool::{ToolContext, ToolEntry, ToolError};

pub const TOKEN_ARGUMENT: &str = "session_token";
const ID_ARGUMENT: &str = "session_id";

/// The caller as the rest of the dispatch sees it.
pub struct Who {
    /// The context of the call; a session's own, if there is one.
    pub cx: ToolContext,
    /// What the session has not acknowledged.
    pub unread: Unread,
}

/// Finds the caller. Takes the token out of the arguments, whatever comes of it.
pub async fn identify(
    entry: &ToolEntry,
    cx: &ToolContext,
    arguments: &mut Map<String, Value>,
) -> Result<Who, ToolError> {
    let argument = arguments.remove(TOKEN_ARGUMENT);
    let without_session = || Who { cx: cx.clone(), unread: Unread::default() };
    if entry.rules.session == SessionNeed::Ignored {
        return Ok(without_session());
    }
    let Some(key) = key(entry, cx, argument, arguments)? else {
        return match entry.rules.session {
            SessionNeed::Optional | SessionNeed::Ignored => Ok(without_session()),
            SessionNeed::Required | SessionNeed::RequiredOrNamed => Err(missing(entry)),
        };
    };
    let standing = standing(cx, &key).await?;
    check_alive(entry, cx, &standing)?;
    let unread = read_unread(entry, cx, &standing).await?;
    touch(cx, &standing).await;
    let rights = rights(cx, &standing.session).await?;
    let run = standing.session.run_id.as_ref().and_then(|run| cx.runtime.part::<LiveRuns>().by_id(run));
    let mut cx = cx.of_session(entry, Arc::new(standing.session));
    cx.rights = Arc::new(rights);
    // A token of a run makes the call that run's, over whichever connection it came. Where it works is stored with
    // the run: what its processes say about that counts for nothing.
    if cx.session.as_ref().is_some_and(|session| session.run_id.is_some()) {
        cx.workplace = Arc::default();
        cx.run = run;
    }
    Ok(Who { cx, unread })
}

/// What a session may do: what its owner may, and no more than the connection it came over.
async fn rights(cx: &ToolContext, session: &Session) -> Result<Rights, StoreError> {
    let owner = Access::of(&cx.runtime).rights_of(&session.owner).await?;
    let is_of_transport = session.owner == cx.transport;
    let is_itself = session.principal() == cx.transport;
    let role = if is_itself { owner.role } else { owner.role.min(cx.rights.role) };
    // An owner's own connection knows its folders already; a run's are its directory.
    let folders = match (&session.run_id, is_of_transport) {
        (Some(_), _) => Folders::Only(Vec::new()),
        (None, true) => cx.rights.folders.clone(),
        (None, false) => owner.folders,
    };
    Ok(Rights { role, folders, tools: cx.rights.tools.clone().filter(|_| !is_itself) })
}

fn key(
    entry: &ToolEntry,
    cx: &ToolContext,
    argument: Option<Value>,
    arguments: &Map<String, Value>,
) -> Result<Option<SessionKey>, ToolError> {
    let token = match (&cx.session_token, argument) {
        (Some(presented), _) => Some(presented.to_string()),
        (None, None | Some(Value::Null)) => None,
        (None, Some(Value::String(token))) => Some(token),
        (None, Some(other)) => {
            let kind = if other.is_number() { "a number" } else { "not a string" };
            return Err(ToolError::param(TOKEN_ARGUMENT, "string", kind, "session_token must be a string"));
        }
    };
    if let Some(token) = token {
        return Ok(Some(SessionKey::TokenHash(secret::hash(&token))));
    }
    let named = (entry.rules.session == SessionNeed::RequiredOrNamed).then(|| arguments.get(ID_ARGUMENT)).flatten();
    Ok(named.and_then(Value::as_str).map(|id| SessionKey::Id(SessionId::from_text(id))))
}

fn missing(entry: &ToolEntry) -> ToolError {
    let message = format!("{} needs session_token; call authenticate to get one", entry.name);
    ToolError::param(TOKEN_ARGUMENT, "string", "nothing", message)
}

async fn standing(cx: &ToolContext, key: &SessionKey) -> Result<Standing, ToolError> {
    let found = cx.runtime.store().run(ReadStanding { key: key.clone(), now: cx.runtime.clock().now() }).await?;
    // One named by its id is for the principal that began it; to others it does not exist.
    let found = found.filter(|found| match key {
        SessionKey::TokenHash(_) => true,
        SessionKey::Id(_) => found.session.owner == cx.transport,
    });
    found.ok_or_else(|| {
        let message = "unknown session; call authenticate to begin one";
        ToolError { details: json!({ "action": "exit" }), ..ToolError::new(ErrorCode::SessionInvalid, message) }
    })
}

fn check_alive(entry: &ToolEntry, cx: &ToolContext, standing: &Standing) -> Result<(), ToolError> {
    let session = &standing.session;
    if session.is_live(cx.runtime.clock().now()) || entry.rules.after_end {
        return Ok(());
    }
    Err(ended(session))
}

/// What a call of a session is answered that is over.
pub fn ended(session: &Session) -> ToolError {
    let reason = match (session.state, session.end_reason) {
        (SessionState::Ended, Some(reason)) => reason,
        _ => EndReason::Expired,
    };
    let message = format!("the session has ended ({reason}); make no further calls with it");
    let details = json!({ "action": "exit", "reason": reason.as_str() });
    ToolError { details, ..ToolError::new(ErrorCode::SessionEnded, message) }
}

/// The session came back: what it was given before has arrived. A look at notifications alone does not show that.
async fn read_unread(entry: &ToolEntry, cx: &ToolContext, standing: &Standing) -> Result<Unread, StoreError> {
    if standing.unread.delivered == 0 || !entry.rules.acknowledges {
        return Ok(standing.unread);
    }
    let (id, now) = (&standing.session.id, cx.runtime.clock().now());
    cx.runtime.store().run(AcknowledgeGiven { session: id.clone(), now }).await?;
    let after = cx.runtime.store().run(ReadStanding { key: SessionKey::Id(id.clone()), now }).await?;
    Ok(after.map_or(Unread::default(), |after| after.unread))
}

/// A session lives on while it calls. Not written with every call, and not worth failing one.
pub async fn touch(cx: &ToolContext, standing: &Standing) {
    let (now, options) = (cx.runtime.clock().now(), cx.runtime.session_options());
    let is_first = !standing.session.has_called();
    if !is_first && now.since(standing.session.last_seen_at) < options.touch_every() {
        return;
    }
    let touched = cx
        .runtime
        .plain_store()
        .run(TouchSession { id: standing.session.id.clone(), now, expires_at: now.plus(options.ttl) })
        .await;
    if let Err(error) = touched {
        tracing::debug!(%error, "last call of a session could not be stored");
    }
}
