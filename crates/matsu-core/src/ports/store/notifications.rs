//! Notifications: send, give, acknowledge, forget.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::id::{NotificationId, SessionId, TaskId};
use crate::notification::{NewNotice, Notification, NotificationAction};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;

use super::StoreError;

#[async_trait]
pub trait NotificationStore {
    /// A person's own notice to a session. An ended session is `Closed`.
    async fn insert_notice(&self, notice: NewNotice) -> Result<Notification, StoreError>;

    /// Acknowledges `ack_ids`, then returns what is unread, newest first. With `Marking::Given` exactly those returned
    /// count as given.
    async fn give_notifications(&self, request: Give) -> Result<Vec<Notification>, StoreError>;

    /// The session came back with another call: what it was given has arrived. Returns how many.
    async fn acknowledge_given(&self, session: &SessionId, now: Timestamp) -> Result<u64, StoreError>;

    /// A call is lost: what it was to give does not count as given.
    async fn take_back_notifications(&self, session: &SessionId, ids: &[NotificationId]) -> Result<(), StoreError>;

    /// Unacknowledged interrupts of live sessions, oldest first.
    async fn pending_interrupts(&self, now: Timestamp) -> Result<Vec<PendingInterrupt>, StoreError>;

    /// Newest first; of one session, and of sessions with this owner, where they are named.
    async fn list_notifications(
        &self,
        session: Option<&SessionId>,
        owner: Option<&Principal>,
        page: &PageRequest,
    ) -> Result<Page<Notification>, StoreError>;

    /// Removes unread ones that have expired and read ones from before `read_before`, at most `rows_max` of each.
    async fn sweep_notifications(
        &self,
        now: Timestamp,
        read_before: Timestamp,
        rows_max: u32,
    ) -> Result<u64, StoreError>;

    /// Agent tasks of this principal that have ended by themselves and were not read, and those that ask; newest first,
    /// at most `rows_max`.
    async fn unread_results(&self, owner: &Principal, rows_max: u32) -> Result<Vec<UnreadResult>, StoreError>;
}

/// A task that its parent should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadResult {
    pub task_id: TaskId,
    /// Of its end, or of its question.
    pub revision: i64,
    /// The project folder of the client that started it.
    pub started_in: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Give {
    pub session_id: SessionId,
    pub marking: Marking,
    pub ack_ids: Vec<NotificationId>,
    pub rows_max: u32,
    pub now: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    Given,
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingInterrupt {
    pub id: NotificationId,
    pub session_id: SessionId,
    pub action: NotificationAction,
}
