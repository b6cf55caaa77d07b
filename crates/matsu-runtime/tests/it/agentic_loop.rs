//! The loop on paused time, with models and tools that a test writes down.

mod approvals;
mod calls;
mod endings;
mod later;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use matsu_core::clock::{Clock, Timestamp};
use matsu_core::history::{Entry, validate};
use matsu_core::ports::provider::Provider;
use matsu_core::ports::tool_source::ToolSource;
use matsu_runtime::models::agentic_loop::{AgenticLoopResult, Event, LoopOptions, execute_with_tools};

pub const NOW: Timestamp = Timestamp::from_millis(1_000);

pub fn options() -> LoopOptions {
    LoopOptions::new(Clock::system())
}

pub fn with_tools(tools: Arc<impl ToolSource + 'static>) -> LoopOptions {
    LoopOptions { tools: Some(tools), ..options() }
}

pub fn question() -> Vec<Entry> {
    vec![Entry::system("Be brief.", NOW), Entry::user("What is there?", NOW)]
}

/// Runs a loop on the question. Whatever happens, the transcript must be valid afterwards.
pub async fn run(model: Arc<impl Provider + 'static>, options: LoopOptions) -> Arc<AgenticLoopResult> {
    let history = question();
    let before = history.clone();
    let result = execute_with_tools(model, &history, options).collect().await;
    assert_eq!(history, before, "the caller's history is never changed");
    let whole: Vec<Entry> = history.into_iter().chain(result.history_delta.clone()).collect();
    assert_eq!(validate(&whole), Ok(()), "{result:#?}");
    result
}

/// Each event of a loop with the time at which it came.
pub async fn timed(model: Arc<impl Provider + 'static>, options: LoopOptions) -> Vec<(Duration, Event)> {
    let (clock, mut events) = (Clock::system(), Vec::new());
    let began = clock.instant();
    let mut stream = execute_with_tools(model, &question(), options);
    while let Some(event) = stream.next().await {
        events.push((clock.instant() - began, event));
    }
    events
}

/// The kinds of events, one word each.
pub fn kinds(result: &AgenticLoopResult) -> Vec<&'static str> {
    let kind = |event: &Event| match event {
        Event::Text(_) => "text",
        Event::Thinking(_) => "thinking",
        Event::ToolCall { .. } => "tool_call",
        Event::Asked { .. } => "asked",
        Event::ToolResult { .. } => "tool_result",
        Event::Notice(_) => "notice",
        Event::Done(_) => "done",
    };
    result.chunks.iter().map(kind).collect()
}

/// Contents of the results, in order, and whether each is an error.
pub fn results(result: &AgenticLoopResult) -> Vec<(String, bool)> {
    let results = result.chunks.iter().filter_map(|event| match event {
        Event::ToolResult { content, is_error, .. } => Some((content.clone(), *is_error)),
        _ => None,
    });
    results.collect()
}
