//! What one parked waiter costs the server in resident memory.

use anyhow::Result;

use crate::bench::Bench;
use crate::measure::median;
use crate::report::{Section, Table, grouped};
use crate::verdict::Verdict;
use crate::wake::{self, Server};

const BAR_KIB: f64 = 25.0;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Memory per parked waiter", "≤ 25 KB");
    let count = bench.size.pick(1_000, 10_000);
    let runtime = tokio::runtime::Runtime::new()?;
    let mut found = [(Server::BareAxum, Vec::new()), (Server::NORMAL, Vec::new())];
    for _ in 0..bench.rounds.min(3) {
        for (server, bytes) in &mut found {
            bytes.push(runtime.block_on(async {
                let mut target = server.launch(bench).await?;
                wake::memory_per_waiter(&mut target, count).await
            })?);
        }
    }
    let kibibytes = found.map(|(server, bytes)| (server, median(bytes).unwrap_or_default() / 1024.0));
    let base = kibibytes[0].1;
    let mut lines = Vec::new();
    for (server, seen) in kibibytes {
        eprintln!("  {}: {seen:.1} KiB", server.name());
        lines.push(vec![server.name().to_owned(), format!("{:.2}", seen / base), format!("{seen:.1}")]);
        if server != Server::BareAxum {
            let bar = format!("{} waiters, ≤ 25 KiB each", grouped(count as f64));
            section.verdicts.push(Verdict::at_most(bar, Some(seen), BAR_KIB, |seen| format!("{seen:.1} KiB")));
        }
    }
    section.tables.push(Table {
        caption: format!("Growth of the server's resident memory, {} waiters", grouped(count as f64)),
        header: ["contender", "× bare axum", "KiB per waiter"].map(str::to_owned).to_vec(),
        lines,
    });
    section
        .notes
        .push("Kernel socket buffers are outside resident memory and the same for every contender.".to_owned());
    section.notes.push("At Matsu every waiter waits for a task of its own.".to_owned());
    Ok(section)
}
