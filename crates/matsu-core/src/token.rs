//! Named bearer tokens: one per client, listed and revocable. The secret itself is never stored.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::TokenId;
use crate::principal::Principal;

/// What is known about a token. Only the hash of its secret is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Token {
    pub id: TokenId,
    pub name: String,
    pub principal: Principal,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    /// Position in the list of all tokens; the cursor of its pages.
    pub seq: i64,
}

/// A token to be stored.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub id: TokenId,
    pub name: String,
    pub principal: Principal,
    /// SHA-256 of the secret, in hex. The secret has 256 random bits, so no slow hash is needed.
    pub secret_hash: String,
    pub created_at: Timestamp,
}
