//! Notifications: send, give, acknowledge, forget.

use crate::clock::Timestamp;
use crate::id::{NotificationId, SessionId, TaskId};
use crate::notification::{NewNotice, Notification, NotificationAction};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;

use super::request;

/// A person's own notice to a session. An ended session is `Closed`.
#[derive(Clone, Debug)]
pub struct InsertNotice(pub NewNotice);
request!(InsertNotice => Notification);

request! {
    /// Acknowledges `ack_ids`, then returns what is unread, newest first. With `Marking::Given` exactly those returned
    /// count as given.
    Give => Vec<Notification>
}

/// The session came back with another call: what it was given has arrived. Returns how many.
#[derive(Clone, Debug)]
pub struct AcknowledgeGiven {
    pub session: SessionId,
    pub now: Timestamp,
}
request!(AcknowledgeGiven => u64);

/// A call is lost: what it was to give does not count as given.
#[derive(Clone, Debug)]
pub struct TakeBackNotifications {
    pub session: SessionId,
    pub ids: Vec<NotificationId>,
}
request!(TakeBackNotifications => ());

/// Unacknowledged interrupts of live sessions, oldest first.
#[derive(Clone, Debug)]
pub struct PendingInterrupts {
    pub now: Timestamp,
}
request!(PendingInterrupts => Vec<PendingInterrupt>);

/// Newest first; of one session, and of sessions with this owner, where they are named.
#[derive(Clone, Debug)]
pub struct ListNotifications {
    pub session: Option<SessionId>,
    pub owner: Option<Principal>,
    pub page: PageRequest,
}
request!(ListNotifications => Page<Notification>);

/// Removes unread ones that have expired and read ones from before `read_before`, at most `rows_max` of each.
#[derive(Clone, Debug)]
pub struct SweepNotifications {
    pub now: Timestamp,
    pub read_before: Timestamp,
    pub rows_max: u32,
}
request!(SweepNotifications => u64);

/// Agent tasks of this principal that have ended by themselves and were not read, and those that ask; newest first,
/// at most as many as the number says.
#[derive(Clone, Debug)]
pub struct UnreadResults(pub Principal, pub u32);
request!(UnreadResults => Vec<UnreadResult>);

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
