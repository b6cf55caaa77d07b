//! Named tokens: make, list, revoke. A secret is shown once, in the answer that made it.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get};
use axum::{Json, Router};
use matsu_core::id::TokenId;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::wire::TokenBody;

pub fn routes() -> Router<App> {
    Router::new().route("/tokens", get(list).post(make)).route("/tokens/{id}", delete(revoke))
}

async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Problem> {
    let tokens = app.runtime().store().tokens().await?;
    let own = tokens.iter().filter(|token| token.principal == caller.principal);
    let items: Vec<TokenBody> = own.map(TokenBody::from).collect();
    Ok(Json(json!({ "items": items })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MakeBody {
    name: String,
}

async fn make(
    State(app): State<App>,
    caller: Caller,
    Json(body): Json<MakeBody>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let name = body.name.trim();
    if name.is_empty() || name.chars().count() > 100 {
        return Err(Problem::invalid("name must have 1 to 100 characters"));
    }
    let (token, secret) = app.tokens().make(name, caller.principal).await?;
    Ok((StatusCode::CREATED, Json(json!({ "token": TokenBody::from(&token), "secret": secret }))))
}

async fn revoke(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    let id = TokenId::from_text(id);
    let tokens = app.runtime().store().tokens().await?;
    let own = tokens.iter().any(|token| token.id == id && token.principal == caller.principal);
    if !own {
        return Err(Problem::new(
            matsu_core::error_code::ErrorCode::ResourceNotFound,
            format!("token {id} was not found; see `matsu token list`"),
        ));
    }
    app.tokens().revoke(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
