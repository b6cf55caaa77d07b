//! Named tokens: make, list, revoke. A secret is shown once, in the answer that made it.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use matsu_core::access::Role;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TokenId;
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;
use matsu_runtime::dispatch::presets::Offer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::users::user_named;
use crate::app::App;
use crate::auth::{Caller, TokenWish};
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::{PageBody, PageQuery, TokenBody};

pub fn routes() -> Resource {
    let list_tokens = operation("list_tokens", "Tokens, revoked ones included. An admin sees those of all users.")
        .query::<PageQuery>();
    let make_token = operation("make_token", "Creates a named token; its secret is shown once.").body::<MakeBody>();
    Resource::default()
        .get("/tokens", list_tokens.answers::<PageBody<TokenBody>>(), list)
        .post("/tokens", make_token.creates::<MadeBody>().for_admins(), make)
        .delete(
            "/tokens/{id}",
            operation("revoke_token", "Revokes a token; requests with it are refused from now on."),
            revoke,
        )
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<PageBody<TokenBody>>, Problem> {
    Ok(Json(PageBody::of(app.tokens().list(caller.only_own(), &query.page()).await?)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MakeBody {
    /// Not blank.
    #[schemars(length(min = 1, max = 100), regex(pattern = r"\S"))]
    name: String,
    /// The user that owns it. Absent: the local owner.
    user: Option<String>,
    /// For tokens of the local owner: admin or viewer. For tokens of another user, absent: member.
    role: Option<Role>,
    /// The only tools it is offered: core, all, or toolsets separated by commas.
    tools: Option<String>,
    /// It is refused after this many seconds. Absent: it is valid until it is revoked.
    #[schemars(range(min = 1, max = 315_360_000))]
    expires_in_seconds: Option<u64>,
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
    // One without the limit would make it void.
    if caller.rights.tools.is_some() {
        let message = "a token that is limited to some tools cannot create tokens; use one without that limit";
        return Err(Problem::new(ErrorCode::Forbidden, message));
    }
    let (token, secret) = app.tokens().make(wish(body)?).await?;
    Ok((StatusCode::CREATED, Json(MadeBody { token: TokenBody::from(&token), secret })))
}

fn wish(body: MakeBody) -> Result<TokenWish, Problem> {
    let name = body.name.trim();
    if name.is_empty() || name.chars().count() > 100 {
        return Err(Problem::invalid("name must have 1 to 100 characters"));
    }
    let user = body.user.as_deref().filter(|user| *user != "local");
    let principal = user.map_or_else(|| Ok(Principal::local_user()), user_named)?;
    let role = body.role.unwrap_or(if user.is_some() { Role::Member } else { Role::Admin });
    if user.is_none() && role == Role::Member {
        let message = "a token with the role member belongs to a user: add one with `matsu user add NAME` and pass \
                       --user NAME. The local owner's tokens are admin or viewer";
        return Err(Problem::invalid(message));
    }
    if let Some(tools) = &body.tools {
        Offer::parse(tools).map_err(Problem::invalid)?;
    }
    let expires_in = match body.expires_in_seconds {
        Some(seconds) if !(1..=EXPIRES_SECONDS_MAX).contains(&seconds) => {
            return Err(Problem::invalid(format!("a token expires after 1 to {EXPIRES_SECONDS_MAX} seconds")));
        }
        seconds => seconds.map(Duration::from_secs),
    };
    Ok(TokenWish { name: name.to_owned(), principal, role, tools: body.tools, expires_in })
}

/// Ten years.
const EXPIRES_SECONDS_MAX: u64 = 315_360_000;

async fn revoke(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    let id = TokenId::from_text(id);
    match app.tokens().revoke(caller.only_own(), &id).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(StoreError::NotFound { .. }) => {
            let message = format!("token {id} was not found; see `matsu token list`");
            Err(Problem::new(ErrorCode::ResourceNotFound, message))
        }
        Err(error) => Err(error.into()),
    }
}
