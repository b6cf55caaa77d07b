//! Named tokens: make, list, revoke. A secret is shown once, in the answer that made it.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{delete, get};
use axum::{Json, Router};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TokenId;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::StoreError;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::wire::{PageBody, TokenBody};

pub fn routes() -> Router<App> {
    Router::new().route("/tokens", get(list).post(make)).route("/tokens/{id}", delete(revoke))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    after: Option<i64>,
    limit: Option<u32>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<PageBody<TokenBody>>, Problem> {
    let page = PageRequest::new(query.after, query.limit);
    Ok(Json(PageBody::of(app.runtime().store().tokens(&caller.principal, &page).await?)))
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
    match app.tokens().revoke(&caller.principal, &id).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(StoreError::NotFound { .. }) => {
            let message = format!("token {id} was not found; see `matsu token list`");
            Err(Problem::new(ErrorCode::ResourceNotFound, message))
        }
        Err(error) => Err(error.into()),
    }
}
