//! Parts of a report: a question, what a run used, changed and left behind.

use schemars::JsonSchema;
use serde::Serialize;

use matsu_core::id::TaskId;
use matsu_core::job::Job;
use matsu_core::run::{Changes, LeftWork, RunInput};

use crate::agents::OpenQuestion;

#[derive(Debug, Serialize, JsonSchema)]
pub struct QuestionReport {
    /// The job that asks, and its agent: several of a task may ask.
    job_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cli_name: Option<String>,
    id: String,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
}

impl QuestionReport {
    pub(super) fn of(asked: &OpenQuestion) -> Self {
        Self {
            job_id: asked.job.id.to_string(),
            cli_name: agent_of(&asked.job),
            id: asked.question.id.clone(),
            text: asked.question.text.clone(),
            options: asked.question.options.clone(),
        }
    }

    /// The argument `answer` that answers it, to be filled in.
    pub fn example(&self) -> serde_json::Value {
        let given = if self.options.is_empty() { "text" } else { "option" };
        serde_json::json!({ "id": self.id, "job_id": self.job_id, given: "…" })
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct UsageReport {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangesReport {
    base: String,
    branch: String,
    files: u64,
    insertions: u64,
    deletions: u64,
    uncommitted_at_start: u64,
    /// Submodules and repositories inside the tree that the run changed: not on the branch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    /// Ignored files that the run wrote: not on the branch, and gone with its folder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignored: Vec<String>,
    /// How to read and apply the patch.
    how: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct LeftWorkReport {
    folder: String,
    why: String,
}

impl LeftWorkReport {
    pub(super) fn of(left: &LeftWork) -> Self {
        Self { folder: left.folder.clone(), why: left.why.clone() }
    }
}

impl ChangesReport {
    pub(super) fn of(task: &TaskId, changes: &Changes) -> Self {
        let how = if changes.base == changes.head {
            "It changed no file, so there is no branch.".to_owned()
        } else {
            format!("Read it: git diff {} {}. Apply it: matsu apply {task}.", changes.base, changes.head)
        };
        Self {
            base: changes.base.clone(),
            branch: changes.branch.clone(),
            files: changes.files,
            insertions: changes.insertions,
            deletions: changes.deletions,
            uncommitted_at_start: changes.uncommitted_at_start,
            left_out: changes.left_out.clone(),
            ignored: changes.ignored.clone(),
            how,
        }
    }
}

fn agent_of(job: &Job) -> Option<String> {
    serde_json::from_str::<RunInput>(&job.input_json).ok().map(|input| input.agent)
}
