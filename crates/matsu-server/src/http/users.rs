//! Users beside the local owner: who they are, and in which folders their agents may work. For admins.

use std::path::PathBuf;

use axum::Json;
use axum::extract::{Path, Query, State};
use matsu_core::access::User;
use matsu_core::principal::Principal;
use matsu_runtime::access::Access;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::{PageBody, PageQuery, time};

pub fn routes() -> Resource {
    let list_users = operation("list_users", "Users, oldest first.").query::<PageQuery>();
    let put_user = operation("put_user", "Adds a user, or changes its folders.").body::<UserWish>();
    let remove_user =
        operation("remove_user", "Removes a user: revokes its tokens and ends its sessions; its tasks stay.");
    Resource::default()
        .get("/users", list_users.answers::<PageBody<UserBody>>().for_admins(), list)
        .post("/users", put_user.answers::<UserBody>().for_admins(), put)
        .delete("/users/{name}", remove_user.answers::<RemovedBody>().for_admins(), remove)
}

#[derive(Serialize, JsonSchema)]
pub struct UserBody {
    name: String,
    /// Folders, with everything in them, in which its agents may work and which its research may read.
    roots: Vec<String>,
    created_at: String,
}

impl From<&User> for UserBody {
    fn from(user: &User) -> Self {
        Self {
            name: user.principal.as_user().unwrap_or_default().to_owned(),
            roots: user.roots.iter().map(|root| root.display().to_string()).collect(),
            created_at: time(user.created_at),
        }
    }
}

async fn list(State(app): State<App>, Query(query): Query<PageQuery>) -> Result<Json<PageBody<UserBody>>, Problem> {
    let page = Access::of(app.runtime()).users(&query.page()).await?;
    Ok(Json(PageBody::of(page)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UserWish {
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    name: String,
    /// Absolute paths of folders that exist. Absent: none.
    #[serde(default)]
    roots: Vec<PathBuf>,
}

async fn put(State(app): State<App>, Json(wish): Json<UserWish>) -> Result<Json<UserBody>, Problem> {
    let user = user_named(&wish.name)?;
    let mut roots = Vec::with_capacity(wish.roots.len());
    for root in &wish.roots {
        let real = root.canonicalize().ok().filter(|real| root.is_absolute() && real.is_dir());
        let shown = root.display();
        roots.push(real.ok_or_else(|| {
            Problem::invalid(format!("{shown} is not the absolute path of a folder on this machine"))
        })?);
    }
    let user = Access::of(app.runtime()).put_user(&user, &roots).await?;
    app.tokens().forget_all();
    Ok(Json(UserBody::from(&user)))
}

#[derive(Serialize, JsonSchema)]
struct RemovedBody {
    name: String,
    /// How many of its tokens were revoked.
    tokens: u64,
    /// How many of its sessions were ended.
    sessions: u64,
}

async fn remove(State(app): State<App>, Path(name): Path<String>) -> Result<Json<RemovedBody>, Problem> {
    let user = user_named(&name)?;
    let removed = Access::of(app.runtime()).remove_user(&user).await?;
    app.tokens().forget_all();
    Ok(Json(RemovedBody { name, tokens: removed.tokens, sessions: removed.sessions }))
}

/// The user with this name, which a person chose.
pub fn user_named(name: &str) -> Result<Principal, Problem> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        return Err(Problem::invalid(
            "the name of a user must have 1 to 64 letters, digits, dots, hyphens or underscores",
        ));
    }
    if name == "local" {
        return Err(Problem::invalid("local is the owner of this installation; choose another name"));
    }
    Ok(Principal::user(name))
}
