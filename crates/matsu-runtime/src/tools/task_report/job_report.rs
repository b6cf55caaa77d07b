//! What one job of several came to.

use schemars::JsonSchema;
use serde::Serialize;

use matsu_core::job::{Job, JobState};
use matsu_core::ports::store::{OutputFrom, OutputStream};
use matsu_core::run::RunInput;
use matsu_core::task::Task;

use super::{ChangesReport, LeftWorkReport, QuestionReport, ReceiptReport, TriedReport, part_of, read, run_output};
use crate::tool::{ToolContext, ToolError};

/// Bytes of each result where there are several.
const EACH_RESULT_BYTES_MAX: usize = 4_000;

#[derive(Debug, Serialize, JsonSchema)]
pub struct JobReport {
    pub(super) job_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cli_name: Option<String>,
    pub(super) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<QuestionReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error_code: Option<String>,
    /// Its budget was used up, so it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) over_budget: Option<String>,
    /// Agents that were tried before and did not do it, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tried: Vec<TriedReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) changes: Option<ChangesReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) receipt: Option<ReceiptReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) check_output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_work: Option<LeftWorkReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) review: Option<String>,
}

impl JobReport {
    pub(super) async fn of(cx: &ToolContext, task: &Task, job: &Job) -> Result<Self, ToolError> {
        let run = run_output(job);
        let input: Option<RunInput> = serde_json::from_str(&job.input_json).ok();
        let result = match (&input, job.state) {
            (Some(_), JobState::Completed) => {
                let slice = read(cx, job, OutputStream::Result, OutputFrom::Byte(0), EACH_RESULT_BYTES_MAX).await?;
                let left = slice.total - slice.end;
                let mark = if left > 0 { format!("\n[… {left} more bytes]") } else { String::new() };
                Some(format!("{}{mark}", slice.marked()))
            }
            (None, JobState::Completed) => {
                job.output_json.as_deref().map(|output| part_of(output, 0, EACH_RESULT_BYTES_MAX).0.to_owned())
            }
            _ => None,
        };
        let agent = input.map(|input| input.agent);
        Ok(Self {
            job_id: job.id.to_string(),
            status: job.state.to_string(),
            question: None,
            result,
            error: job.error_message.clone(),
            error_code: job.error_code.clone(),
            review: task.review_of(&job.id).map(|review| review.state.to_string()),
            left_work: run.as_ref().and_then(|run| run.left_work.as_ref().map(LeftWorkReport::of)),
            receipt: run.as_ref().and_then(|run| run.receipt.as_deref().map(ReceiptReport::of)),
            check_output: run.as_ref().map(|run| run.check_output.clone()).filter(|output| !output.is_empty()),
            over_budget: run.as_ref().and_then(|run| run.over_budget.clone()),
            tried: run.iter().flat_map(|run| &run.tried).map(TriedReport::of).collect(),
            changes: run.and_then(|run| run.changes.map(|changes| ChangesReport::of(job, &changes, agent.as_deref()))),
            cli_name: agent,
        })
    }
}
