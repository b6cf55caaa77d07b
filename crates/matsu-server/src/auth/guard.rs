//! The guards of the two doors. What passes one carries a [`Caller`]; what does not is refused before any handler.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use matsu_core::error_code::ErrorCode;
use matsu_core::principal::Principal;
use matsu_runtime::InstanceId;

use super::{Caller, Credential, PresentedSession, hash, page_session};
use crate::app::App;
use crate::page;
use crate::peer::Peer;
use crate::problem::Problem;

/// The TCP door: the right Host, no foreign Origin, a live token.
pub async fn tcp(State(app): State<App>, mut request: Request, next: Next) -> Response {
    if let Err(problem) = app.addresses().check(request.uri(), request.headers()) {
        app.refusals().note(request.uri().path(), problem.detail());
        return problem.into_response();
    }
    if is_open(request.method(), request.uri().path()) {
        return next.run(request).await;
    }
    let found = if page_session::is_attempted(request.headers()) {
        let signed_in = page_session::caller(&app, request.method(), request.headers()).await;
        signed_in.map(|(caller, credential)| (caller, Presented::Token(credential)))
    } else {
        bearer(&app, request.headers()).await
    };
    match found {
        Ok((_, Presented::Session(_))) if !is_mcp(request.uri().path()) => {
            Problem::new(ErrorCode::Forbidden, "a session works over MCP only").into_response()
        }
        Ok((caller, presented)) => {
            request.extensions_mut().insert(caller);
            match presented {
                Presented::Token(credential) => drop(request.extensions_mut().insert(credential)),
                Presented::Session(session) => drop(request.extensions_mut().insert(session)),
            }
            next.run(request).await
        }
        Err(problem) => {
            app.refusals().note(request.uri().path(), problem.detail());
            problem.into_response()
        }
    }
}

/// The Unix socket: whoever may open the file is the store's own user, except for the processes of runs, which have
/// their tools and nothing else.
pub async fn socket(mut request: Request, next: Next) -> Response {
    let run = request.extensions().get::<Peer>().and_then(|peer| peer.run.as_ref());
    if run.is_some_and(|run| !may_ask(&run.grants, request.uri().path())) {
        return Problem::new(ErrorCode::Forbidden, "a run has its tools and nothing else").into_response();
    }
    let caller = Caller { principal: Principal::local_user(), instance: InstanceId::from_text("socket") };
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// What a supervisor asks without a key, and what a page needs until it has one. Nothing of the work shows there.
fn is_open(method: &Method, path: &str) -> bool {
    match *method {
        Method::GET | Method::HEAD => matches!(path, "/healthz" | "/readyz") || page::is_page(path),
        Method::POST => path == "/api/v1/login",
        _ => false,
    }
}

/// What a process of a run may ask over the socket: that somebody is there, and its tools; and where its definition
/// grants it the models, chats with them.
fn may_ask(grants: &str, path: &str) -> bool {
    let has_models = grants.split(',').any(|grant| grant.trim() == "models");
    let is_below = |place: &str| path == place || path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'));
    matches!(path, "/healthz" | "/readyz" | "/control/info")
        || path.starts_with("/api/v1/tools")
        || (has_models && (path == "/api/v1/models" || is_below("/api/v1/chats")))
}

fn is_mcp(path: &str) -> bool {
    path == "/mcp" || path.starts_with("/mcp/")
}

/// What let a caller in.
enum Presented {
    Token(Credential),
    Session(PresentedSession),
}

/// A named token's principal, or the session whose token it is.
async fn bearer(app: &App, headers: &HeaderMap) -> Result<(Caller, Presented), Problem> {
    let refused = |message| Problem::new(ErrorCode::Unauthorized, message);
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let secret = header
        .and_then(|text| text.split_once(' '))
        // Names of schemes have no case.
        .and_then(|(scheme, secret)| scheme.eq_ignore_ascii_case("Bearer").then(|| secret.trim()))
        .filter(|secret| !secret.starts_with(page_session::PREFIX))
        .ok_or_else(|| refused("no token was presented; pass one as `Authorization: Bearer …`"))?;
    let token = app.tokens().find(secret).await.map_err(|error| Problem::from_store(&error))?;
    if let Some(token) = token {
        let instance = InstanceId::from_text(token.id.as_str());
        let credential = Credential { token: token.id, hash: hash(secret) };
        return Ok((Caller { principal: token.principal, instance }, Presented::Token(credential)));
    }
    let session = app.runtime().session_by_token(secret).await.map_err(|error| Problem::from_store(&error))?;
    let session = session.ok_or_else(|| refused("the token is unknown or was revoked; see `matsu token list`"))?;
    let caller = Caller { principal: session.principal(), instance: InstanceId::from_text(session.id.as_str()) };
    Ok((caller, Presented::Session(PresentedSession { token: secret.to_owned(), grants: session.grants })))
}

#[cfg(test)]
mod tests {
    use super::may_ask;

    #[test]
    fn a_run_asks_for_its_tools_and_for_models_where_they_are_granted() {
        for (grants, path, allowed) in [
            ("core", "/api/v1/tools/get_status", true),
            ("core", "/api/v1/chats", false),
            ("research, models", "/api/v1/chats", true),
            ("models", "/api/v1/chats/chat_1/stream", true),
            ("models", "/api/v1/models", true),
            ("models", "/api/v1/chatsx", false),
            ("models", "/api/v1/tasks", false),
            ("models", "/control/shutdown", false),
        ] {
            assert_eq!(may_ask(grants, path), allowed, "{grants} {path}");
        }
    }
}
