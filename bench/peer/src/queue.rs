//! The operations every queue in the comparison offers, and the loop that turns one order into one answer.
//!
//! Invariant: an operation a queue does not have answers `Cannot`; nothing is emulated to fill a cell of the report.

use anyhow::{Context, Result, bail};

use crate::order::{Answer, Ask, How, Order};

/// One queue on one fresh store. Each operation is called at most once per process, on an empty store.
pub trait Queue {
    fn enqueue(&mut self, jobs: usize, how: How) -> Result<Answer>;

    /// Returns once every completion is committed, not merely once every body has returned.
    fn drain(&mut self, jobs: usize, workers: usize) -> Result<Answer>;

    fn latency(&mut self, samples: usize, workers: usize) -> Result<Answer>;

    /// Claims in `latencies_ns`, status reads in `status_ns` and `old_status_ns`.
    fn history(&mut self, finished: usize, samples: usize) -> Result<Answer>;

    fn dispatch(&mut self, _samples: usize) -> Result<Answer> {
        Ok(Answer::cannot("it has no tools"))
    }
}

pub type Opener = fn(&Order) -> Result<Box<dyn Queue>>;

/// Takes the order from the last argument, prints the answer, and leaves the exit code for crashes only.
pub fn serve(openers: &[(&str, Opener)]) -> Result<()> {
    let text = std::env::args().next_back().context("expected one order as JSON")?;
    let order: Order = serde_json::from_str(&text).context("the order does not parse")?;
    println!("{}", serde_json::to_string(&answer(openers, &order))?);
    Ok(())
}

pub fn answer(openers: &[(&str, Opener)], order: &Order) -> Answer {
    match run(openers, order) {
        Ok(answer) => answer,
        Err(error) => Answer::Failed { error: format!("{error:#}") },
    }
}

fn run(openers: &[(&str, Opener)], order: &Order) -> Result<Answer> {
    let Some((_, open)) = openers.iter().find(|(name, _)| *name == order.peer) else {
        bail!("no peer is called {}", order.peer);
    };
    let mut queue = open(order)?;
    match order.ask {
        Ask::Enqueue { jobs, how } => queue.enqueue(jobs, how),
        Ask::Drain { jobs, workers } => queue.drain(jobs, workers),
        Ask::Latency { samples, workers } => queue.latency(samples, workers),
        Ask::History { finished, samples } => queue.history(finished, samples),
        Ask::Dispatch { samples } => queue.dispatch(samples),
    }
}
