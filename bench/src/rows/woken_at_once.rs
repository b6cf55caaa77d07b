//! 10,000 waiters on one topic, woken by one change.

use anyhow::Result;

use crate::bench::Bench;
use crate::peers::bare_axum::BareAxum;
use crate::report::Section;
use crate::wake;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("10,000 woken at once", "p99 ≤ 400 ms");
    let count = bench.size.pick(1_000, 10_000);
    let rounds = bench.rounds;
    let runtime = tokio::runtime::Runtime::new()?;
    let latencies = runtime.block_on(async {
        let mut target = BareAxum::launch().await?;
        wake::all_at_once(&mut target, count, rounds).await
    })?;
    section.add_latencies(&format!("{count} waiters, {rounds} rounds"), &[("bare axum".to_owned(), latencies)])?;
    section.notes.push("The client's own reading shares the cores with the server.".to_owned());
    Ok(section)
}
