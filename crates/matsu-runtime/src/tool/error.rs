//! A refused or failed call, in words for the reader.

use serde_json::{Value, json};

use matsu_core::error_code::ErrorCode;
use matsu_core::ports::store::StoreError;

use crate::tasks::TaskError;
use crate::tasks::status::WaitError;

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    pub code: ErrorCode,
    pub message: String,
    pub details: Value,
}

impl ToolError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: json!({}) }
    }

    /// A parameter that will not do: which, what was expected, what came.
    pub fn param(name: &str, expected: &str, received: &str, message: impl Into<String>) -> Self {
        let details = json!({ "param_name": name, "expected": expected, "received": received });
        Self { details, ..Self::new(ErrorCode::InvalidParams, message) }
    }
}

impl ToolError {
    /// The caller is gone; this message is not read.
    #[must_use]
    pub fn caller_disconnected() -> Self {
        Self::new(ErrorCode::StoreUnavailable, "the wait was ended; call again")
    }
}

impl From<TaskError> for ToolError {
    fn from(error: TaskError) -> Self {
        let code = error.code();
        match error {
            TaskError::NotFound(id) => Self {
                details: json!({ "task_id": id.as_str() }),
                ..Self::new(
                    code,
                    format!("task {id} was not found; list yours with `matsu tasks` or get_task_status without ids"),
                )
            },
            TaskError::Unavailable(_) => Self {
                details: json!({ "retryable": true }),
                ..Self::new(code, "the store is not available right now; try again in a few seconds")
            },
            other => Self::new(code, other.to_string()),
        }
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        TaskError::from(error).into()
    }
}

impl From<WaitError> for ToolError {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::Task(error) => error.into(),
            WaitError::CallerDisconnected => Self::caller_disconnected(),
        }
    }
}
