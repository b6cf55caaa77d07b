//! What surrounds a tool call, without the tool: from the arguments to the envelope of a tool that does nothing.

use anyhow::Result;
use bench_peer::{Ask, Durability};

use crate::bench::Bench;
use crate::measure::{Percentiles, interleave};
use crate::report::Section;
use crate::verdict::{Verdict, milliseconds};

const CONTENDERS: &[&str] = &["Matsu in memory", "Matsu"];

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Dispatch overhead per tool call", "p99 ≤ 50 µs, memory and SQLite");
    let samples = bench.size.pick(500, 20_000);
    let all = interleave(bench, CONTENDERS, bench.rounds, |peer| {
        bench.sqlite_order(peer, Durability::Full, Ask::Dispatch { samples })
    });
    let mut latencies = Vec::new();
    for series in &all {
        let name = if series.name == "Matsu" { "Matsu on SQLite" } else { series.name.as_str() };
        let values: Vec<u64> = series.samples().flat_map(|sample| sample.latencies_ns.iter().copied()).collect();
        let p99 = Percentiles::of(values.iter().copied())?.map(|found| found.p99_ns as f64);
        section.verdicts.push(Verdict::at_most(format!("{name}, p99 ≤ 50 µs"), p99, 5e4, milliseconds));
        latencies.push((name.to_owned(), values));
    }
    section.add_latencies("A call of a tool that does nothing, through the whole dispatch", &latencies)?;
    section.add_notes("Dispatch", &all);
    Ok(section)
}
