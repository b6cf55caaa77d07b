//! The rows of the contract: one file each and one line in `ROWS`.

mod agent_runs;
mod answers;
mod checked_runs;
mod claim_complete_postgres;
mod claim_complete_sqlite;
mod dispatch_overhead;
mod enqueue_sqlite;
mod enqueue_to_start;
mod first_token;
mod growth_history;
mod growth_queue;
mod growth_waiters;
mod local_search;
mod memory_per_waiter;
mod page_extraction;
mod queue_searches;
mod run_starts;
mod stance_judge;
mod start_and_idle;
mod tool_call_cpu;
mod wake_http;
mod woken_at_once;

use anyhow::{Result, ensure};

use crate::bench::Bench;
use crate::report::Section;

pub struct Row {
    pub name: &'static str,
    run: fn(&Bench) -> Result<Section>,
}

/// In the order of the report.
pub const ROWS: &[Row] = &[
    Row { name: "enqueue-sqlite", run: enqueue_sqlite::run },
    Row { name: "claim-complete-sqlite", run: claim_complete_sqlite::run },
    Row { name: "claim-complete-postgres", run: claim_complete_postgres::run },
    Row { name: "enqueue-to-start", run: enqueue_to_start::run },
    Row { name: "wake-http", run: wake_http::run },
    Row { name: "memory-per-waiter", run: memory_per_waiter::run },
    Row { name: "woken-at-once", run: woken_at_once::run },
    Row { name: "queue-searches", run: queue_searches::run },
    Row { name: "agent-runs", run: agent_runs::run },
    Row { name: "run-starts", run: run_starts::run },
    Row { name: "checked-runs", run: checked_runs::run },
    Row { name: "dispatch-overhead", run: dispatch_overhead::run },
    Row { name: "tool-call-cpu", run: tool_call_cpu::run },
    Row { name: "first-token", run: first_token::run },
    Row { name: "start-and-idle", run: start_and_idle::run },
    Row { name: "page-extraction", run: page_extraction::run },
    Row { name: "stance-judge", run: stance_judge::run },
    Row { name: "answers", run: answers::run },
    Row { name: "local-search", run: local_search::run },
    Row { name: "growth-queue", run: growth_queue::run },
    Row { name: "growth-history", run: growth_history::run },
    Row { name: "growth-waiters", run: growth_waiters::run },
];

/// `save` sees all sections so far after each row, so that an interrupted run keeps what it has.
pub fn run(bench: &Bench, only: &[String], save: impl Fn(&[Section]) -> Result<()>) -> Result<()> {
    for name in only {
        ensure!(ROWS.iter().any(|row| row.name == name), "no row is called {name}; --list prints them");
    }
    let mut sections = Vec::new();
    for row in ROWS.iter().filter(|row| only.is_empty() || only.iter().any(|name| name == row.name)) {
        eprintln!("{}", row.name);
        sections.push((row.run)(bench)?);
        save(&sections)?;
    }
    Ok(())
}
