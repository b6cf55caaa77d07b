//! What surrounds every tool call, the same for every transport: log, limits, the check of the arguments, the tool,
//! and the envelope of its answer.

pub mod check;
pub mod presets;
pub mod schema;

use serde_json::{Map, Value, json};

use matsu_core::error_code::ErrorCode;
use matsu_core::id::{ErrorId, TaskId};
use matsu_core::limits::ARGUMENT_BYTES_MAX;

use crate::tool::{Answer, ToolContext, ToolEntry, ToolError};

/// What goes back to the caller.
#[derive(Debug)]
pub enum Reply {
    /// The same in both halves of an MCP result.
    Done { body: Value, is_error: bool },
    /// Follow this task instead.
    Task(TaskId),
}

/// Runs one call from arguments to envelope. Never fails: an error is an answer too.
pub async fn call(entry: &ToolEntry, cx: &ToolContext, arguments: Map<String, Value>) -> Reply {
    let began = cx.runtime.clock().instant();
    // What this instance was told by earlier replies has arrived: it has come back with another call.
    if let Some(instance) = &cx.instance {
        cx.runtime.cursors().settle(instance);
    }
    let arguments = Value::Object(arguments);
    let bytes = arguments.to_string().len();
    let outcome = checked(entry, cx, arguments, bytes).await;
    let took_ms = (cx.runtime.clock().instant() - began).as_millis();
    match outcome {
        Ok(Answer::Done(mut fields)) => {
            tracing::debug!(tool = entry.name, principal = %cx.principal, bytes, took_ms, "tool call");
            fields.insert("ok".to_owned(), Value::Bool(true));
            Reply::Done { body: Value::Object(fields), is_error: false }
        }
        Ok(Answer::Deferred(id)) => Reply::Task(id),
        Err(error) => Reply::Done { body: refuse(entry, cx, &error), is_error: true },
    }
}

/// An outcome in its envelope, and whether it is an error.
pub(crate) fn envelope(
    entry: &ToolEntry,
    cx: &ToolContext,
    outcome: Result<Map<String, Value>, ToolError>,
) -> (Value, bool) {
    match outcome {
        Ok(mut fields) => {
            fields.insert("ok".to_owned(), Value::Bool(true));
            (Value::Object(fields), false)
        }
        Err(error) => (refuse(entry, cx, &error), true),
    }
}

async fn checked(
    entry: &ToolEntry,
    cx: &ToolContext,
    arguments: Value,
    bytes: usize,
) -> Result<Answer<Map<String, Value>>, ToolError> {
    if bytes > ARGUMENT_BYTES_MAX {
        let message = format!("the arguments have {bytes} bytes; at most {ARGUMENT_BYTES_MAX} are taken");
        return Err(ToolError::new(ErrorCode::LimitExceeded, message));
    }
    check::arguments(entry.input_schema(), &arguments)?;
    entry.call(cx, arguments).await
}

/// The error envelope. The log has more under the same id.
fn refuse(entry: &ToolEntry, cx: &ToolContext, error: &ToolError) -> Value {
    let error_id = ErrorId::mint(cx.runtime.clock().now());
    let message = if error.code == ErrorCode::InternalError {
        tracing::error!(error.id = %error_id, tool = entry.name, detail = %error.message, "tool call failed");
        "something went wrong inside; the log has it under this error_id"
    } else {
        tracing::info!(error.id = %error_id, tool = entry.name, code = %error.code, detail = %error.message, "tool call refused");
        error.message.as_str()
    };
    let mut details = error.details.clone();
    if let Some(details) = details.as_object_mut() {
        details.entry("retryable").or_insert_with(|| error.code.is_retryable().into());
    }
    json!({
        "ok": false,
        "error_code": error.code.as_str(),
        "error": message,
        "error_id": error_id.as_str(),
        "details": details,
    })
}
