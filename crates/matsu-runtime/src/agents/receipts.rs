//! Receipts of checked runs: reading one, and running its check once more.

use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobKind, NewJob, Priority};
use matsu_core::ports::store::InsertedTask;
use matsu_core::principal::Principal;
use matsu_core::receipt::{Check, Receipt};
use matsu_core::run::{Changes, RunInput, RunOutput};
use matsu_core::slot::Slot;
use matsu_core::task::{IdempotencyKey, NewTask, TaskKind};
use serde_json::json;

use crate::runtime::Runtime;
use crate::tasks::TaskError;

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

impl Runtime {
    /// The receipt of a run.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Invalid` if the run was not checked.
    pub async fn receipt_of(&self, owner: &Principal, id: &TaskId, agent: Option<&str>) -> Result<Receipt, TaskError> {
        let (_, output) = self.checked_run(owner, id, agent).await?;
        output.receipt.map(|receipt| *receipt).ok_or_else(|| unchecked(id))
    }

    /// Runs the check of a receipt again, on the same commit, as a task of its own.
    ///
    /// # Errors
    /// As [`Runtime::receipt_of`].
    pub async fn verify_receipt(
        &self,
        owner: &Principal,
        id: &TaskId,
        agent: Option<&str>,
    ) -> Result<InsertedTask, TaskError> {
        let (_, mut output) = self.checked_run(owner, id, agent).await?;
        let receipt = output.receipt.take().ok_or_else(|| unchecked(id))?;
        let again = CheckAgain {
            title: format!("check of {id} again"),
            of: id.clone(),
            changes: output.changes.unwrap_or_default(),
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
    pub(super) async fn check_again(&self, owner: &Principal, again: CheckAgain) -> Result<InsertedTask, TaskError> {
        self.check_of(owner, again, None).await
    }

    async fn check_of(
        &self,
        owner: &Principal,
        again: CheckAgain,
        agent: Option<&str>,
    ) -> Result<InsertedTask, TaskError> {
        let (input, mut output) = self.checked_run(owner, &again.of, agent).await?;
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
        let now = self.clock().now();
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
        self.submit_run(task, None).await
    }

    async fn checked_run(
        &self,
        owner: &Principal,
        id: &TaskId,
        agent: Option<&str>,
    ) -> Result<(RunInput, RunOutput), TaskError> {
        self.read(owner, id).await?;
        let (job, input) = self.run_of(id, agent).await?;
        let output = job.output_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
        Ok((input, output.unwrap_or_default()))
    }
}

fn unchecked(id: &TaskId) -> TaskError {
    TaskError::Invalid(format!("task {id} has no receipt: it was started without a check, or its check has not ended"))
}
