//! Schedules and their firings.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::id::{FiringId, ScheduleId};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::schedule::{Firing, FiringOutcome, FiringState, NewSchedule, Schedule};

use super::StoreError;

#[async_trait]
pub trait ScheduleStore {
    /// Refused if the owner has one of that name.
    async fn add_schedule(&self, new: &NewSchedule, now: Timestamp) -> Result<Schedule, StoreError>;

    /// By its id or its name.
    async fn schedule(&self, owner: &Principal, key: &str) -> Result<Schedule, StoreError>;

    /// Oldest first.
    async fn schedules(&self, owner: &Principal, page: &PageRequest) -> Result<Page<Schedule>, StoreError>;

    /// Pauses it for a reason, or lets it go on at `next_at`.
    async fn set_schedule(
        &self,
        id: &ScheduleId,
        paused: Option<&str>,
        next_at: Option<Timestamp>,
    ) -> Result<(), StoreError>;

    /// With its firings. Tasks stay.
    async fn remove_schedule(&self, owner: &Principal, key: &str) -> Result<Schedule, StoreError>;

    /// Schedules whose time has come, earliest first.
    async fn due_schedules(&self, now: Timestamp, rows_max: u32) -> Result<Vec<Schedule>, StoreError>;

    /// Stores the firing of the time that was due and the next time, if no other node has. `false`: another has.
    async fn fire_schedule(
        &self,
        schedule: &Schedule,
        state: FiringState,
        next_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Firings that are to be started, oldest first, with their schedules. They are not taken again before `again_at`,
    /// so that one node starts each, and a node that dies meanwhile loses none.
    async fn take_firings(
        &self,
        now: Timestamp,
        again_at: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<(Firing, Schedule)>, StoreError>;

    async fn settle_firing(&self, id: &FiringId, outcome: &FiringOutcome) -> Result<(), StoreError>;

    /// Newest first.
    async fn firings(&self, schedule: &ScheduleId, page: &PageRequest) -> Result<Page<Firing>, StoreError>;

    /// When a schedule is due or a firing is to be looked at next.
    async fn next_schedule_at(&self) -> Result<Option<Timestamp>, StoreError>;
}
