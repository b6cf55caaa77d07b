//! The same faults for schedules.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::{FiringId, ScheduleId};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{ScheduleStore, StoreError};
use matsu_core::principal::Principal;
use matsu_core::schedule::{Firing, FiringOutcome, FiringState, NewSchedule, Schedule};

use super::FaultyStore;

#[async_trait]
impl ScheduleStore for FaultyStore {
    async fn add_schedule(&self, new: &NewSchedule, now: Timestamp) -> Result<Schedule, StoreError> {
        self.pass("add_schedule", self.inner.add_schedule(new, now)).await
    }

    async fn schedule(&self, owner: &Principal, key: &str) -> Result<Schedule, StoreError> {
        self.pass("schedule", self.inner.schedule(owner, key)).await
    }

    async fn schedules(&self, owner: &Principal, page: &PageRequest) -> Result<Page<Schedule>, StoreError> {
        self.pass("schedules", self.inner.schedules(owner, page)).await
    }

    async fn set_schedule(
        &self,
        id: &ScheduleId,
        paused: Option<&str>,
        next_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.pass("set_schedule", self.inner.set_schedule(id, paused, next_at)).await
    }

    async fn remove_schedule(&self, owner: &Principal, key: &str) -> Result<Schedule, StoreError> {
        self.pass("remove_schedule", self.inner.remove_schedule(owner, key)).await
    }

    async fn due_schedules(&self, now: Timestamp, rows_max: u32) -> Result<Vec<Schedule>, StoreError> {
        self.pass("due_schedules", self.inner.due_schedules(now, rows_max)).await
    }

    async fn fire_schedule(
        &self,
        schedule: &Schedule,
        state: FiringState,
        next_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.pass("fire_schedule", self.inner.fire_schedule(schedule, state, next_at, now)).await
    }

    async fn take_firings(
        &self,
        now: Timestamp,
        again_at: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<(Firing, Schedule)>, StoreError> {
        self.pass("take_firings", self.inner.take_firings(now, again_at, rows_max)).await
    }

    async fn settle_firing(&self, id: &FiringId, outcome: &FiringOutcome) -> Result<(), StoreError> {
        self.pass("settle_firing", self.inner.settle_firing(id, outcome)).await
    }

    async fn firings(&self, schedule: &ScheduleId, page: &PageRequest) -> Result<Page<Firing>, StoreError> {
        self.pass("firings", self.inner.firings(schedule, page)).await
    }

    async fn next_schedule_at(&self) -> Result<Option<Timestamp>, StoreError> {
        self.pass("next_schedule_at", self.inner.next_schedule_at()).await
    }
}
