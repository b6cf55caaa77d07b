//! The guards of the two listeners. A request that passes carries a [`Caller`]; what does not is refused before any handler.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use matsu_core::error_code::ErrorCode;
use matsu_runtime::InstanceId;
use matsu_runtime::access::Access;
use matsu_runtime::chats::sessions::Sessions;

use super::page_session;
use crate::app::App;
use crate::auth::open_calls::{Kind, OpenCall, UntilOver};
use crate::auth::{Caller, Credential, Found, PresentedSession, hash};
use crate::limits::hooks::is_hook;
use crate::page;
use crate::problem::Problem;

/// The TCP listener: the right Host, no foreign Origin, a live token.
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
            let message = "a session's token works over MCP only; use it at /mcp";
            Problem::new(ErrorCode::Forbidden, message).into_response()
        }
        Ok((caller, presented)) => {
            request.extensions_mut().insert(caller);
            let call = presented.open(&app);
            match presented {
                Presented::Token(credential) => drop(request.extensions_mut().insert(credential)),
                Presented::Session(session) => drop(request.extensions_mut().insert(session)),
            }
            until_over(request, next, call).await
        }
        Err(problem) => {
            app.refusals().note(request.uri().path(), problem.detail());
            problem.into_response()
        }
    }
}

/// Answers a request for as long as what it presented holds. A call that is held longer is refused, a stream ends.
pub(super) async fn until_over(request: Request, next: Next, call: OpenCall) -> Response {
    let is_rest = request.uri().path().starts_with("/api/");
    let call = Arc::new(call);
    let response = tokio::select! {
        response = next.run(request) => response,
        () = call.over().cancelled() => {
            let message = "the token was revoked or has expired while this call was held; present another one";
            return Problem::new(ErrorCode::Unauthorized, message).into_response();
        }
    };
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return response;
    }
    let farewell = is_rest.then(|| Bytes::from_static(b"event: bye\ndata: {\"reason\":\"signed out\"}\n\n"));
    response.map(|body| Body::new(UntilOver::new(body, call, farewell)))
}

/// What a supervisor asks without a key, and what a page needs until it has one. Nothing of the work shows there.
fn is_open(method: &Method, path: &str) -> bool {
    match *method {
        Method::GET | Method::HEAD => matches!(path, "/healthz" | "/readyz") || page::is_page(path),
        // A delivery to a webhook is signed instead.
        Method::POST => path == "/api/v1/login" || is_hook(path),
        _ => false,
    }
}

fn is_mcp(path: &str) -> bool {
    path == "/mcp" || path.starts_with("/mcp/")
}

/// What a caller presented.
pub(crate) enum Presented {
    Token(Credential),
    Session(PresentedSession),
}

impl Presented {
    /// On the list of what is open until the value is dropped.
    pub fn open(&self, app: &App) -> OpenCall {
        match self {
            Self::Token(credential) => app.open_calls().enter(&credential.hash, Kind::Token),
            Self::Session(session) => app.open_calls().enter(&hash(&session.token), Kind::Session),
        }
    }
}

/// A named token's principal, or the session whose token it is.
pub(super) async fn bearer(app: &App, headers: &HeaderMap) -> Result<(Caller, Presented), Problem> {
    let refused = |message| Problem::new(ErrorCode::Unauthorized, message);
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let secret = header
        .and_then(|text| text.split_once(' '))
        // Names of schemes have no case.
        .and_then(|(scheme, secret)| scheme.eq_ignore_ascii_case("Bearer").then(|| secret.trim()))
        .filter(|secret| !secret.starts_with(page_session::PREFIX))
        .ok_or_else(|| refused("no token was presented; pass one as `Authorization: Bearer …`"))?;
    identify(app, secret).await
}

/// Whose secret it is.
pub(crate) async fn identify(app: &App, secret: &str) -> Result<(Caller, Presented), Problem> {
    let refused = |message: String| Problem::new(ErrorCode::Unauthorized, message);
    match app.tokens().find(secret).await.map_err(|error| Problem::from_store(&error))? {
        Found::Live(token) => {
            let (instance, rights) = (InstanceId::from_text(token.id.as_str()), Arc::new(token.rights()));
            let credential = Credential { token: token.id, hash: hash(secret) };
            return Ok((Caller { principal: token.principal, instance, rights }, Presented::Token(credential)));
        }
        Found::Expired(token) => {
            let at = token.expires_at.map(|at| at.to_string()).unwrap_or_default();
            return Err(refused(format!(
                "the token {} expired at {at}; an admin makes a new one with `matsu token new`",
                token.name
            )));
        }
        Found::Nothing => {}
    }
    let session =
        Sessions::of(app.runtime()).session_by_token(secret).await.map_err(|error| Problem::from_store(&error))?;
    let unknown = || refused("the token is unknown or was revoked; `matsu token list` shows the valid ones".to_owned());
    let session = session.ok_or_else(unknown)?;
    let rights =
        Access::of(app.runtime()).rights_of(&session.owner).await.map_err(|error| Problem::from_store(&error))?;
    let (principal, instance) = (session.principal(), InstanceId::from_text(session.id.as_str()));
    let caller = Caller { principal, instance, rights: Arc::new(rights) };
    Ok((caller, Presented::Session(PresentedSession { token: secret.to_owned(), grants: session.grants })))
}
