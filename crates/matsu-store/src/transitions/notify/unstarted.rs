//! Work that could not start by itself, as a task that has failed with the reason.

use matsu_core::change::ChangeKind;
use matsu_core::job::end::clip;
use matsu_core::job::{JobKind, JobState, Priority};
use matsu_core::limits::ERROR_MESSAGE_CHARS_MAX;
use matsu_core::ports::store::{FailedStarts, StoreError};
use matsu_core::principal::Principal;
use matsu_core::slot::Slot;
use matsu_core::unstarted::{FailedStart, Unstarted};

use crate::sql::{Row, Sql, Transition, Tx, params};
use crate::transitions::hold::hold;
use crate::transitions::ledger::Ledger;

/// The job that was never begun: a caller that reads the task finds the reason like any other error.
const RECORD: Sql = Sql::both(concat!(
    "INSERT INTO jobs (id, task_id, kind, priority, slot, state, hold, input_json, error_code, error_message, queued_at, \
     finished_at, run_at, attempt, failures) VALUES ($1, $2, $3, $4, $5, $6, ",
    hold!(None),
    ", '{}', $7, $8, $9, $9, $9, 0, 1)",
));
const LAST_FAILED: Sql = Sql::both(
    "SELECT 'schedule', s.name, s.owner, f.due_at, f.note FROM schedules s JOIN firings f ON f.schedule_id = s.id \
     WHERE f.state = 'failed' AND f.seq = (SELECT max(seq) FROM firings WHERE schedule_id = s.id \
     AND state IN ('started', 'failed')) \
     UNION ALL \
     SELECT 'webhook', w.name, w.owner, d.received_at, d.note FROM webhooks w JOIN deliveries d ON d.webhook_id = w.id \
     WHERE d.state = 'failed' AND d.seq = (SELECT max(seq) FROM deliveries WHERE webhook_id = w.id \
     AND state IN ('started', 'failed')) \
     ORDER BY 1, 2, 3",
);

/// In the transaction that settles the start.
pub async fn record(tx: &mut Tx<'_>, unstarted: &Unstarted) -> Result<(), StoreError> {
    let (id, at) = (&unstarted.task_id, unstarted.at);
    unstarted.task().run(tx).await?;
    let message = clip(&unstarted.message, ERROR_MESSAGE_CHARS_MAX);
    let job = params![
        &unstarted.job_id,
        id,
        JobKind::AgentRun.as_str(),
        Priority::Medium.rank(),
        Slot::AgentCli.as_str(),
        JobState::Failed.as_str(),
        &unstarted.code,
        &message,
        at,
    ];
    tx.run(&RECORD, job).await?;
    let mut ledger = Ledger::lock(tx, [id.clone()]).await?;
    ledger.change(id, ChangeKind::JobFinished, |task| task.counts.add(JobState::Failed, 1));
    ledger.write(tx, at).await.map(drop)
}

impl Transition for FailedStarts {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<FailedStart>, StoreError> {
        let failed = |row: &Row| {
            let mut c = row.columns();
            Ok(FailedStart {
                kind: c.text()?,
                name: c.text()?,
                owner: Principal::from_text(c.text()?),
                at: c.time()?,
                why: c.opt_text()?.unwrap_or_default(),
            })
        };
        tx.rows(&LAST_FAILED, params![]).await?.iter().map(failed).collect()
    }
}
