//! The loop that fires schedules. Every node runs it; the store lets one of them have each time.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::limits::{FIRING_LEASE, SCHEDULE_LATE};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    DueSchedules, FireSchedule, ListFirings, NextScheduleAt, ReadTasks, SetSchedule, SettleFiring, TakeFirings,
};
use matsu_core::schedule::{Firing, FiringOutcome, FiringState, Overlap, Schedule};
use matsu_core::task::TaskStatus;

use super::repeat::{pause_until, repeat};
use super::{rule, start};
use crate::runtime::Runtime;
use crate::tasks::TaskError;

/// How often work that waits for the work before it is looked at.
const QUEUED_EVERY: Duration = Duration::from_secs(5);

/// At one look.
const ROWS_MAX: u32 = 50;

/// Fires schedules until it is cancelled.
pub async fn run(runtime: &Runtime, until: &CancellationToken) {
    repeat(runtime, Topic::schedules(), until, || step(runtime)).await;
}

/// Fires what is due and starts what was fired. Returns how long nothing is due.
async fn step(runtime: &Runtime) -> Result<Duration, TaskError> {
    let now = runtime.clock().now();
    for schedule in runtime.store().run(DueSchedules { now, rows_max: ROWS_MAX }).await? {
        fire(runtime, &schedule).await?;
    }
    for (firing, schedule) in
        runtime.store().run(TakeFirings { now, again_at: now.plus(FIRING_LEASE), rows_max: ROWS_MAX }).await?
    {
        let outcome = begin(runtime, &schedule, &firing).await?;
        if let FiringOutcome::Failed(unstarted) = &outcome {
            let why = &unstarted.why;
            tracing::warn!(schedule = %schedule.id, name = schedule.name, why, "a schedule could not start its work");
        }
        runtime.store().run(SettleFiring { id: firing.id.clone(), outcome: outcome.clone() }).await?;
    }
    let next = runtime.store().run(NextScheduleAt).await?;
    Ok(pause_until(runtime, next))
}

/// Why a time was missed.
const LATE: &str = "it was not fired in time, because no daemon ran or this machine slept";

/// Stores that the time has come. Of several times that passed the newest is fired.
async fn fire(runtime: &Runtime, schedule: &Schedule) -> Result<(), TaskError> {
    let (now, Some(first)) = (runtime.clock().now(), schedule.next_at) else { return Ok(()) };
    if !start::has_owner(runtime, &schedule.owner).await? {
        let why = "its owner was removed";
        return Ok(runtime
            .store()
            .run(SetSchedule { id: schedule.id.clone(), paused: Some(why.to_owned()), next_at: schedule.next_at })
            .await?);
    }
    let times = rule::newest(&schedule.rule, first, now);
    let (due_at, next) = match times.and_then(|due| Ok((due, rule::next_after(&schedule.rule, now)?))) {
        Ok(times) => times,
        Err(why) => {
            return Ok(runtime
                .store()
                .run(SetSchedule { id: schedule.id.clone(), paused: Some(why.clone()), next_at: None })
                .await?);
        }
    };
    let is_missed = !schedule.catch_up && now.since(due_at) > SCHEDULE_LATE;
    let (state, note) = if is_missed {
        (FiringState::Missed, Some(format!("{LATE}; the schedule does not make up for missed times")))
    } else {
        (FiringState::Waiting, None)
    };
    let left_out = Some(format!("{LATE}; only the newest missed time until {due_at} is run"));
    let fired = FireSchedule { schedule: schedule.clone(), due_at, state, note, left_out, next_at: next, now };
    if runtime.store().run(fired).await? {
        tracing::info!(schedule = %schedule.id, name = schedule.name, due = %due_at, state = %state, "a schedule fired");
    }
    Ok(())
}

/// Starts the work, unless that of the time before is not over.
async fn begin(runtime: &Runtime, schedule: &Schedule, firing: &Firing) -> Result<FiringOutcome, TaskError> {
    if !has_work_before(runtime, schedule, firing).await? {
        return start::start(runtime, schedule, firing).await;
    }
    let is_last = is_newest(runtime, firing).await?;
    Ok(match schedule.overlap {
        // Only the newest waits; those before it have been overtaken.
        Overlap::Queue if is_last => FiringOutcome::Later(runtime.clock().now().plus(QUEUED_EVERY)),
        Overlap::Queue | Overlap::Skip => FiringOutcome::Skipped,
    })
}

async fn has_work_before(runtime: &Runtime, schedule: &Schedule, firing: &Firing) -> Result<bool, TaskError> {
    let page = PageRequest::new(None, None);
    let firings = runtime.store().run(ListFirings(schedule.id.clone(), page.clone())).await?;
    let before = firings.items.into_iter().filter(|other| other.seq < firing.seq).find_map(|other| other.task_id);
    let Some(before) = before else { return Ok(false) };
    let tasks = runtime.store().run(ReadTasks(vec![before])).await?;
    Ok(tasks.iter().any(|task| !(task.status.is_terminal() || task.status == TaskStatus::Finished)))
}

async fn is_newest(runtime: &Runtime, firing: &Firing) -> Result<bool, TaskError> {
    let page = PageRequest::new(None, Some(1));
    let newest = runtime.store().run(ListFirings(firing.schedule_id.clone(), page.clone())).await?;
    Ok(newest.items.first().is_none_or(|newest| newest.id == firing.id))
}
