//! `answer_question`: answers what a run asks, by the job that asks and the id of its question.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::id::{JobId, TaskId};
use matsu_core::run::Answer;

use crate::agents::Agents;
use crate::tasks::Tasks;
use crate::tool::{Annotations, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct AnswerQuestion;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The task that asks.
    #[schemars(length(min = 1, max = 100))]
    task_id: String,
    /// The job that asks: question.job_id.
    #[schemars(length(min = 1, max = 100))]
    job_id: String,
    /// The question: question.id.
    question_id: String,
    /// One of question.options.
    option: Option<String>,
    /// Free text, if there are no options or none fits.
    text: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    task_id: String,
    message: &'static str,
}

impl Tool for AnswerQuestion {
    const NAME: &'static str = "answer_question";
    const TITLE: &'static str = "Answer the question of a task";
    const DESCRIPTION: &'static str = "Task: answers the question of an agent that get_task_status shows with status \
        input_required; its run then continues. Ask your user first if the answer permits something that they did not \
        ask for. Then wait for the result with get_task_status.";
    const TOOLSET: Toolset = Toolset::Agents;
    const CORE: bool = true;
    // An answer may permit a run to change or remove things.
    const ANNOTATIONS: Annotations = Annotations { destructive: true, idempotent: true, ..Annotations::ADDS };
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let (task, job) = (TaskId::from_text(input.task_id), JobId::from_text(input.job_id));
        let given = Answer { id: input.question_id, option: input.option, text: input.text };
        Agents::of(&cx.runtime).answer(&cx.principal, &task, Some(&job), &given).await?;
        let has_ended = Tasks::of(&cx.runtime).read(&cx.principal, &task).await?.status.is_terminal();
        let message = if has_ended {
            "This answer was given before, and the task has ended. Read its result with get_task_status."
        } else {
            "Answered. Wait for the result with get_task_status."
        };
        Ok(ToolReply::Done(Output { task_id: task.to_string(), message }))
    }
}
