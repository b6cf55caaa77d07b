//! From the call that enqueues to the first line of the body, with idle workers and one job at a time.

use anyhow::Result;
use bench_peer::{Ask, Durability};

use crate::bench::{Bench, postgres_contenders, sqlite_contenders};
use crate::matsu_side::is_matsu;
use crate::measure::{Percentiles, Series, interleave};
use crate::report::Section;
use crate::verdict::{Verdict, milliseconds, times};

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section =
        Section::new("Enqueue → start", "SQLite p50 ≤ 1 ms, Postgres p50 ahead of apalis-postgres; p99 ≤ 10 ms");
    let samples = bench.size.pick(30, 500);
    let names: Vec<_> = sqlite_contenders().into_iter().filter(|name| *name != "honker batch 10").collect();
    for durability in [Durability::Normal, Durability::Full] {
        let caption = format!("SQLite, {}, 2 workers", durability.pragma());
        eprintln!(" {caption}");
        let all = interleave(bench, &names, bench.rounds.min(3), |peer| {
            bench.sqlite_order(peer, durability, Ask::Latency { samples, workers: 2 })
        });
        add(&mut section, &caption, &all)?;
    }
    if let Some(server) = &bench.postgres {
        // The tuned lines are tuned for throughput: one of them lets a lonely job wait for half a minute.
        let tuned = ["graphile_worker local queue", "apalis-postgres batch 100"];
        let names: Vec<_> = postgres_contenders().into_iter().filter(|name| !tuned.contains(name)).collect();
        let all = interleave(bench, &names, bench.rounds.min(3), |peer| {
            bench.postgres_order(server, peer, Ask::Latency { samples, workers: 8 })
        });
        add(&mut section, "Postgres, 8 workers", &all)?;
    }
    section
        .notes
        .push("The time covers the durable enqueue itself; jobs come 2 ms apart, so workers are idle.".to_owned());
    Ok(section)
}

fn add(section: &mut Section, caption: &str, all: &[Series]) -> Result<()> {
    let latencies: Vec<_> = all
        .iter()
        .map(|series| {
            let values: Vec<u64> = series.samples().flat_map(|sample| sample.latencies_ns.iter().copied()).collect();
            (series.name.clone(), values)
        })
        .collect();
    section.add_latencies(caption, &latencies)?;
    if let Some((_, values)) = latencies.iter().find(|(name, _)| is_matsu(name)) {
        let found = Percentiles::of(values.iter().copied())?;
        let (p50, p99) = found.map_or((None, None), |found| (Some(found.p50_ns as f64), Some(found.p99_ns as f64)));
        let peer = latencies.iter().find(|(name, _)| name == "apalis-postgres");
        section.verdicts.push(match peer {
            Some((_, values)) => {
                let of_peer = Percentiles::of(values.iter().copied())?.map(|found| found.p50_ns as f64);
                let seen = p50.zip(of_peer).map(|(own, peer)| own / peer);
                Verdict::at_most(format!("{caption}, p50 of apalis-postgres's < 1"), seen, 1.0, times)
            }
            None => Verdict::at_most(format!("{caption}, p50 ≤ 1 ms"), p50, 1e6, milliseconds),
        });
        section.verdicts.push(Verdict::at_most(format!("{caption}, p99 ≤ 10 ms"), p99, 1e7, milliseconds));
    }
    section.add_notes(caption, all);
    Ok(())
}
