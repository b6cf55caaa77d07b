//! `report_completed`: an agent reports how its task went, and its session ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::id::JobId;
use matsu_core::ports::store::Report;
use matsu_core::redaction::redact;
use matsu_core::session::Outcome;

use crate::tool::{Annotations, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct ReportCompleted;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// How the task ended.
    result: Result_,
    /// The result, or why there is none.
    #[schemars(length(max = 100_000))]
    summary: Option<String>,
    /// What remains to be done.
    #[schemars(length(max = 100_000))]
    next_steps: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Result")]
enum Result_ {
    Success,
    Failed,
    Blocked,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    task_id: String,
    /// The status of the task after this.
    status: String,
    instruction: String,
}

impl Tool for ReportCompleted {
    const NAME: &'static str = "report_completed";
    const TITLE: &'static str = "Report the end of your task";
    const DESCRIPTION: &'static str = "Session: report the result of your task and end the session: success, failed or \
        blocked, with a summary. Also the answer to an order to stop. Returns the task's status. A repeated call \
        changes nothing. Only for sessions with the purpose task; to end a chat session use logout.";
    const TOOLSET: Toolset = Toolset::Sessions;
    const ANNOTATIONS: Annotations = Annotations { read_only: false, ..Annotations::READS };
    const RULES: Rules = Rules::ENDS_TASK;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let now = cx.runtime.clock().now();
        let report = Report {
            session_id: cx.session()?.id.clone(),
            outcome: match input.result {
                Result_::Success => Outcome::Success,
                Result_::Failed => Outcome::Failed,
                Result_::Blocked => Outcome::Blocked,
            },
            summary: input.summary.map(|text| redact(&text).into_owned()),
            next_steps: input.next_steps.map(|text| redact(&text).into_owned()),
            job_id: JobId::mint(now),
            now,
        };
        let reported = cx.runtime.store().run(report).await?;
        cx.runtime.look_for_orders();
        Ok(ToolReply::Done(Output {
            task_id: reported.task_id.to_string(),
            status: reported.status.to_string(),
            instruction: "The session is over. Make no further calls and end.".to_owned(),
        }))
    }
}
