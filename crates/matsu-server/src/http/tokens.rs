//! Named tokens: make, list, revoke. A secret is shown once, in the answer that made it.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TokenId;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, says};
use crate::wire::{PageBody, TokenBody};

pub fn routes() -> Resource {
    let list_tokens = says("list_tokens", "Tokens, revoked ones too.").query::<ListQuery>();
    let make_token = says("make_token", "Makes a named token; its secret is shown once.").body::<MakeBody>();
    Resource::default()
        .get("/tokens", list_tokens.answers::<PageBody<TokenBody>>(), list)
        .post("/tokens", make_token.creates::<MadeBody>(), make)
        .delete("/tokens/{id}", says("revoke_token", "It opens nothing from now on."), revoke)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// `next` of the page before.
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

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MakeBody {
    /// Not blank.
    #[schemars(length(min = 1, max = 100), regex(pattern = r"\S"))]
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct MadeBody {
    token: TokenBody,
    secret: String,
}

async fn make(
    State(app): State<App>,
    caller: Caller,
    Json(body): Json<MakeBody>,
) -> Result<(StatusCode, Json<MadeBody>), Problem> {
    let name = body.name.trim();
    if name.is_empty() || name.chars().count() > 100 {
        return Err(Problem::invalid("name must have 1 to 100 characters"));
    }
    let (token, secret) = app.tokens().make(name, caller.principal).await?;
    Ok((StatusCode::CREATED, Json(MadeBody { token: TokenBody::from(&token), secret })))
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
