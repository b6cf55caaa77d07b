//! What surrounds one call: who asks, how long it may be held, and where progress goes.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use matsu_core::principal::Principal;

use crate::cursors::InstanceId;
use crate::runtime::Runtime;

/// Takes words about a call that is still under way.
pub trait ProgressSink: Send + Sync {
    fn say(&self, message: &str);
}

#[derive(Clone)]
pub struct ToolContext {
    pub runtime: Runtime,
    pub principal: Principal,
    pub instance: Option<InstanceId>,
    /// Cancelled when nobody listens any more. Ends waits, never work.
    pub caller: CancellationToken,
    /// How long this client can be held; absent: the server's own bound.
    pub hold_max: Option<Duration>,
    /// Absent if the caller asked for none.
    pub progress: Option<Arc<dyn ProgressSink>>,
    pub tasks: NativeTasks,
}

/// Whether the caller can follow a native task. It says so with every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeTasks {
    Understood,
    Unknown,
}

impl ToolContext {
    /// How long a wish to be held is granted.
    #[must_use]
    pub fn hold_max(&self) -> Duration {
        self.hold_max.unwrap_or_else(|| self.runtime.hold_max())
    }
}
