//! What the research tools check alike: whose task it is, and which engines there are.

use serde_json::json;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::task::{Task, TaskKind};

use crate::tasks::{TaskError, Tasks};
use crate::tool::{ToolContext, ToolError};

/// The caller's research task.
pub async fn research_task(cx: &ToolContext, id: &str) -> Result<Task, ToolError> {
    let id = TaskId::from_text(id);
    let task = Tasks::of(&cx.runtime).read(&cx.principal, &id).await.map_err(|error| not_found(&id, error))?;
    if task.kind == TaskKind::Research {
        return Ok(task);
    }
    let kind = task.kind;
    let message =
        format!("{id} is a task of kind {kind}, not research; read it with get_task_status, end it with cancel_task");
    Err(ToolError::param("task_id", "id of a research task", id.as_str(), message))
}

/// In the words of research, where the way out is `create_task`.
pub fn not_found(id: &TaskId, error: TaskError) -> ToolError {
    match error {
        TaskError::NotFound(_) => ToolError {
            details: json!({ "task_id": id.as_str() }),
            ..ToolError::new(ErrorCode::TaskNotFound, format!("task {id} was not found; create one with create_task"))
        },
        error => error.into(),
    }
}

/// Refuses the first engine that this process does not have.
pub fn check_engines(cx: &ToolContext, field: &str, named: &[String]) -> Result<(), ToolError> {
    let kit = cx.runtime.research();
    let known: Vec<&str> = kit.as_ref().map_or_else(Vec::new, |kit| kit.engine_names().collect());
    match named.iter().enumerate().find(|(_, name)| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some((at, name)) => {
            let expected = format!("one of {}", known.join(", "));
            let message =
                format!("{field}[{at}]: there is no engine {name}; the configured engines are {}", known.join(", "));
            Err(ToolError::param(&format!("{field}[{at}]"), &expected, name, message))
        }
    }
}

/// Refuses research that has nothing to search: no folder, and no engine that needs none.
pub fn check_searchable(cx: &ToolContext, engines: &[String], folders: &[String]) -> Result<(), ToolError> {
    let needs_folder = cx.runtime.research().is_some_and(|kit| kit.needs_folder(engines));
    if !needs_folder || !folders.is_empty() {
        return Ok(());
    }
    let message = "there is nothing to search: no folder is given and no engine on the web is configured. Give a \
        folder (matsu research --dir DIR, the client's roots, or the setting research.folders), or set \
        research.searxng to the address of a SearXNG instance, or set research.openalex to \
        https://api.openalex.org for scholarly works";
    Err(ToolError::new(ErrorCode::NothingToSearch, message))
}

/// Notes for the caller's instance up to which revision the reply shows the task.
pub fn stage(cx: &ToolContext, task: &TaskId, revision: i64) {
    if let Some(instance) = &cx.instance {
        cx.runtime.cursors().stage(instance, task, revision);
    }
}
