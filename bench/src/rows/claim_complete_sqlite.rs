//! Claim and complete on SQLite with two workers and an empty body, at both durability settings.

use anyhow::Result;
use bench_peer::{Ask, Durability};

use crate::bench::{Bench, sqlite_contenders};
use crate::measure::interleave;
use crate::report::Section;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Claim + complete, SQLite, 2 workers, empty body",
        "≥ 0.5 × the bare loop at the same setting, ≥ 5 × apalis-sqlite",
    );
    for (durability, jobs) in
        [(Durability::Normal, bench.size.pick(500, 5_000)), (Durability::Full, bench.size.pick(200, 1_000))]
    {
        let caption = format!("{} ({jobs} jobs)", durability.pragma());
        eprintln!(" {caption}");
        let all = interleave(bench, &sqlite_contenders(), bench.rounds, |peer| {
            bench.sqlite_order(peer, durability, Ask::Drain { jobs, workers: 2 })
        });
        section.add_rates(&caption, "jobs/s", &all);
    }
    Ok(section)
}
