//! The auth queue: pages that wait for a person, one item per owner and address.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::id::{AuthItemId, JobId, TaskId};
use crate::job::Priority;
use crate::principal::Principal;
use crate::research::auth::AuthItem;

use super::StoreError;

#[async_trait]
pub trait AuthQueueStore {
    /// Pending items of an owner, by priority, then oldest first.
    async fn auth_items(&self, filter: &AuthFilter) -> Result<Vec<AuthItem>, StoreError>;

    /// Settles items and puts back exactly the searches that wait for nothing else. None found is `NotFound`.
    async fn resolve_auth(&self, request: ResolveAuth) -> Result<ResolvedAuth, StoreError>;

    /// Ends items whose time is over, as if they had been skipped. Returns how many.
    async fn expire_auth(&self, now: Timestamp) -> Result<u64, StoreError>;

    /// How the auth items that this search waits for have been settled, by address.
    async fn auth_items_of(&self, search: &JobId) -> Result<Vec<AuthItem>, StoreError>;
}

#[derive(Clone, Debug)]
pub struct AuthFilter {
    pub owner: Principal,
    pub task_id: Option<TaskId>,
    pub priority: Option<Priority>,
    pub rows_max: u32,
}

#[derive(Clone, Debug)]
pub struct ResolveAuth {
    pub owner: Principal,
    pub target: AuthTarget,
    pub outcome: AuthOutcome,
    pub now: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthTarget {
    Item(AuthItemId),
    /// All pending items of a registrable domain.
    Domain(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthOutcome {
    /// The login is done: try again.
    Opened,
    /// Leave those pages out.
    Skipped,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedAuth {
    pub items: Vec<AuthItemId>,
    /// Searches that went back to the queue, in id order.
    pub requeued: Vec<JobId>,
}
