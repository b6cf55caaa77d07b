//! Growth with the length of the history: one claim and one status read beside up to a million finished jobs.

use anyhow::Result;
use bench_peer::{Ask, Durability};

use crate::bench::{BARE_GROUPED, Bench, sqlite_contenders};
use crate::chart::Chart;
use crate::matsu_side;
use crate::measure::{Percentiles, interleave};
use crate::report::{Section, grouped};
use crate::verdict::{Verdict, times};

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section =
        Section::new("Growth: history length", "claim and status ≤ 1.2 × their time, at a 1,000,000-job history");
    let base = bench.size.pick(100, 10_000);
    let samples = bench.size.pick(50, 500);
    let names: Vec<_> = sqlite_contenders().into_iter().filter(|name| *name != BARE_GROUPED).collect();
    let mut lines = Vec::new();
    for factor in [1, 10, 100] {
        let finished = base * factor;
        eprintln!(" {finished} finished jobs");
        let all = interleave(bench, &names, bench.rounds.min(3), |peer| {
            bench.sqlite_order(peer, Durability::Normal, Ask::History { finished, samples })
        });
        for (what, status) in [("claim", false), ("status", true)] {
            let mut latencies = Vec::new();
            for series in &all {
                let pick = |sample: &bench_peer::Sample| {
                    if status { sample.status_ns.clone() } else { sample.latencies_ns.clone() }
                };
                let values: Vec<u64> = series.samples().flat_map(pick).collect();
                if let Some(found) = Percentiles::of(values.iter().copied())? {
                    push_point(&mut lines, &format!("{} {what}", series.name), finished, found.p50_ns);
                }
                latencies.push((series.name.clone(), values));
            }
            section.add_latencies(&format!("{what}, {finished} finished"), &latencies)?;
        }
        if factor == 1 {
            section.add_notes("History", &all);
        }
    }
    for what in ["claim", "status"] {
        let name = format!("{} {what}", matsu_side::SQLITE[0]);
        let points = lines.iter().find(|(known, _)| *known == name).map(|(_, points)| points.as_slice());
        let seen = points.and_then(|points| Some(points.last()?.1 / points.first()?.1));
        let longest = grouped((base * 100) as f64);
        let bar = format!("{what} beside {longest} finished jobs, ≤ 1.2 × beside {}", grouped(base as f64));
        section.verdicts.push(Verdict::at_most(bar, seen, 1.2, times));
    }
    section.charts.push(Chart {
        file: "growth-history.svg".to_owned(),
        title: "One claim and one status read, SQLite NORMAL, p50".to_owned(),
        x_label: "finished jobs in the store".to_owned(),
        y_label: "µs".to_owned(),
        lines,
    });
    Ok(section)
}

fn push_point(lines: &mut Vec<(String, Vec<(f64, f64)>)>, name: &str, finished: usize, p50_ns: u64) {
    let point = (finished as f64, p50_ns as f64 / 1e3);
    match lines.iter_mut().find(|(known, _)| known == name) {
        Some((_, points)) => points.push(point),
        None => lines.push((name.to_owned(), vec![point])),
    }
}
