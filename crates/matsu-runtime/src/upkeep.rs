//! The parts that run beside the dispatchers: clocks, heartbeat, orders, the safety read, the sweep.
//!
//! None of them ends because the store is away: each logs it once, goes on trying, and logs once that it is back.

pub(crate) mod adoption;
pub(crate) mod hard_stop;
pub(crate) mod heart;
pub(crate) mod logins;
pub(crate) mod orders;
pub(crate) mod safety;
pub(crate) mod sweeper;
pub(crate) mod ticker;

use tokio_util::sync::CancellationToken;

use crate::runtime::Runtime;

/// One part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpkeepLoop {
    Ticker,
    Heart,
    Orders,
    Safety,
    Sweeper,
    HardStop,
    AuthItems,
    Adoption,
}

impl UpkeepLoop {
    pub const ALL: &'static [Self] = &[
        Self::Ticker,
        Self::Heart,
        Self::Orders,
        Self::Safety,
        Self::Sweeper,
        Self::AuthItems,
        Self::HardStop,
        Self::Adoption,
    ];

    /// Runs until it is cancelled. Each step is a transaction of its own, so it can be dropped between any two.
    pub async fn run(self, runtime: &Runtime, until: &CancellationToken) {
        let work = async {
            match self {
                Self::Ticker => ticker::run(runtime).await,
                Self::Heart => heart::run(runtime).await,
                Self::Orders => orders::run(runtime).await,
                Self::Safety => safety::run(runtime).await,
                Self::Sweeper => sweeper::run(runtime).await,
                Self::HardStop => hard_stop::run(runtime).await,
                Self::AuthItems => logins::run(runtime).await,
                Self::Adoption => adoption::run(runtime).await,
            }
        };
        let _ended = until.run_until_cancelled(work).await;
    }
}

/// Notices what other processes do to the store, and does nothing else: for a command that waits in a process without
/// workers. Runs until it is cancelled.
pub async fn listen(runtime: &Runtime, until: &CancellationToken) {
    UpkeepLoop::Safety.run(runtime, until).await;
}
