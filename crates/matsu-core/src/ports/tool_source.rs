//! Where tools come from: MCP servers, Matsu's own, several of them together.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::provider::ToolSpec;
use crate::history::Image;

#[async_trait]
pub trait ToolSource: Send + Sync {
    /// What is on offer now. Never fails: a server that is away is named in the notes, and the chat goes on without its
    /// tools.
    async fn offer(&self) -> Offered;

    /// Runs a call that the offer knows. Dropping the future gives the call up.
    async fn call(&self, call: ToolRequest) -> ToolReply;

    /// How long a call of this tool may go without a sign of life; `None`: as long as the loop allows.
    async fn patience(&self, _tool: &str) -> Option<Duration> {
        None
    }

    /// The caller's budget is spent: what calls have started and what goes on without them is stopped.
    async fn stop_started(&self) {}
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offered {
    pub tools: Vec<ToolSpec>,
    /// One line each for the readers of the chat: which server is away, and why.
    pub notes: Vec<String>,
}

#[derive(Clone)]
pub struct ToolRequest {
    pub name: String,
    pub arguments: Map<String, Value>,
    /// To be called whenever the tool shows a sign of life.
    pub alive: Arc<dyn Fn() + Send + Sync>,
}

/// How a call is answered.
pub enum ToolReply {
    Now(ToolAnswer),
    /// It runs on as a task of its server. The loop need not wait; the answer is what this resolves to.
    Later(Pin<Box<dyn Future<Output = ToolAnswer> + Send>>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    pub content: String,
    pub is_error: bool,
    /// What it shows beside its words.
    pub images: Vec<Image>,
}

impl ToolAnswer {
    pub fn good(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: false, images: Vec::new() }
    }

    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true, images: Vec::new() }
    }
}
