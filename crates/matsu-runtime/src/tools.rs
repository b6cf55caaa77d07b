//! The list of tools. Adding one is a file in `tools/`, a `mod` line and an entry here.

mod cancel_task;
mod get_task_status;
mod list_agents;
mod run_start;
mod task_report;
mod use_agent;
mod use_agents;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use matsu_core::id::TaskId;
use matsu_core::task::Task;

use crate::tool::{ToolContext, ToolEntry};

/// Every tool, in the order clients see them.
pub static TOOLS: LazyLock<Vec<ToolEntry>> = LazyLock::new(|| {
    vec![
        ToolEntry::of::<list_agents::ListAgents>(),
        ToolEntry::of::<use_agent::UseAgent>(),
        ToolEntry::of::<use_agents::UseAgents>(),
        ToolEntry::of::<get_task_status::GetTaskStatus>(),
        ToolEntry::of::<cancel_task::CancelTask>(),
    ]
});

/// What a wait that went on as a task of its own ends with: the answer of the tool that it began with.
#[must_use]
pub fn wait_is_over(ids: &[TaskId]) -> Value {
    let mut fields = match serde_json::to_value(get_task_status::arrived(ids)) {
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
    use crate::dispatch::check;

    #[test]
    fn the_end_of_a_wait_is_an_answer_of_its_tool() {
        let tool = TOOLS.iter().find(|tool| tool.name == "get_task_status").unwrap();
        for ids in [vec![TaskId::from_text("task_a")], vec![TaskId::from_text("task_a"), TaskId::from_text("task_b")]] {
            let mut said = wait_is_over(&ids);
            check::arguments(tool.output_schema(), &said).unwrap_or_else(|error| panic!("{error}: {said}"));
            said["arrived"] = Value::Null;
            assert!(check::arguments(tool.output_schema(), &said).is_err(), "the check says something");
        }
    }
}
