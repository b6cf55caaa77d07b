//! Changes, tokens, and the care of the store itself.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::Serialize;

use crate::access::{RemovedUser, User};
use crate::change::{Change, ChangeCursor};
use crate::clock::Timestamp;
use crate::id::TokenId;
use crate::job::JobState;
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::slot::Slot;
use crate::token::{NewToken, Token};

use super::StoreError;

#[async_trait]
pub trait ChangeStore {
    /// Changes after `cursor`, oldest first, at most `rows_max`. A change that commits late is still seen: the
    /// cursor never passes a transaction that may yet commit.
    async fn changes_since(&self, cursor: ChangeCursor, rows_max: u32) -> Result<ChangeBatch, StoreError>;

    /// A cursor after everything there is now.
    async fn change_cursor(&self) -> Result<ChangeCursor, StoreError>;

    /// Removes what the rule calls too old, at most `rows_max` of each sort, oldest first.
    async fn prune(&self, rule: PruneRule, rows_max: u32) -> Result<Pruned, StoreError>;
}

/// When rows that are no longer needed are old enough to be removed.
#[derive(Clone, Copy, Debug)]
pub struct PruneRule {
    /// Changes recorded, and rates last used, before this.
    pub changes_before: Timestamp,
    /// Idempotency keys first used before this.
    pub keys_before: Timestamp,
    /// System jobs that finished before this.
    pub system_jobs_before: Timestamp,
    /// Tokens revoked before this.
    pub revoked_before: Timestamp,
}

/// What a prune removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    pub rows: u64,
    /// Of some sort there may be more.
    pub has_more: bool,
}

#[derive(Clone, Debug, Default)]
pub struct ChangeBatch {
    pub changes: Vec<Change>,
    pub cursor: ChangeCursor,
}

#[async_trait]
pub trait TokenStore {
    /// A name that is in use by a live token is `Refused`.
    async fn insert_token(&self, token: NewToken) -> Result<Token, StoreError>;

    /// The token whose secret has this hash, expired ones too. Revoked or unknown: `None`.
    async fn token_by_hash(&self, secret_hash: &str) -> Result<Option<Token>, StoreError>;

    /// Those of one principal, or of all; oldest first, revoked ones included.
    async fn tokens(&self, of: Option<&Principal>, page: &PageRequest) -> Result<Page<Token>, StoreError>;

    /// Revoking twice is harmless; an unknown id, or one of another principal where one is named, is `NotFound`.
    async fn revoke_token(&self, of: Option<&Principal>, id: &TokenId, now: Timestamp) -> Result<(), StoreError>;

    /// Moves the end of a token's time. A revoked one stays revoked.
    async fn extend_token(&self, id: &TokenId, expires_at: Timestamp) -> Result<(), StoreError>;

    /// Adds a user, or gives the one that exists other folders.
    async fn put_user(&self, user: &Principal, roots: &[PathBuf], now: Timestamp) -> Result<User, StoreError>;

    async fn user(&self, user: &Principal) -> Result<Option<User>, StoreError>;

    /// Oldest first.
    async fn users(&self, page: &PageRequest) -> Result<Page<User>, StoreError>;

    /// Removes a user, revokes its tokens and ends its sessions. Its tasks stay. Unknown: `NotFound`.
    async fn remove_user(&self, user: &Principal, now: Timestamp) -> Result<RemovedUser, StoreError>;
}

#[async_trait]
pub trait UpkeepStore {
    /// Reads and writes something small, so that a full disk or a lost server shows.
    async fn check(&self) -> Result<StoreInfo, StoreError>;

    /// How many jobs are not finished, over all nodes and owners.
    async fn unfinished_jobs(&self) -> Result<i64, StoreError>;

    /// What is going on among the owner's tasks: a cost that grows with what is unfinished, not with history.
    async fn summary(&self, owner: &Principal, failed_since: Timestamp) -> Result<Summary, StoreError>;

    /// Copies a live store to a new file, consistently.
    async fn backup(&self, to: &Path) -> Result<(), StoreError>;
}

/// The queue in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Unfinished jobs by slot and state; what has none is not listed.
    pub queue: Vec<QueueCount>,
    /// Tasks that failed since the moment asked about.
    pub failed: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueCount {
    pub slot: Slot,
    pub state: JobState,
    pub jobs: i64,
}

/// What `doctor` shows about a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreInfo {
    pub backend: &'static str,
    /// Where it is, without secrets.
    pub location: String,
    pub schema_version: i64,
    pub jobs: i64,
    pub tasks: i64,
}
