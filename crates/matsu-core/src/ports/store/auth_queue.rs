//! The auth queue: pages that wait for a person, one item per owner and address.

use crate::clock::Timestamp;
use crate::id::{AuthItemId, JobId, TaskId};
use crate::job::Priority;
use crate::principal::Principal;
use crate::research::auth::AuthItem;

use super::request;

/// Pending items of an owner, by priority, then oldest first.
#[derive(Clone, Debug)]
pub struct ReadAuthItems(pub AuthFilter);
request!(ReadAuthItems => Vec<AuthItem>);

request! {
    /// Settles items and puts back exactly the searches that wait for nothing else. None found is `NotFound`.
    ResolveAuth => ResolvedAuth
}

/// Ends items whose time is over, as if they had been skipped. Returns how many.
#[derive(Clone, Debug)]
pub struct ExpireAuth(pub Timestamp);
request!(ExpireAuth => u64);

/// How the auth items that this search waits for have been settled, by address.
#[derive(Clone, Debug)]
pub struct AuthItemsOf(pub JobId);
request!(AuthItemsOf => Vec<AuthItem>);

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
