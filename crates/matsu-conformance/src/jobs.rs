//! The tools that become tasks, as jobs of the engine. A job's output is the result of the call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobEnd, JobKind, Retry};
use matsu_runtime::{JobBody, JobContext};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answers::Answers;
use crate::data::DATA;

pub struct FixtureJob {
    pub answers: Arc<Answers>,
}

#[derive(Serialize, Deserialize)]
pub struct FixtureInput {
    pub tool: String,
    pub arguments: Value,
}

#[async_trait]
impl JobBody for FixtureJob {
    fn kind(&self) -> JobKind {
        JobKind::AgentRun
    }

    fn run_seconds_max(&self, _job: &Job) -> Option<u32> {
        None
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        tokio::select! {
            biased;
            _ = cx.stop.stop_requested() => cx.stopped(),
            end = self.work(&cx) => end,
        }
    }
}

impl FixtureJob {
    async fn work(&self, cx: &JobContext) -> JobEnd {
        let Ok(input) = serde_json::from_str::<FixtureInput>(&cx.job.input_json) else {
            return failed("the input cannot be read");
        };
        let clock = *cx.runtime().clock();
        match input.tool.as_str() {
            "failing_job" => {
                clock.sleep(Duration::from_secs(1)).await;
                completed(&json!({ "isError": true, "content": [text("The job failed, as it always does.")] }))
            }
            "protocol_error_job" => failed("The job broke, as it always does."),
            "confirm_delete" | "multi_input" => self.ask(cx, &input.tool).await,
            _ => {
                clock.sleep(seconds(&input.arguments)).await;
                completed(&json!({ "content": [text(&format!("Done: {}", input.arguments))] }))
            }
        }
    }

    async fn ask(&self, cx: &JobContext, tool: &str) -> JobEnd {
        let (Some(asked), Some(task)) = (DATA.asked_during.get(tool), &cx.job.task_id) else {
            return failed("nothing to ask");
        };
        let Ok(question) = serde_json::to_string(asked) else { return failed("the question cannot be written") };
        match cx.ask(&question, self.answers.all(task, asked)).await {
            Ok(()) => completed(&json!({ "content": [text("All questions were answered.")] })),
            Err(error) => failed(&error.to_string()),
        }
    }
}

/// How long a call of `slow_compute` takes.
pub fn seconds(arguments: &Value) -> Duration {
    Duration::from_secs_f64(arguments["seconds"].as_f64().unwrap_or(0.0).clamp(0.0, 3600.0))
}

pub fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn completed(result: &Value) -> JobEnd {
    JobEnd::Completed { output_json: result.to_string() }
}

fn failed(message: &str) -> JobEnd {
    let (code, message) = (ErrorCode::InternalError.to_string(), message.to_owned());
    JobEnd::Failed { code, message, retry: Retry::Never, output_json: None }
}
