//! How an agent ends its task session: what it reports, and what that makes of the task.

use matsu_core::change::ChangeKind;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::end::clip;
use matsu_core::job::{JobKind, JobState, Priority};
use matsu_core::limits::ERROR_MESSAGE_CHARS_MAX;
use matsu_core::ports::store::{Report, Reported, StoreError};
use matsu_core::session::{EndReason, Outcome, Session, SessionState};
use matsu_core::slot::Slot;
use matsu_core::task::{Task, TaskStatus};

use super::steer;
use crate::sql::{Sql, Transition, Tx, params};
use crate::transitions::chats::interrupts;
use crate::transitions::chats::sessions::{announce, read_session};
use crate::transitions::hold::hold;
use crate::transitions::ledger::Ledger;

const END: Sql = Sql::both(
    "UPDATE sessions SET state = 'ended', end_reason = coalesce(end_reason, $2), ended_at = $3, report_json = $4 \
     WHERE id = $1 AND state <> 'ended'",
);
const ACKNOWLEDGE_ALL: Sql = Sql::both(
    "UPDATE notifications SET acknowledged_at = $2 WHERE session_id = $1 AND acknowledged_at IS NULL \
     AND voided_at IS NULL",
);
/// What the session did, as the job it was: a caller that reads the task finds it like any other result.
const RECORD: Sql = Sql::both(concat!(
    "INSERT INTO jobs (id, task_id, kind, priority, slot, state, hold, input_json, output_json, error_code, \
     error_message, queued_at, started_at, finished_at, cause_id, run_at, attempt, failures) \
     VALUES ($1, $2, $3, $4, $5, $6, ",
    hold!(None),
    ", '{}', $7, $8, $9, $10, $10, $11, $12, $10, 1, $13)",
));

impl Transition for Report {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Reported, StoreError> {
        let session = read_session(tx, &self.session_id).await?;
        let Some(task_id) = session.task_id.clone() else {
            return Err(StoreError::NotFound { what: "task", id: session.id.to_string() });
        };
        let mut ledger = Ledger::lock(tx, [task_id.clone()]).await?;
        let task = ledger.existing(&task_id)?.clone();
        let said = serde_json::json!({
            "result": self.outcome, "summary": self.summary, "next_steps": self.next_steps,
        });
        let ended =
            tx.run(&END, params![&session.id, EndReason::Reported.as_str(), self.now, &said.to_string()]).await?;
        if ended > 0 {
            tx.run(&ACKNOWLEDGE_ALL, params![&session.id, self.now]).await?;
            if decides(&session, &task) {
                settle(tx, &mut ledger, self, (&session, &task)).await?;
            }
            announce(tx, &session.agent_id, &session.project_id, self.now).await?;
        }
        let task = ledger.write(tx, self.now).await?.into_iter().next();
        let status = task.map_or(TaskStatus::Completed, |task| task.status);
        Ok(Reported { task_id, status })
    }
}

/// A task that has ended, that a person holds back, or that another agent has by now keeps its status.
fn decides(session: &Session, task: &Task) -> bool {
    let is_its_own = task.assignee.as_deref().is_none_or(|agent| agent == session.agent_id.as_str());
    session.state != SessionState::Ended && is_its_own && !task.status.is_terminal() && !task.status.is_held()
}

async fn settle(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    report: &Report,
    (session, task): (&Session, &Task),
) -> Result<(), StoreError> {
    let state = match report.outcome {
        Outcome::Blocked => {
            ledger.change(&task.id, ChangeKind::TaskStatus, |task| {
                task.status = TaskStatus::Blocked;
                task.held_by = Some(session.principal());
                task.status_message.clone_from(&report.summary);
            });
            steer::hold_queued(tx, &task.id).await?;
            return Ok(());
        }
        Outcome::Success => JobState::Completed,
        Outcome::Failed => JobState::Failed,
    };
    // A run of ours is settled by its own body when its process has ended.
    if !task.is_carried_by_session() {
        return Ok(());
    }
    let summary = report.summary.clone().unwrap_or_default();
    let failed = report.outcome == Outcome::Failed;
    let error = failed.then(|| clip(&summary, ERROR_MESSAGE_CHARS_MAX));
    let output = serde_json::json!({ "result": summary, "next_steps": report.next_steps }).to_string();
    let values = params![
        &report.job_id,
        &task.id,
        JobKind::AgentRun.as_str(),
        Priority::Medium.rank(),
        Slot::AgentCli.as_str(),
        state.as_str(),
        &output,
        failed.then_some(ErrorCode::AgentReportedFailure.as_str()),
        error.as_ref(),
        session.created_at,
        report.now,
        &session.id,
        i64::from(failed),
    ];
    tx.run(&RECORD, values).await?;
    interrupts::void(tx, &task.id, report.now).await?;
    ledger.change(&task.id, ChangeKind::JobFinished, |task| task.counts.add(state, 1));
    Ok(())
}
