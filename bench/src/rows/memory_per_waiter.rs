//! What one parked waiter costs the server in resident memory.

use anyhow::Result;

use crate::bench::Bench;
use crate::measure::median;
use crate::peers::bare_axum::BareAxum;
use crate::report::{Section, Table};
use crate::wake;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Memory per parked waiter", "≤ 25 KB");
    let count = bench.size.pick(1_000, 10_000);
    let runtime = tokio::runtime::Runtime::new()?;
    let mut found = Vec::new();
    for _ in 0..bench.rounds.min(3) {
        found.push(runtime.block_on(async {
            let target = BareAxum::launch().await?;
            wake::memory_per_waiter(&target, count).await
        })?);
    }
    let kilobytes = median(found).unwrap_or_default() / 1024.0;
    eprintln!("  bare axum: {kilobytes:.1} KiB");
    section.tables.push(Table {
        caption: format!("Growth of the server's resident memory, {count} waiters"),
        header: ["contender", "KiB per waiter"].map(str::to_owned).to_vec(),
        lines: vec![vec!["bare axum".to_owned(), format!("{kilobytes:.1}")]],
    });
    section
        .notes
        .push("Kernel socket buffers are outside resident memory and the same for every contender.".to_owned());
    Ok(section)
}
