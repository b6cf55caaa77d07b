//! What the daemon writes for others to find: the token first, and `server.json` once all listeners are open.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use matsu_core::access::Role;
use matsu_core::clock::Clock;
use matsu_core::id::TokenId;
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;
use matsu_core::redaction;
use matsu_server::App;
use matsu_server::auth::{Found, TokenWish};
use serde::{Deserialize, Serialize};

use crate::paths::Paths;
use crate::private_files::write_private;

/// How others reach the daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerJson {
    /// `None` where HTTP is off.
    pub address: Option<String>,
    pub pid: u32,
    pub version: String,
}

/// Makes sure that the token file has a token of this store.
pub async fn ensure_token(app: &App, paths: &Paths) -> Result<()> {
    let file = paths.token();
    if let Ok(secret) = fs::read_to_string(&file)
        && is_owners(app, secret.trim()).await?
    {
        redaction::remember("owner token", secret.trim());
        return Ok(());
    }
    // The first start, another store, or a token that was revoked or lost: what it opened is closed for good.
    let id_file = file.with_extension("id");
    if let Ok(id) = fs::read_to_string(&id_file) {
        match app.tokens().revoke(Some(&Principal::local_user()), &TokenId::from_text(id.trim())).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Nodes that share a store may well have data directories of the same name.
    let name = format!("token file of {} ({})", paths.data_dir.display(), TokenId::mint(Clock::system().now()));
    let (token, secret) = app.tokens().make(TokenWish::of_owner(name)).await?;
    redaction::remember("owner token", &secret);
    write_private(&id_file, &format!("{}\n", token.id))?;
    write_private(&file, &format!("{secret}\n"))
}

/// Whether it is a token that gives all rights of the local owner.
async fn is_owners(app: &App, secret: &str) -> Result<bool> {
    Ok(match app.tokens().find(secret).await? {
        Found::Live(token) => token.principal == Principal::local_user() && token.role == Role::Admin,
        Found::Expired(_) | Found::Nothing => false,
    })
}

/// The token files of a data directory, put aside for as long as a store that is not to last is served from there:
/// its token opens nothing afterwards, and the one that was there before must open its own store again.
pub struct TokenAside {
    paths: Paths,
}

/// What lies there beside the name.
const ASIDE: &str = "aside";

impl TokenAside {
    /// Call only once the socket is ours: then the files are.
    pub fn for_store(paths: &Paths, store_url: &str) -> Option<Self> {
        // What a process that was killed had put aside.
        bring_token_back(paths);
        if store_url != "memory:" {
            return None;
        }
        for file in token_files(paths) {
            let _ = fs::rename(&file, aside(&file));
        }
        Some(Self { paths: paths.clone() })
    }
}

impl Drop for TokenAside {
    fn drop(&mut self) {
        for file in token_files(&self.paths) {
            let _ = fs::remove_file(file);
        }
        bring_token_back(&self.paths);
    }
}

fn bring_token_back(paths: &Paths) {
    for file in token_files(paths) {
        let _ = fs::rename(aside(&file), file);
    }
}

fn token_files(paths: &Paths) -> [PathBuf; 2] {
    [paths.token(), paths.token().with_extension("id")]
}

fn aside(file: &Path) -> PathBuf {
    file.with_file_name(format!("{}.{ASIDE}", file.file_name().unwrap_or_default().to_string_lossy()))
}

pub fn write_server_json(paths: &Paths, server: &ServerJson) -> Result<()> {
    write_private(&paths.server_json(), &format!("{}\n", serde_json::to_string(server)?))
}

/// Only our own: a successor may already have written its.
pub fn remove_server_json(paths: &Paths) {
    let ours = read_server_json(paths).is_some_and(|server| server.pid == std::process::id());
    if ours {
        let _ = fs::remove_file(paths.server_json());
    }
}

pub fn read_server_json(paths: &Paths) -> Option<ServerJson> {
    serde_json::from_str(&fs::read_to_string(paths.server_json()).ok()?).ok()
}
