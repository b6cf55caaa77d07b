//! Parts of a report: a question, what a run used, changed and left behind.

use schemars::JsonSchema;
use serde::Serialize;

use matsu_core::id::TaskId;
use matsu_core::job::Job;
use matsu_core::receipt::Receipt;
use matsu_core::run::{Changes, LeftWork, RunInput, Tried};

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
            cli_name: asked.agent(),
            id: asked.question.id.clone(),
            text: asked.question.text.clone(),
            options: asked.question.options.clone(),
        }
    }

    /// The arguments of `answer_question` that answer it, to be filled in.
    pub fn example(&self, task: &TaskId) -> serde_json::Value {
        let given = if self.options.is_empty() { "text" } else { "option" };
        serde_json::json!({ "task_id": task, "job_id": self.job_id, "question_id": self.id, given: "…" })
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
    /// What it started from: your working tree, or your last commit.
    started_from: String,
    /// Files of your tree that the run did not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_in_base: Vec<String>,
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

#[derive(Debug, Serialize, JsonSchema)]
pub struct TriedReport {
    agent: String,
    why: String,
}

impl TriedReport {
    pub(super) fn of(tried: &Tried) -> Self {
        Self { agent: tried.agent.clone(), why: tried.why.clone() }
    }
}

/// The proof of a check, as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReceiptReport {
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    seconds: f64,
    base: String,
    head: String,
    tree: String,
    log_sha256: String,
    /// Rounds: how often the agent worked and was checked.
    rounds: u32,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// How the check was confined: sealed, fenced or open.
    confinement: String,
    /// The network of the check: off, on, or not cut.
    network: String,
    /// Files of tests and of the build that the run changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed_tests: Vec<String>,
}

impl ReceiptReport {
    pub fn of(receipt: &Receipt) -> Self {
        Self {
            passed: receipt.passed,
            why: receipt.why.clone(),
            command: receipt.check.command.to_string(),
            exit_code: receipt.exit_code,
            seconds: receipt.seconds,
            base: receipt.base.clone(),
            head: receipt.head.clone(),
            tree: receipt.tree.clone(),
            log_sha256: receipt.log_sha256.clone(),
            rounds: receipt.rounds,
            agent: receipt.agent.clone(),
            model: receipt.model.clone(),
            confinement: receipt.confinement.to_string(),
            network: receipt.network.to_string(),
            changed_tests: receipt.changed_tests.clone(),
        }
    }
}

fn started_from(changes: &Changes) -> String {
    match (changes.has_uncommitted, changes.uncommitted_at_start) {
        (true, 1) => "your working tree, with 1 uncommitted file".to_owned(),
        (true, count) => format!("your working tree, with {count} uncommitted files"),
        (false, _) => "your last commit".to_owned(),
    }
}

/// No agent worked: the changes are those of other tasks.
fn is_check(job: &Job) -> bool {
    serde_json::from_str::<RunInput>(&job.input_json).is_ok_and(|input| input.verifies.is_some())
}

impl ChangesReport {
    pub fn branch(&self) -> &str {
        &self.branch
    }

    /// `agent`: of several runs, whose changes these are.
    pub(super) fn of(job: &Job, changes: &Changes, agent: Option<&str>) -> Self {
        let task = job.task_id.as_ref().map(ToString::to_string).unwrap_or_default();
        let agent = agent.map(|agent| format!(" --agent {agent}")).unwrap_or_default();
        let how = match (changes.base == changes.head, job.state.is_finished()) {
            (true, _) => "It changed no file, so there is no branch.".to_owned(),
            (false, true) if is_check(job) => {
                format!("Only checked here. Read it: git diff {} {}.", changes.base, changes.head)
            }
            (false, true) => {
                format!("Read it: git diff {} {}. Apply it: matsu apply {task}{agent}.", changes.base, changes.head)
            }
            (false, false) => "The run has not ended: its check or another round follows.".to_owned(),
        };
        Self {
            base: changes.base.clone(),
            branch: changes.branch.clone(),
            files: changes.files,
            insertions: changes.insertions,
            deletions: changes.deletions,
            uncommitted_at_start: changes.uncommitted_at_start,
            started_from: started_from(changes),
            not_in_base: changes.not_in_base.clone(),
            left_out: changes.left_out.clone(),
            ignored: changes.ignored.clone(),
            how,
        }
    }
}
