//! The same work once more, as a new task.

use std::collections::HashSet;

use matsu_core::budget::BudgetLine;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobKind, NewJob};
use matsu_core::ports::store::InsertedTask;
use matsu_core::principal::Principal;
use matsu_core::task::NewTask;

use crate::runtime::Runtime;

use super::TaskError;

impl Runtime {
    /// Starts a finished task again: same kind, settings, budget and jobs, new ids. The first one stays as it is.
    ///
    /// # Errors
    /// `NotFound` for a foreign task, `Invalid` for one that has not ended.
    pub async fn retry(&self, owner: &Principal, id: &TaskId) -> Result<InsertedTask, TaskError> {
        let old = self.read_own(owner, id).await?;
        if !old.status.is_terminal() {
            return Err(TaskError::Invalid(format!("{id} is {} and can be retried when it has ended", old.status)));
        }
        let now = self.clock().now();
        let budget = self.store().budget(id).await?;
        let jobs = self.jobs_of(id).await?;
        let mut keys = HashSet::new();
        // Two jobs of one key were never open at the same time; queued together the second would be refused.
        let wanted = jobs.into_iter().filter(|job| job.dedupe_key.as_ref().is_none_or(|key| keys.insert(key.clone())));
        let jobs = wanted.map(|job| {
            let id = if job.kind == JobKind::Search { JobId::mint_search(now) } else { JobId::mint(now) };
            NewJob {
                id,
                kind: job.kind,
                priority: job.priority,
                slot: job.slot,
                input_json: job.input_json,
                cause_id: Some(job.id.to_string()),
                run_at: now,
                dedupe_key: job.dedupe_key,
            }
        });
        let task = NewTask {
            id: TaskId::mint(now),
            kind: old.kind,
            owner: old.owner,
            project_id: old.project_id,
            title: old.title,
            config_json: old.config_json,
            budget: budget.into_iter().map(|line| BudgetLine { used: 0, ..line }).collect(),
            assignee: old.assignee,
            // The one who started it may have ended long ago.
            parent_id: None,
            jobs: jobs.collect(),
            idempotency: None,
            created_at: now,
        };
        // Not through the bound on one call: the jobs were taken once already.
        Ok(self.store().insert_task(task).await?)
    }
}
