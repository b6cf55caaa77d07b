//! Named bearer tokens: one per client, listed and revocable. The secret itself is never stored.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::access::{Rights, Role};
use crate::clock::Timestamp;
use crate::id::TokenId;
use crate::principal::Principal;

/// What is known about a token. Only the hash of its secret is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Token {
    pub id: TokenId,
    pub name: String,
    pub principal: Principal,
    pub role: Role,
    /// The only tools it is offered, as `--tools` names them.
    pub tools: Option<String>,
    /// The folders that its user was given.
    pub roots: Vec<PathBuf>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// Position in the list of all tokens; the cursor of its pages.
    pub seq: i64,
}

impl Token {
    /// Whether its time is over.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    #[must_use]
    pub fn rights(&self) -> Rights {
        Rights::new(self.role, self.roots.clone(), self.tools.as_deref().map(Arc::from))
    }
}

/// A token to be stored.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub id: TokenId,
    pub name: String,
    pub principal: Principal,
    /// SHA-256 of the secret, in hex. The secret has 256 random bits, so no slow hash is needed.
    pub secret_hash: String,
    pub role: Role,
    pub tools: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}
