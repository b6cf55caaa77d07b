//! The events of a loop while it runs, and what is left when it has ended.

use std::sync::Arc;

use matsu_core::error_code::ErrorCode;
use matsu_core::history::{Entry, Image};
use matsu_core::ports::provider::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// In order: `text`*, `tool_call`+, a `tool_result` per call in call order, …, `done` once.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Text(String),
    Thinking(String),
    ToolCall {
        id: String,
        name: String,
        arguments: Value,
    },
    /// A person is being asked whether this call may run.
    Asked {
        id: String,
        name: String,
    },
    ToolResult {
        id: String,
        name: String,
        content: String,
        is_error: bool,
        images: Vec<Image>,
    },
    /// Something that the listener should know and that is not from a model.
    Notice(String),
    Done(Arc<AgenticLoopResult>),
}

/// Why a loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    MaxIterations,
    Timeout,
    Cancelled,
    Budget,
    Error,
}

impl StopReason {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxIterations => "max_iterations",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Budget => "budget",
            Self::Error => "error",
        }
    }
}

/// What went wrong, for the reader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LoopError {
    pub code: ErrorCode,
    pub message: String,
}

/// Shared, and so never changed once it is there.
#[derive(Clone, Debug, PartialEq)]
pub struct AgenticLoopResult {
    /// Every event but the last.
    pub chunks: Vec<Event>,
    /// What is to be appended to the history.
    pub history_delta: Vec<Entry>,
    pub final_text: String,
    pub iterations_used: u32,
    pub timed_out: bool,
    pub error: Option<LoopError>,
    pub stop_reason: StopReason,
    pub usage: Usage,
    /// Millionths of the configured currency; none where no price is known.
    pub cost_micros: Option<u64>,
}
