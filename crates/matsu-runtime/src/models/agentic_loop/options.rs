//! What a loop is given besides its model and its history.

use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::limits::{LOOP_CALLS_AT_ONCE_MAX, LOOP_ITERATIONS_MAX, LOOP_TIME_MAX, TOOL_TIME_MAX};
use matsu_core::ports::provider::OutputShape;
use matsu_core::ports::tool_source::ToolSource;
use tokio_util::sync::CancellationToken;

use super::approval::{Approver, ByDanger};
use super::outputs::KeptOutputs;
use super::spending::Spending;

#[derive(Clone)]
pub struct LoopOptions {
    pub clock: Clock,
    /// None: the model has no tools.
    pub tools: Option<Arc<dyn ToolSource>>,
    pub approver: Arc<dyn Approver>,
    pub iterations_max: u32,
    pub time_max: Duration,
    pub tool_time_max: Duration,
    pub calls_at_once_max: usize,
    /// Long outputs of the chat that this loop belongs to.
    pub outputs: Arc<KeptOutputs>,
    /// Shared with whatever this loop starts, so that children stop too.
    pub spending: Arc<Spending>,
    /// Ends the loop and keeps what it has. Dropping the stream keeps nothing.
    pub cancel: CancellationToken,
    pub output: Option<OutputShape>,
}

/// How much one answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopLimits {
    pub iterations_max: u32,
    pub time_max: Duration,
    pub tool_time_max: Duration,
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self { iterations_max: LOOP_ITERATIONS_MAX, time_max: LOOP_TIME_MAX, tool_time_max: TOOL_TIME_MAX }
    }
}

impl LoopOptions {
    #[must_use]
    pub fn within(self, limits: LoopLimits) -> Self {
        let LoopLimits { iterations_max, time_max, tool_time_max } = limits;
        Self { iterations_max, time_max, tool_time_max, ..self }
    }

    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            tools: None,
            approver: Arc::new(ByDanger),
            iterations_max: LOOP_ITERATIONS_MAX,
            time_max: LOOP_TIME_MAX,
            tool_time_max: TOOL_TIME_MAX,
            calls_at_once_max: LOOP_CALLS_AT_ONCE_MAX,
            outputs: Arc::new(KeptOutputs::default()),
            spending: Arc::new(Spending::unbounded()),
            cancel: CancellationToken::new(),
            output: None,
        }
    }
}
