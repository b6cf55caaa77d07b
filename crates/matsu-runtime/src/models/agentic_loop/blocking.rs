//! The loop for plain synchronous code.

use std::sync::Arc;

use matsu_core::history::Entry;
use matsu_core::ports::provider::Provider;

use super::event::AgenticLoopResult;
use super::options::LoopOptions;

/// Blocking a thread of a runtime would stop everything else that runs on it.
#[derive(Debug, thiserror::Error)]
pub enum InsideRuntime {
    #[error("execute_with_tools_blocking was called inside an async runtime; await execute_with_tools instead")]
    Running,
    #[error("no runtime can be started: {0}")]
    NoRuntime(#[from] std::io::Error),
}

/// Runs a loop to its end.
///
/// # Errors
/// Inside a running runtime, before anything was done.
pub fn execute_with_tools_blocking(
    provider: Arc<dyn Provider>,
    history: &[Entry],
    options: LoopOptions,
) -> Result<Arc<AgenticLoopResult>, InsideRuntime> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return Err(InsideRuntime::Running);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(super::execute_with_tools(provider, history, options).collect()))
}
