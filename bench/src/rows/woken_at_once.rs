//! 10,000 waiters on one topic, woken by one change.

use anyhow::Result;

use crate::bench::Bench;
use crate::measure::Percentiles;
use crate::report::{Section, grouped};
use crate::verdict::{Verdict, milliseconds, times};
use crate::wake::{self, Server, Wakes};

/// Changes per launched server: the first finds a cold one.
const CHANGES: usize = 3;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("10,000 woken at once", "p99 ≤ 400 ms and ≤ 2 × bare axum");
    let count = bench.size.pick(1_000, 10_000);
    let rounds = bench.rounds.min(3);
    let runtime = tokio::runtime::Runtime::new()?;
    let mut found = [Server::BareAxum, Server::NORMAL].map(|server| (server, Wakes::default()));
    for _ in 0..rounds {
        for (server, wakes) in &mut found {
            wakes.extend(runtime.block_on(async {
                let mut target = server.launch(bench).await?;
                wake::all_at_once(&mut target, count, CHANGES).await
            })?);
        }
    }
    let mut axum = None;
    for (server, wakes) in &found {
        let p99 = Percentiles::of(wakes.woken_ns.iter().copied())?.map(|found| found.p99_ns as f64);
        eprintln!("  {}: p99 {}", server.name(), p99.map_or("–".to_owned(), milliseconds));
        if *server == Server::BareAxum {
            axum = p99;
            continue;
        }
        let what = format!("{} waiters on one task", grouped(count as f64));
        section.verdicts.push(Verdict::at_most(format!("{what}, p99 ≤ 400 ms"), p99, 4e8, milliseconds));
        let of_axum = p99.zip(axum).map(|(own, axum)| own / axum);
        section.verdicts.push(Verdict::at_most(format!("{what}, p99 ≤ 2 × bare axum"), of_axum, 2.0, times));
    }
    let latencies = found.map(|(server, wakes)| (server.name().to_owned(), wakes.woken_ns));
    let caption = format!("{} waiters, {CHANGES} changes on each of {rounds} servers", grouped(count as f64));
    section.add_latencies(&caption, &latencies)?;
    section.notes.push("The client's own reading shares the cores with the server.".to_owned());
    Ok(section)
}
