//! Schedules and their firings.

use crate::clock::Timestamp;
use crate::id::{FiringId, ScheduleId};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::schedule::{Firing, FiringOutcome, FiringState, NewSchedule, Schedule};
use crate::unstarted::FailedStart;

use super::request;

/// Refused if the owner has one of that name.
#[derive(Clone, Debug)]
pub struct AddSchedule {
    pub new: NewSchedule,
    pub now: Timestamp,
}
request!(AddSchedule => Schedule);

/// By its id or its name.
#[derive(Clone, Debug)]
pub struct ReadSchedule(pub Principal, pub String);
request!(ReadSchedule => Schedule);

/// Oldest first.
#[derive(Clone, Debug)]
pub struct ListSchedules(pub Principal, pub PageRequest);
request!(ListSchedules => Page<Schedule>);

/// Pauses it for a reason, or lets it go on at `next_at`.
#[derive(Clone, Debug)]
pub struct SetSchedule {
    pub id: ScheduleId,
    pub paused: Option<String>,
    pub next_at: Option<Timestamp>,
}
request!(SetSchedule => ());

/// With its firings. Tasks stay.
#[derive(Clone, Debug)]
pub struct RemoveSchedule(pub Principal, pub String);
request!(RemoveSchedule => Schedule);

/// Schedules whose time has come, earliest first.
#[derive(Clone, Debug)]
pub struct DueSchedules {
    pub now: Timestamp,
    pub rows_max: u32,
}
request!(DueSchedules => Vec<Schedule>);

/// Stores a firing and the next time, if no other node has. `false`: another has.
#[derive(Clone, Debug)]
pub struct FireSchedule {
    pub schedule: Schedule,
    /// The newest time that has come.
    pub due_at: Timestamp,
    pub state: FiringState,
    /// Why nothing is started for it.
    pub note: Option<String>,
    /// Why nothing is started for the times before it, if the schedule was due earlier.
    pub left_out: Option<String>,
    pub next_at: Option<Timestamp>,
    pub now: Timestamp,
}
request!(FireSchedule => bool);

/// Firings that are to be started, oldest first, with their schedules. They are not taken again before `again_at`,
/// so that one node starts each, and a node that dies meanwhile loses none.
#[derive(Clone, Debug)]
pub struct TakeFirings {
    pub now: Timestamp,
    pub again_at: Timestamp,
    pub rows_max: u32,
}
request!(TakeFirings => Vec<(Firing, Schedule)>);

/// A firing that failed becomes a task that has failed with the reason, in the same transaction.
#[derive(Clone, Debug)]
pub struct SettleFiring {
    pub id: FiringId,
    pub outcome: FiringOutcome,
}
request!(SettleFiring => ());

/// Newest first.
#[derive(Clone, Debug)]
pub struct ListFirings(pub ScheduleId, pub PageRequest);
request!(ListFirings => Page<Firing>);

/// When a schedule is due or a firing is to be looked at next.
#[derive(Clone, Debug)]
pub struct NextScheduleAt;
request!(NextScheduleAt => Option<Timestamp>);

/// Schedules and webhooks of all users whose last start failed, by name.
#[derive(Clone, Debug)]
pub struct FailedStarts;
request!(FailedStarts => Vec<FailedStart>);
