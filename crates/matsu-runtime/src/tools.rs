//! The list of tools. Adding one is a file in `tools/`, a `mod` line and an entry here.

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
mod resolve_auth;
mod run_start;
mod send_message;
mod stop_task;
mod task_report;
mod use_agent;
mod use_agents;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use matsu_core::task::Task;

use crate::native_task::Arrived;
use crate::tool::{Tool, ToolContext, ToolEntry};

/// Every tool, in the order clients see them.
pub static TOOLS: LazyLock<Vec<ToolEntry>> = LazyLock::new(|| {
    vec![
        ToolEntry::of::<create_task::CreateTask>(),
        ToolEntry::of::<queue_searches::QueueSearches>(),
        ToolEntry::of::<get_status::GetStatus>(),
        ToolEntry::of::<get_materials::GetMaterials>(),
        ToolEntry::of::<stop_task::StopTask>(),
        ToolEntry::of::<get_auth_queue::GetAuthQueue>(),
        ToolEntry::of::<resolve_auth::ResolveAuth>(),
        ToolEntry::of::<feedback::Feedback>(),
        ToolEntry::of::<calibration_metrics::CalibrationMetrics>(),
        ToolEntry::of::<calibration_rollback::CalibrationRollback>(),
        ToolEntry::of::<list_agents::ListAgents>(),
        ToolEntry::of::<use_agent::UseAgent>(),
        ToolEntry::of::<use_agents::UseAgents>(),
        ToolEntry::of::<get_task_status::GetTaskStatus>(),
        ToolEntry::of::<cancel_task::CancelTask>(),
        ToolEntry::of::<authenticate::Authenticate>(),
        ToolEntry::of::<get_next_action::GetNextAction>(),
        ToolEntry::of::<send_message::SendMessage>(),
        ToolEntry::of::<get_notifications::GetNotifications>(),
        ToolEntry::of::<report_completed::ReportCompleted>(),
        ToolEntry::of::<logout::Logout>(),
    ]
});

/// What a wait that went on as a task of its own ends with: an answer of the tool that it began with.
#[must_use]
pub fn wait_is_over(arrived: &Arrived) -> Value {
    let said = match arrived {
        Arrived::Tasks { tool, ids } if tool == get_status::GetStatus::NAME => {
            serde_json::to_value(get_status::arrived(ids))
        }
        Arrived::Tasks { ids, .. } => serde_json::to_value(get_task_status::arrived(ids)),
        Arrived::NextAction => serde_json::to_value(get_next_action::arrived()),
    };
    let mut fields = match said {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    fields.insert("ok".to_owned(), Value::Bool(true));
    Value::Object(fields)
}

/// What a run that went on as a native task ends with, as the tool that started it would have answered.
pub async fn run_is_over(cx: &ToolContext, task: &Task) -> (Value, bool) {
    let Some(entry) = TOOLS.iter().find(|tool| tool.name == "use_agent") else { return (Value::Null, true) };
    let outcome = run_start::end_of_run(cx, task).await;
    let fields = outcome.map(|started| match serde_json::to_value(started) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    });
    crate::dispatch::envelope(entry, cx, fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::reply_check::check;
    use matsu_core::id::TaskId;

    #[test]
    fn the_end_of_a_wait_is_an_answer_of_its_tool() {
        let one = vec![TaskId::from_text("task_a")];
        let two = vec![TaskId::from_text("task_a"), TaskId::from_text("task_b")];
        for (name, ids) in [("get_task_status", one.clone()), ("get_task_status", two), ("get_status", one)] {
            let tool = TOOLS.iter().find(|tool| tool.name == name).unwrap();
            let mut said = wait_is_over(&Arrived::Tasks { tool: name.to_owned(), ids });
            check(tool.reply_schema(), &said).unwrap_or_else(|error| panic!("{error}: {said}"));
            said["arrived"] = Value::Null;
            assert!(check(tool.output_schema(), &said).is_err(), "the check says something");
        }
        let tool = TOOLS.iter().find(|tool| tool.name == "get_next_action").unwrap();
        check(tool.reply_schema(), &wait_is_over(&Arrived::NextAction)).unwrap();
    }
}
