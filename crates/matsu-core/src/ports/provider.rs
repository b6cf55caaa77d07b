//! A model somewhere: a history and tools go in, a stream of its answer comes out.
//!
//! Dropping the stream ends the call. A stream ends with [`ModelEvent::End`] or with an error, never silently: a
//! connection that closes without the vendor's own end mark is [`ProviderFault::Truncated`].

mod fault;
mod turn;

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::Stream;
use serde_json::Value;

pub use fault::{ProviderError, ProviderFault, WaitedFor};
pub use turn::{ModelEvent, ModelTurn, Price, TurnEnd, Usage};

use crate::history::{Entry, Maker, tokens};

pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ProviderError>> + Send>>;

#[async_trait]
pub trait Provider: Send + Sync {
    /// What it is called in chats and in configuration.
    fn name(&self) -> &str;

    /// Wire format and vendor's model.
    fn maker(&self) -> Maker;

    fn limits(&self) -> ModelLimits;

    /// What it costs, if the configuration says so.
    fn price(&self) -> Option<Price>;

    /// The media types of the images that it takes; none: it is given words in their place.
    fn image_types(&self) -> &[&str] {
        &[]
    }

    /// The agent whose program answers, if one does. What it says it cost is not what is paid: a subscription pays.
    fn agent(&self) -> Option<&str> {
        None
    }

    /// Begins a turn. Returns once the vendor has accepted the request.
    ///
    /// # Errors
    /// Whatever kept the vendor from beginning to answer.
    async fn begin(&self, request: ModelRequest) -> Result<ModelStream, ProviderError>;
}

/// What fits into a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelLimits {
    /// Tokens of history and answer together.
    pub context_tokens: u64,
    /// Tokens of one answer.
    pub output_tokens: u32,
}

#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Validated and cut to the window; its system prompt is its first entry.
    pub history: Arc<[Entry]>,
    pub tools: Arc<[ToolSpec]>,
    /// The answer shall be JSON of this shape.
    pub output: Option<OutputShape>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OutputShape {
    /// Letters, digits, `_` and `-`.
    pub name: String,
    pub schema: Value,
}

/// A tool as a model sees it. Cheap to clone: each round of an answer has its own list.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Matches `^[A-Za-z0-9_-]{1,64}$`.
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// JSON Schema of an object.
    pub input: Arc<Value>,
    pub danger: Danger,
    /// About how much of a model's window its description takes.
    pub tokens: u64,
}

impl ToolSpec {
    #[must_use]
    pub fn new(name: &str, description: &str, input: impl Into<Arc<Value>>, danger: Danger) -> Self {
        let input = input.into();
        let tokens = tokens::of_text(description) + tokens::of_text(&input.to_string());
        Self { name: name.into(), description: description.into(), input, danger, tokens }
    }
}

/// What a call may do, as the source of the tool declares it. A hint, not a guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    ReadOnly,
    Writes,
    Destructive,
}
