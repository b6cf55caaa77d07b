//! The guard of the Unix socket. That a process can open the file proves nothing: a token is required here as over TCP.
//! On the socket of a run only that run's token is taken, and it has its tools and, where granted, its own chats.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::ChatId;
use matsu_runtime::agents::{Agents, RunHandle};
use matsu_runtime::chats::sessions::Sessions;
use matsu_runtime::models::chat;

use super::requests::{Presented, bearer, until_over};
use crate::app::App;
use crate::auth::Caller;
use crate::peer::{Ancestry, Peer};
use crate::problem::Problem;

/// A process that opened the store itself: the local owner, as far as the operating system lets it read the files.
pub async fn own_process(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Caller::local_owner("here"));
    next.run(request).await
}

pub async fn socket(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let peer = request.extensions().get::<Peer>().cloned().unwrap_or_default();
    if peer.socket_of.is_none() && is_open(&method, &path) {
        return next.run(request).await;
    }
    match admit(&app, peer, &method, &path, request.headers()).await {
        Ok((caller, presented, peer)) => {
            let call = presented.open(&app);
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(peer);
            if let Presented::Token(credential) = presented {
                request.extensions_mut().insert(credential);
            }
            until_over(request, next, call).await
        }
        Err(problem) => {
            app.refusals().note(&path, problem.detail());
            problem.into_response()
        }
    }
}

/// What is answered without a token: that a daemon is there, and which. An older relay asks for it too, and needs the
/// answer to tell its client to start it anew.
fn is_open(method: &Method, path: &str) -> bool {
    *method == Method::GET && matches!(path, "/healthz" | "/readyz" | "/control/info")
}

async fn admit(
    app: &App,
    peer: Peer,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<(Caller, Presented, Peer), Problem> {
    let forbidden = |message: &str| Problem::new(ErrorCode::Forbidden, message);
    let (caller, presented) = bearer(app, headers).await?;
    let Presented::Session(session) = &presented else {
        peer.check_users_token().map_err(forbidden)?;
        return Ok((caller, presented, peer));
    };
    peer.check_runs_token(&session.token).map_err(forbidden)?;
    let Some(run) = own_run(app, &peer, &session.token) else {
        return Err(forbidden("a session's token works over MCP only; inside a run, use the run's own socket"));
    };
    check_run(app, &run, method, path).await?;
    // What a run opens belongs to whom it works for; what its tools do is its session's.
    let session = Sessions::of(app.runtime())
        .session_by_token(&session.token)
        .await
        .map_err(|error| Problem::from_store(&error))?;
    let owner = session.map_or(caller.principal.clone(), |session| session.owner);
    Ok((Caller { principal: owner, ..caller }, presented, Peer { run: Some(run), ..peer }))
}

/// The run whose socket it is; on the main socket the run whose token and whose process it is, both.
fn own_run(app: &App, peer: &Peer, token: &str) -> Option<RunHandle> {
    if peer.socket_of.is_some() {
        return peer.socket_of.clone();
    }
    let Ancestry::OfRun(Some(run)) = &peer.ancestry else { return None };
    Agents::of(app.runtime()).live_runs().by_id(run).filter(|run| run.token.matches(token))
}

/// What a run may ask for: that a daemon is there, its tools, and where it was granted models, the chats it opened.
async fn check_run(app: &App, run: &RunHandle, method: &Method, path: &str) -> Result<(), Problem> {
    let refused = || {
        let message =
            format!("{method} {path} is refused: a run may only call tools and, if granted models, use its chats");
        Problem::new(ErrorCode::Forbidden, message)
    };
    let has_models = run.grants.split(',').any(|grant| grant.trim() == "models");
    match asked(method, path) {
        Asked::Tools => Ok(()),
        Asked::Models if has_models => Ok(()),
        Asked::Chat(id) if has_models => {
            if is_own_chat(app, run, &id).await? {
                return Ok(());
            }
            let message = format!("chat {id} was not found among those that this run opened");
            Err(Problem::new(ErrorCode::ResourceNotFound, message))
        }
        Asked::Models | Asked::Chat(_) | Asked::Other => Err(refused()),
    }
}

enum Asked {
    Tools,
    Models,
    /// Something of one chat, but not to approve of calls in it: that is a person's.
    Chat(ChatId),
    Other,
}

fn asked(method: &Method, path: &str) -> Asked {
    if matches!(path, "/healthz" | "/readyz" | "/control/info") {
        return Asked::Tools;
    }
    let Some(path) = path.strip_prefix("/api/v1/") else { return Asked::Other };
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["tools"] | ["tools", _] => Asked::Tools,
        ["models"] => Asked::Models,
        ["chats"] if *method == Method::POST => Asked::Models,
        ["chats", _, "approvals"] => Asked::Other,
        ["chats", id] | ["chats", id, _] => Asked::Chat(ChatId::from_text(*id)),
        _ => Asked::Other,
    }
}

/// A chat that this run opened, or that an earlier run of the same agent opened and that this one was started to go on
/// with.
async fn is_own_chat(app: &App, run: &RunHandle, id: &ChatId) -> Result<bool, Problem> {
    chat::is_own_chat(app.runtime(), run, id).await.map_err(|error| Problem::from_store(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_asks_for_its_tools_and_its_own_chats_and_approves_of_nothing() {
        let word = |method: Method, path: &str| match asked(&method, path) {
            Asked::Tools => "tools",
            Asked::Models => "models",
            Asked::Chat(_) => "chat",
            Asked::Other => "nothing",
        };
        for (method, path, expected) in [
            (Method::POST, "/api/v1/tools/get_status", "tools"),
            (Method::GET, "/api/v1/tools", "tools"),
            (Method::GET, "/control/info", "tools"),
            (Method::GET, "/api/v1/models", "models"),
            (Method::POST, "/api/v1/chats", "models"),
            (Method::GET, "/api/v1/chats", "nothing"),
            (Method::GET, "/api/v1/chats/chat_1/stream", "chat"),
            (Method::PATCH, "/api/v1/chats/chat_1", "chat"),
            (Method::POST, "/api/v1/chats/chat_1/approvals", "nothing"),
            (Method::GET, "/api/v1/chatsx", "nothing"),
            (Method::GET, "/api/v1/tasks", "nothing"),
            (Method::POST, "/api/v1/tokens", "nothing"),
            (Method::POST, "/control/login-code", "nothing"),
            (Method::POST, "/control/hand-over", "nothing"),
            (Method::POST, "/control/shutdown", "nothing"),
        ] {
            assert_eq!(word(method.clone(), path), expected, "{method} {path}");
        }
    }
}
