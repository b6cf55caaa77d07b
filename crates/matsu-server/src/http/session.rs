//! Signing the page in and out.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use matsu_core::access::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::auth::{Caller, Credential};
use crate::guards::page_session;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    let log_in =
        operation("log_in", "Exchanges a one-time login code for a session: sets the cookie and returns the key.")
            .body::<LogInBody>();
    let log_out = operation("log_out", "Ends the session of this page.");
    Resource::default()
        .post("/login", log_in.creates::<KeyBody>().open(), begin)
        .get(
            "/session",
            operation("read_session", "The signed-in user; extends the browser session.").answers::<SessionBody>(),
            read,
        )
        .delete("/session", log_out.for_viewers_too(), end)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogInBody {
    code: String,
}

#[derive(Serialize, JsonSchema)]
struct KeyBody {
    key: String,
}

async fn begin(State(app): State<App>, headers: HeaderMap, Json(body): Json<LogInBody>) -> Result<Response, Problem> {
    app.login_codes().spend(&body.code)?;
    let begun = page_session::begin(&app, &headers).await?;
    let answer = Json(KeyBody { key: begun.key });
    Ok((StatusCode::CREATED, [(header::SET_COOKIE, begun.cookie)], answer).into_response())
}

#[derive(Serialize, JsonSchema)]
struct SessionBody {
    principal: String,
    role: Role,
    /// The token of this session. Absent for a process that opened the store itself.
    token_id: Option<String>,
    version: String,
    store: String,
}

async fn read(
    State(app): State<App>,
    caller: Caller,
    credential: Option<axum::Extension<Credential>>,
    headers: HeaderMap,
) -> Response {
    let body = SessionBody {
        principal: caller.principal.to_string(),
        role: caller.rights.role,
        token_id: credential.map(|credential| credential.token.to_string()),
        version: app.version().to_owned(),
        store: app.store_name().to_owned(),
    };
    match page_session::renewed(&app, &headers).filter(|_| page_session::is_attempted(&headers)) {
        Some(cookie) => ([(header::SET_COOKIE, cookie)], Json(body)).into_response(),
        None => Json(body).into_response(),
    }
}

async fn end(
    State(app): State<App>,
    caller: Caller,
    credential: Option<axum::Extension<Credential>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some(credential) = credential.filter(|_| page_session::is_attempted(&headers)) else {
        return Err(Problem::invalid("only a page has a session to end; see `matsu token revoke`"));
    };
    app.tokens().revoke(Some(&caller.principal), &credential.token).await?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, page_session::ended(&app, &headers))]).into_response())
}
