//! Tasks and jobs as rows: their columns in order, and how they are read.

use matsu_core::id::{JobId, NodeId, TaskId};
use matsu_core::job::{Job, JobKind, JobState, JobSummary, Priority};
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;
use matsu_core::slot::Slot;
use matsu_core::task::{JobCounts, Review, Stop, StopMode, StopReason, Task, TaskKind, TaskStatus};

use crate::sql::{Columns, Row, internal};

macro_rules! task_columns {
    () => {
        "seq, id, kind, owner, project_id, title, status, status_message, held_by, revision, finished_revision, \
         attention_revision, config_json, assignee, parent_id, depth, n_queued, n_running, n_awaiting_auth, \
         n_awaiting_input, n_completed, n_failed, n_cancelled, stop_mode, stop_reason, stop_requested_at, \
         created_at, updated_at, finished_at, first_read_at, review_json, is_awaited"
    };
}

macro_rules! job_columns {
    () => {
        "seq, id, task_id, kind, priority, slot, state, input_json, output_json, error_code, error_message, \
         queued_at, started_at, finished_at, cause_id, run_at, attempt, failures, owner_node, dedupe_key, \
         progress_json, checkpoint_json"
    };
}
/// The head is counted in characters, which no dialect cuts in two.
macro_rules! summary_columns {
    () => {
        "seq, id, task_id, kind, priority, slot, state, error_code, error_message, queued_at, started_at, \
         finished_at, attempt, failures, owner_node, progress_json, substr(output_json, 1, 8192), \
         CAST(octet_length(output_json) AS BIGINT)"
    };
}
pub(crate) use {job_columns, summary_columns, task_columns};

/// Reads a row of `task_columns!()`.
pub fn task(row: &Row) -> Result<Task, StoreError> {
    let mut columns = row.columns();
    let c = &mut columns;
    Ok(Task {
        seq: c.int()?,
        id: TaskId::from_text(c.text()?),
        kind: c.word(TaskKind::parse)?,
        owner: Principal::from_text(c.text()?),
        project_id: c.opt_text()?,
        title: c.text()?,
        status: c.word(TaskStatus::parse)?,
        status_message: c.opt_text()?,
        held_by: c.opt_text()?.map(Principal::from_text),
        revision: c.int()?,
        finished_revision: c.int()?,
        attention_revision: c.int()?,
        config_json: c.text()?,
        assignee: c.opt_text()?,
        parent_id: c.opt_text()?.map(TaskId::from_text),
        depth: c.count()?,
        counts: JobCounts {
            queued: c.int()?,
            running: c.int()?,
            awaiting_auth: c.int()?,
            awaiting_input: c.int()?,
            completed: c.int()?,
            failed: c.int()?,
            cancelled: c.int()?,
        },
        stop: stop(c)?,
        created_at: c.time()?,
        updated_at: c.time()?,
        finished_at: c.opt_time()?,
        first_read_at: c.opt_time()?,
        reviews: reviews(c.opt_text()?)?,
        is_awaited: c.int()? != 0,
    })
}

fn reviews(text: Option<String>) -> Result<Vec<Review>, StoreError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    serde_json::from_str(&text).map_err(|error| internal(format!("a stored review cannot be read: {error}")))
}

fn stop(c: &mut Columns<'_>) -> Result<Option<Stop>, StoreError> {
    match (c.opt_word(StopMode::parse)?, c.opt_word(StopReason::parse)?, c.opt_time()?) {
        (Some(mode), Some(reason), Some(requested_at)) => Ok(Some(Stop { mode, reason, requested_at })),
        (None, None, None) => Ok(None),
        _ => Err(internal("a stored stop request is incomplete")),
    }
}

/// Reads rows of `job_columns!()`.
pub fn jobs(rows: &[Row]) -> Result<Vec<Job>, StoreError> {
    rows.iter().map(job).collect()
}

/// Reads a row of `job_columns!()`.
pub fn job(row: &Row) -> Result<Job, StoreError> {
    let mut columns = row.columns();
    let c = &mut columns;
    Ok(Job {
        seq: c.int()?,
        id: JobId::from_text(c.text()?),
        task_id: c.opt_text()?.map(TaskId::from_text),
        kind: c.word(JobKind::parse)?,
        priority: priority(c.int()?)?,
        slot: c.word(Slot::parse)?,
        state: c.word(JobState::parse)?,
        input_json: c.text()?,
        output_json: c.opt_text()?,
        error_code: c.opt_text()?,
        error_message: c.opt_text()?,
        queued_at: c.time()?,
        started_at: c.opt_time()?,
        finished_at: c.opt_time()?,
        cause_id: c.opt_text()?,
        run_at: c.time()?,
        attempt: c.int()?,
        failures: c.count()?,
        owner_node: c.opt_text()?.map(NodeId::from_text),
        dedupe_key: c.opt_text()?,
        progress_json: c.opt_text()?,
        checkpoint_json: c.opt_text()?,
    })
}

/// Reads a row of `summary_columns!()`.
pub fn summary(row: &Row) -> Result<JobSummary, StoreError> {
    let mut columns = row.columns();
    let c = &mut columns;
    Ok(JobSummary {
        seq: c.int()?,
        id: JobId::from_text(c.text()?),
        task_id: c.opt_text()?.map(TaskId::from_text),
        kind: c.word(JobKind::parse)?,
        priority: priority(c.int()?)?,
        slot: c.word(Slot::parse)?,
        state: c.word(JobState::parse)?,
        error_code: c.opt_text()?,
        error_message: c.opt_text()?,
        queued_at: c.time()?,
        started_at: c.opt_time()?,
        finished_at: c.opt_time()?,
        attempt: c.int()?,
        failures: c.count()?,
        owner_node: c.opt_text()?.map(NodeId::from_text),
        progress_json: c.opt_text()?,
        output_head: c.opt_text()?,
        output_bytes: c.opt_int()?,
    })
}

fn priority(rank: i64) -> Result<Priority, StoreError> {
    Priority::from_rank(rank).ok_or_else(|| internal(format_args!("unknown priority {rank}")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_head_in_the_statement_is_the_one_of_the_limits() {
        assert!(summary_columns!().contains(&format!(", {})", matsu_core::limits::RESULT_HEAD_BYTES_MAX)));
    }
}
