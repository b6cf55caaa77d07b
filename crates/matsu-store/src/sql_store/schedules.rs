//! The port of schedules on top of the transitions.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::{FiringId, ScheduleId};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{ScheduleStore, StoreError};
use matsu_core::principal::Principal;
use matsu_core::schedule::{Firing, FiringOutcome, FiringState, NewSchedule, Schedule};

use super::SqlStore;
use crate::transitions::schedules::{
    AddSchedule, DueSchedules, FireSchedule, Firings, ListSchedules, NextScheduleAt, ReadSchedule, RemoveSchedule,
    SetSchedule, SettleFiring, TakeFirings,
};

#[async_trait]
impl ScheduleStore for SqlStore {
    async fn add_schedule(&self, new: &NewSchedule, now: Timestamp) -> Result<Schedule, StoreError> {
        self.write(AddSchedule { new: new.clone(), now }).await
    }

    async fn schedule(&self, owner: &Principal, key: &str) -> Result<Schedule, StoreError> {
        self.read(ReadSchedule(owner.clone(), key.to_owned())).await
    }

    async fn schedules(&self, owner: &Principal, page: &PageRequest) -> Result<Page<Schedule>, StoreError> {
        self.read(ListSchedules(owner.clone(), page.clone())).await
    }

    async fn set_schedule(
        &self,
        id: &ScheduleId,
        paused: Option<&str>,
        next_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.write(SetSchedule { id: id.clone(), paused: paused.map(str::to_owned), next_at }).await
    }

    async fn remove_schedule(&self, owner: &Principal, key: &str) -> Result<Schedule, StoreError> {
        self.write(RemoveSchedule(owner.clone(), key.to_owned())).await
    }

    async fn due_schedules(&self, now: Timestamp, rows_max: u32) -> Result<Vec<Schedule>, StoreError> {
        self.read(DueSchedules { now, rows_max }).await
    }

    async fn fire_schedule(
        &self,
        schedule: &Schedule,
        state: FiringState,
        next_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.write(FireSchedule { schedule: schedule.clone(), state, next_at, now }).await
    }

    async fn take_firings(
        &self,
        now: Timestamp,
        again_at: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<(Firing, Schedule)>, StoreError> {
        self.write(TakeFirings { now, again_at, rows_max }).await
    }

    async fn settle_firing(&self, id: &FiringId, outcome: &FiringOutcome) -> Result<(), StoreError> {
        self.write(SettleFiring { id: id.clone(), outcome: outcome.clone() }).await
    }

    async fn firings(&self, schedule: &ScheduleId, page: &PageRequest) -> Result<Page<Firing>, StoreError> {
        self.read(Firings(schedule.clone(), page.clone())).await
    }

    async fn next_schedule_at(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(NextScheduleAt).await
    }
}
