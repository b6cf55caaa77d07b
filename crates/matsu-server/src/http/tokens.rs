//! Named tokens: make, list, revoke. A secret is shown once, in the answer that made it.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use matsu_core::id::TokenId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, says};
use crate::wire::{ListBody, TokenBody};

pub fn routes() -> Resource {
    let make_token = says("make_token", "Makes a named token; its secret is shown once.").body::<MakeBody>();
    Resource::default()
        .get("/tokens", says("list_tokens", "Tokens, revoked ones too.").answers::<ListBody<TokenBody>>(), list)
        .post("/tokens", make_token.creates::<MadeBody>(), make)
        .delete("/tokens/{id}", says("revoke_token", "It opens nothing from now on."), revoke)
}

async fn list(State(app): State<App>, caller: Caller) -> Result<Json<ListBody<TokenBody>>, Problem> {
    let tokens = app.runtime().store().tokens().await?;
    let own = tokens.iter().filter(|token| token.principal == caller.principal);
    Ok(Json(ListBody { items: own.map(TokenBody::from).collect() }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MakeBody {
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
