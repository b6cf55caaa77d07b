//! The list of tools. Adding one is a file in `tools/`, a `mod` line and an entry here.

mod answer_question;
mod authenticate;
mod calibration_metrics;
mod calibration_rollback;
mod cancel_task;
mod create_task;
mod feedback;
mod get_auth_queue;
mod get_materials;
mod get_next_action;
mod get_notifications;
mod get_status;
mod get_task_status;
mod list_agents;
mod logout;
mod queue_searches;
mod report_completed;
mod research_access;
pub mod research_report;
mod resolve_auth;
mod run_start;
mod send_message;
mod stop_task;
mod task_report;
mod use_agent;
mod use_agents;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use matsu_core::task::Task;

use crate::tool::native_task::Arrived;
use crate::tool::{RelayedTool, Tool, ToolContext, ToolEntry, ToolReply, envelope};

pub(crate) use create_task::check as check_research;
pub(crate) use task_report::{Detail, OutputWish, TaskReport};
pub(crate) use use_agent::check as check_run;

macro_rules! tools {
    ($($tool:path),* $(,)?) => {
        /// Every tool, in the order clients see them.
        pub static TOOLS: LazyLock<Vec<ToolEntry>> = LazyLock::new(|| vec![$(ToolEntry::of::<$tool>()),*]);

        /// The same tools, with what a relay must know of them.
        pub const RELAYED: &[RelayedTool] = &[$(RelayedTool::of::<$tool>()),*];
    };
}

tools![
    create_task::CreateTask,
    queue_searches::QueueSearches,
    get_status::GetStatus,
    get_materials::GetMaterials,
    stop_task::StopTask,
    get_auth_queue::GetAuthQueue,
    resolve_auth::ResolveAuth,
    feedback::Feedback,
    calibration_metrics::CalibrationMetrics,
    calibration_rollback::CalibrationRollback,
    list_agents::ListAgents,
    use_agent::UseAgent,
    use_agents::UseAgents,
    get_task_status::GetTaskStatus,
    answer_question::AnswerQuestion,
    cancel_task::CancelTask,
    authenticate::Authenticate,
    get_next_action::GetNextAction,
    send_message::SendMessage,
    get_notifications::GetNotifications,
    report_completed::ReportCompleted,
    logout::Logout,
];

/// What a wait that went on as a task of its own ends with: what the tool that it began with answers now.
pub async fn wait_is_over(cx: &ToolContext, arrived: &Arrived) -> (Value, bool) {
    let Arrived::Tasks { tool, ids, since } = arrived else {
        let fields = serde_json::to_value(get_next_action::arrived());
        return match fields {
            Ok(Value::Object(mut fields)) => {
                fields.insert("ok".to_owned(), Value::Bool(true));
                (Value::Object(fields), false)
            }
            _ => (Value::Null, true),
        };
    };
    let named = TOOLS.iter().find(|entry| entry.name == tool);
    let Some(entry) = named.or_else(|| TOOLS.iter().find(|entry| entry.name == get_task_status::GetTaskStatus::NAME))
    else {
        return (Value::Null, true);
    };
    let arguments = match ids.as_slice() {
        // Of one task everything is shown; of several those with news.
        [only] => json!({ "task_id": only }),
        several => json!({ "task_ids": several, "since": since }),
    };
    let outcome = entry.call(cx, arguments).await.map(|answer| match answer {
        ToolReply::Done(fields) => fields,
        ToolReply::Deferred(_) => Map::new(),
    });
    envelope::of(entry, cx, outcome)
}

/// What a run that went on as a native task ends with, as the tool that started it would have answered.
pub async fn run_is_over(cx: &ToolContext, task: &Task) -> (Value, bool) {
    let Some(entry) = TOOLS.iter().find(|tool| tool.name == "use_agent") else { return (Value::Null, true) };
    let outcome = run_start::end_of_run(cx, task).await;
    let fields = outcome.map(|started| match serde_json::to_value(started) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    });
    envelope::of(entry, cx, fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::reply_check::check;

    #[test]
    fn the_end_of_a_wait_for_an_action_is_an_answer_of_its_tool() {
        let tool = TOOLS.iter().find(|tool| tool.name == "get_next_action").unwrap();
        let mut said = serde_json::to_value(get_next_action::arrived()).unwrap();
        said["ok"] = Value::Bool(true);
        check(tool.reply_schema(), &said).unwrap();
    }
}
