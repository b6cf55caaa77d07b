//! What goes around a tool's own fields: `ok`, or the error with its code and id.

use serde_json::{Map, Value, json};

use matsu_core::error_code::ErrorCode;
use matsu_core::id::ErrorId;
use matsu_core::redaction;

use super::{ToolContext, ToolEntry, ToolError, reply_check};

/// In debug builds a reply that does not fit its schema becomes an error, so that no test passes over it.
pub(crate) fn checked(entry: &ToolEntry, cx: &ToolContext, body: Value, is_error: bool) -> (Value, bool) {
    if !cfg!(debug_assertions) {
        return (body, is_error);
    }
    let fits = reply_check::check(entry.reply_schema(), &body);
    match fits.and_then(|()| reply_check::check(entry.output_schema(), &body)) {
        Ok(()) => (body, is_error),
        Err(misfit) => {
            let error = ToolError::new(ErrorCode::InternalError, format!("the reply breaks its schema: {misfit}"));
            (refuse(entry, cx, &error), true)
        }
    }
}

/// An outcome in its envelope, and whether it is an error.
pub(crate) fn of(entry: &ToolEntry, cx: &ToolContext, outcome: Result<Map<String, Value>, ToolError>) -> (Value, bool) {
    match outcome {
        Ok(mut fields) => {
            fields.insert("ok".to_owned(), Value::Bool(true));
            checked(entry, cx, Value::Object(fields), false)
        }
        Err(error) => (refuse(entry, cx, &error), true),
    }
}

/// The error envelope. The log has more under the same id.
pub(crate) fn refuse(entry: &ToolEntry, cx: &ToolContext, error: &ToolError) -> Value {
    let error_id = ErrorId::mint(cx.runtime.clock().now());
    let message = if error.code == ErrorCode::InternalError {
        tracing::error!(error.id = %error_id, tool = entry.name, detail = %error.message, "tool call failed");
        "internal error; the log of the server has the cause under this error_id"
    } else if cx.caller.is_cancelled() {
        // Client disconnected; log at debug.
        tracing::debug!(error.id = %error_id, tool = entry.name, "client disconnected");
        error.message.as_str()
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
        "error": redaction::redact(message),
        "error_id": error_id.as_str(),
        "details": details,
    })
}
