//! The list of tools. Adding one is a file in `tools/`, a `mod` line and an entry here.

mod calibration_metrics;
mod calibration_rollback;
mod cancel_task;
mod create_task;
mod feedback;
mod get_auth_queue;
mod get_materials;
mod get_status;
mod get_task_status;
mod queue_searches;
mod resolve_auth;
mod stop_task;
mod task_report;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::native_task::Arrived;
use crate::tool::{Tool, ToolEntry};

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
        ToolEntry::of::<get_task_status::GetTaskStatus>(),
        ToolEntry::of::<cancel_task::CancelTask>(),
    ]
});

/// What a wait that went on as a task of its own ends with: an answer of the tool that it began with.
#[must_use]
pub fn wait_is_over(arrived: &Arrived) -> Value {
    let said = match arrived.tool.as_str() {
        get_status::GetStatus::NAME => serde_json::to_value(get_status::arrived(&arrived.ids)),
        _ => serde_json::to_value(get_task_status::arrived(&arrived.ids)),
    };
    let mut fields = match said {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    fields.insert("ok".to_owned(), Value::Bool(true));
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::check;
    use matsu_core::id::TaskId;

    #[test]
    fn the_end_of_a_wait_is_an_answer_of_its_tool() {
        let one = vec![TaskId::from_text("task_a")];
        let two = vec![TaskId::from_text("task_a"), TaskId::from_text("task_b")];
        for (name, ids) in [("get_task_status", one.clone()), ("get_task_status", two), ("get_status", one)] {
            let tool = TOOLS.iter().find(|tool| tool.name == name).unwrap();
            let mut said = wait_is_over(&Arrived { tool: name.to_owned(), ids });
            check::arguments(tool.output_schema(), &said).unwrap_or_else(|error| panic!("{error}: {said}"));
            said["arrived"] = Value::Null;
            assert!(check::arguments(tool.output_schema(), &said).is_err(), "the check says something");
        }
    }
}
