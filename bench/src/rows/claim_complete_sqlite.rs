//! Claim and complete on SQLite with two workers and an empty body, at both durability settings.

use anyhow::Result;
use bench_peer::{Ask, Durability};

use crate::bench::{BARE_GROUPED, BARE_SQLITE, Bench, sqlite_contenders};
use crate::matsu_side;
use crate::measure::{interleave, ratio};
use crate::report::Section;
use crate::verdict::{Verdict, times};

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Claim + complete, SQLite, 2 workers, empty body",
        "NORMAL ≥ 0.8 × the bare loop and ≥ 0.5 × the grouped one, FULL ≥ 0.5 × the bare loop, ≥ 5 × apalis-sqlite",
    );
    // As long for both: a short run measures how a queue starts, and some grow slower with its length.
    let jobs = bench.size.pick(500, 5_000);
    for durability in [Durability::Normal, Durability::Full] {
        let caption = format!("{} ({jobs} jobs)", durability.pragma());
        eprintln!(" {caption}");
        let all = interleave(bench, &sqlite_contenders(), bench.rounds, |peer| {
            bench.sqlite_order(peer, durability, Ask::Drain { jobs, workers: 2 })
        });
        section.add_rates(&caption, "jobs/s", &all);
        let setting = durability.pragma();
        let of_limits: &[(&str, f64)] = match durability {
            Durability::Normal => &[(BARE_SQLITE, 0.8), (BARE_GROUPED, 0.5)],
            Durability::Full => &[(BARE_SQLITE, 0.5)],
        };
        for (peer, least) in of_limits.iter().chain(&[("apalis-sqlite", 5.0)]) {
            let seen = ratio(&all, matsu_side::SQLITE[0], peer);
            section.verdicts.push(Verdict::at_least(format!("{setting}, ≥ {least} × {peer}"), seen, *least, times));
        }
    }
    Ok(section)
}
