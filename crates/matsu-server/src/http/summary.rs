//! The queue in numbers: what the tiles and gauges of the page show.

use axum::Json;
use axum::extract::State;
use matsu_core::job::JobState;
use matsu_core::limits::FAILED_SHOWN_FOR;
use matsu_core::slot::Slot;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::tasks::status::Waits;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    let read_summary = operation("read_summary", "Unfinished work by slot and state, recent failures, and open waits.");
    Resource::default().get("/metrics/summary", read_summary.answers::<SummaryBody>(), read)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SummaryBody {
    pub running: i64,
    pub queued: i64,
    /// Jobs that wait for a login or an answer.
    pub waiting_for_person: i64,
    pub awaiting_auth: i64,
    pub awaiting_input: i64,
    /// Tasks that failed in the last 24 hours.
    pub failed: i64,
    /// Open waits in the process that answers; only admins see a count.
    pub waiters: usize,
    pub slots: Vec<SlotSummary>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SlotSummary {
    pub slot: Slot,
    pub limit: u32,
    pub running: i64,
    pub queued: i64,
}

async fn read(State(app): State<App>, caller: Caller) -> Result<Json<SummaryBody>, Problem> {
    Ok(Json(summary(&app, &caller).await?))
}

pub async fn summary(app: &App, caller: &Caller) -> Result<SummaryBody, Problem> {
    let runtime = app.runtime();
    let since = runtime.clock().now().minus(FAILED_SHOWN_FOR);
    let read = Tasks::of(runtime).summary(&caller.principal, since).await?;
    let jobs = |slot: Option<Slot>, state: JobState| -> i64 {
        let counts =
            read.queue.iter().filter(|count| count.state == state && slot.is_none_or(|slot| slot == count.slot));
        counts.map(|count| count.jobs).sum()
    };
    let slots = Slot::FOR_JOBS.iter().map(|slot| SlotSummary {
        slot: *slot,
        limit: runtime.limits().of(*slot),
        running: jobs(Some(*slot), JobState::Running),
        queued: jobs(Some(*slot), JobState::Queued),
    });
    let (awaiting_auth, awaiting_input) = (jobs(None, JobState::AwaitingAuth), jobs(None, JobState::AwaitingInput));
    Ok(SummaryBody {
        running: jobs(None, JobState::Running),
        queued: jobs(None, JobState::Queued),
        waiting_for_person: awaiting_auth + awaiting_input,
        awaiting_auth,
        awaiting_input,
        failed: read.failed,
        waiters: if caller.rights.is_admin() { Waits::of(runtime).open() } else { 0 },
        slots: slots.collect(),
    })
}
