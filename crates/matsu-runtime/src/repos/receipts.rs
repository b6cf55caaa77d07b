//! Receipts of checked runs: reading one, and running its check once more.

use matsu_core::error_code::ErrorCode;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobKind, NewJob, Priority};
use matsu_core::ports::store::InsertedTask;
use matsu_core::principal::Principal;
use matsu_core::receipt::{Check, Receipt};
use matsu_core::run::{Changes, RunInput};
use matsu_core::slot::Slot;
use matsu_core::task::{IdempotencyKey, NewTask, TaskKind};
use serde_json::json;

use super::Repos;
use crate::agents::{Agents, MeantRun, RunChoice};
use crate::tasks::{TaskError, Tasks};

/// A check to run on a commit.
pub(super) struct CheckAgain {
    pub title: String,
    /// The task whose run left the commit.
    pub of: TaskId,
    pub changes: Changes,
    pub check: Check,
    pub parent: Option<TaskId>,
    pub idempotency: Option<IdempotencyKey>,
}

impl Repos<'_> {
    /// The receipt of a run.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Invalid` if the run was not checked.
    pub async fn receipt_of(self, owner: &Principal, id: &TaskId, agent: Option<&str>) -> Result<Receipt, TaskError> {
        let run = self.checked_run(owner, id, agent).await?;
        run.output.receipt.clone().map(|receipt| *receipt).ok_or_else(|| unchecked(id, &run))
    }

    /// Runs the check of a receipt again, on the same commit, as a task of its own.
    ///
    /// # Errors
    /// As [`Agents::receipt_of`].
    pub async fn verify_receipt(
        self,
        owner: &Principal,
        id: &TaskId,
        agent: Option<&str>,
    ) -> Result<InsertedTask, TaskError> {
        let mut run = self.checked_run(owner, id, agent).await?;
        let receipt = run.output.receipt.take().ok_or_else(|| unchecked(id, &run))?;
        let again = CheckAgain {
            title: format!("check of {id} again"),
            of: id.clone(),
            changes: run.output.changes.unwrap_or_default(),
            check: receipt.check,
            parent: None,
            idempotency: None,
        };
        self.check_of(owner, again, agent).await
    }

    /// Runs a check on a commit, as a task of its own.
    ///
    /// # Errors
    /// `NotFound` for a foreign task.
    pub(super) async fn check_again(self, owner: &Principal, again: CheckAgain) -> Result<InsertedTask, TaskError> {
        self.check_of(owner, again, None).await
    }

    async fn check_of(
        self,
        owner: &Principal,
        again: CheckAgain,
        agent: Option<&str>,
    ) -> Result<InsertedTask, TaskError> {
        let MeantRun { input, mut output, .. } = self.checked_run(owner, &again.of, agent).await?;
        output.receipt = None;
        output.check_output = String::new();
        output.changes = Some(again.changes);
        let input = RunInput {
            check: Some(again.check),
            retries: 0,
            resume: false,
            continues: None,
            resolves: None,
            resolves_on: None,
            presence: None,
            consent: None,
            fallback: Vec::new(),
            depends_on: Vec::new(),
            not_before: None,
            verifies: Some(Box::new(output)),
            ..input
        };
        let now = self.runtime.clock().now();
        let input_json = serde_json::to_string(&input).map_err(|error| TaskError::Invalid(error.to_string()))?;
        let job = NewJob {
            id: JobId::mint(now),
            kind: JobKind::AgentRun,
            priority: Priority::High,
            slot: Slot::AgentCli,
            input_json,
            cause_id: None,
            run_at: now,
            dedupe_key: None,
        };
        let config = json!({ "verifies": again.of, "working_directory": input.directory });
        let task = NewTask {
            id: TaskId::mint(now),
            kind: TaskKind::Agent,
            owner: owner.clone(),
            project_id: None,
            title: again.title,
            config_json: config.to_string(),
            budget: Vec::new(),
            assignee: None,
            parent_id: again.parent,
            depends_on: Vec::new(),
            jobs: vec![job],
            idempotency: again.idempotency,
            created_at: now,
        };
        Tasks::of(self.runtime).submit_run(task, None).await
    }

    async fn checked_run(self, owner: &Principal, id: &TaskId, agent: Option<&str>) -> Result<MeantRun, TaskError> {
        Agents::of(self.runtime).meant_run(owner, id, RunChoice::done(agent, "receipt TASK")).await
    }
}

fn unchecked(id: &TaskId, run: &MeantRun) -> TaskError {
    let why = match (&run.input.check, &run.job.error_code) {
        (None, _) => "it was started without a check".to_owned(),
        (Some(_), Some(code)) if code == ErrorCode::NoChange.as_str() => {
            format!("its run changed no file, so there was nothing to check ({code})")
        }
        (Some(_), Some(code)) => format!("its run ended before it could be checked ({code})"),
        (Some(_), None) if run.job.state.is_finished() => {
            format!("its run was {} and not checked", run.job.state)
        }
        (Some(_), None) => "its check has not ended; wait for it with matsu status TASK --wait".to_owned(),
    };
    TaskError::Invalid(format!("task {id} has no receipt: {}", why.replace("TASK", id.as_str())))
}
