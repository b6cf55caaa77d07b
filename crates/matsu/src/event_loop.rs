//! The threads that a command's futures run on.

use std::time::Duration;

use anyhow::Result;
use tokio::runtime::Builder;

/// Threads that are blocked when all work has ended get this long to come back.
const BLOCKED_MAX: Duration = Duration::from_millis(100);

/// On this thread alone. For what only passes bytes on: to be woken by another thread costs more than that work.
pub fn on_this_thread<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    run(&mut Builder::new_current_thread(), work)
}

/// On as many threads as there are cores.
pub fn on_all_cores<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    run(&mut Builder::new_multi_thread(), work)
}

fn run<T>(threads: &mut Builder, work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = threads.enable_all().build()?;
    let ended = runtime.block_on(work);
    // A thread that reads from a terminal or waits for a disk would hold the process for as long as that takes.
    runtime.shutdown_timeout(BLOCKED_MAX);
    ended
}
