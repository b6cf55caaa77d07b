//! Tokens and users.

use std::path::PathBuf;

use crate::access::{RemovedUser, User};
use crate::clock::Timestamp;
use crate::id::TokenId;
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::token::{NewToken, Token};

use super::request;

/// A name that is in use by a live token is `Refused`.
#[derive(Clone, Debug)]
pub struct InsertToken(pub NewToken);
request!(InsertToken => Token);

/// The token whose secret has this hash, expired ones too. Revoked or unknown: `None`.
#[derive(Clone, Debug)]
pub struct TokenByHash(pub String);
request!(TokenByHash => Option<Token>);

/// Those of one principal, or of all; oldest first, revoked ones included.
#[derive(Clone, Debug)]
pub struct ListTokens {
    pub of: Option<Principal>,
    pub page: PageRequest,
}
request!(ListTokens => Page<Token>);

/// Revoking twice is harmless; an unknown id, or one of another principal where one is named, is `NotFound`.
#[derive(Clone, Debug)]
pub struct RevokeToken {
    pub of: Option<Principal>,
    pub id: TokenId,
    pub now: Timestamp,
}
request!(RevokeToken => ());

/// Moves the end of a token's time. A revoked one stays revoked.
#[derive(Clone, Debug)]
pub struct ExtendToken {
    pub id: TokenId,
    pub expires_at: Timestamp,
}
request!(ExtendToken => ());

/// Adds a user, or gives the one that exists other folders.
#[derive(Clone, Debug)]
pub struct PutUser {
    pub user: Principal,
    pub roots: Vec<PathBuf>,
    pub now: Timestamp,
}
request!(PutUser => User);

#[derive(Clone, Debug)]
pub struct ReadUser(pub Principal);
request!(ReadUser => Option<User>);

/// Oldest first.
#[derive(Clone, Debug)]
pub struct ListUsers(pub PageRequest);
request!(ListUsers => Page<User>);

/// Removes a user, revokes its tokens and ends its sessions. Its tasks stay. Unknown: `NotFound`.
#[derive(Clone, Debug)]
pub struct RemoveUser {
    pub user: Principal,
    pub now: Timestamp,
}
request!(RemoveUser => RemovedUser);
