//! Growth with the length of the queue: time per claimed and completed job at 1×, 10× and 100× the backlog.

use anyhow::Result;
use bench_peer::{Ask, Durability};

use crate::bench::{Bench, SQLITE_PEERS, sqlite_contenders};
use crate::chart::Chart;
use crate::measure::{interleave, median};
use crate::report::{Section, Table};

/// Beyond these the peers' time per job grows so far that one round takes many minutes.
const APALIS_JOBS_MAX: usize = 1_000;
const PEER_JOBS_MAX: usize = 10_000;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section =
        Section::new("Growth: queue length", "nothing worse than linear in what it touches: a flat line here");
    let base = bench.size.pick(100, 1_000);
    let mut lines: Vec<_> = sqlite_contenders().iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
    for factor in [1, 10, 100] {
        let jobs = base * factor;
        eprintln!(" {jobs} jobs");
        let names: Vec<_> = sqlite_contenders().into_iter().filter(|name| jobs <= jobs_max(name)).collect();
        let all = interleave(bench, &names, bench.size.pick(1, 2), |peer| {
            bench.sqlite_order(peer, Durability::Normal, Ask::Drain { jobs, workers: 2 })
        });
        for series in &all {
            let Some(line) = lines.iter_mut().find(|(name, _)| *name == series.name) else { continue };
            line.1.extend(median(series.rates()).map(|rate| (jobs as f64, 1e6 / rate)));
        }
        section.notes.extend(
            all.iter()
                .filter_map(|series| series.excuse().map(|excuse| format!("{jobs} jobs, {}: {excuse}.", series.name))),
        );
    }
    section.notes.push(format!(
        "apalis-sqlite is measured up to {APALIS_JOBS_MAX} jobs and honker up to {PEER_JOBS_MAX}; beyond that a round \
         takes many minutes."
    ));
    section.tables.push(table(&lines, "queue length"));
    section.charts.push(Chart {
        file: "growth-queue.svg".to_owned(),
        title: "Claim + complete, SQLite NORMAL, 2 workers".to_owned(),
        x_label: "jobs queued at the start".to_owned(),
        y_label: "µs per job".to_owned(),
        lines,
    });
    Ok(section)
}

fn jobs_max(name: &str) -> usize {
    match name {
        "apalis-sqlite" => APALIS_JOBS_MAX,
        name if SQLITE_PEERS.contains(&name) => PEER_JOBS_MAX,
        _ => usize::MAX,
    }
}

fn table(lines: &[(String, Vec<(f64, f64)>)], what: &str) -> Table {
    let mut rows = Vec::new();
    for (name, points) in lines {
        rows.extend(points.iter().map(|(size, micros)| vec![name.clone(), format!("{size}"), format!("{micros:.1}")]));
    }
    Table {
        caption: "Microseconds per job".to_owned(),
        header: ["contender", what, "µs per job"].map(str::to_owned).to_vec(),
        lines: rows,
    }
}
