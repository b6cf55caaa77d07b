//! Growth with the number of parked waiters: one of them woken, and all of them woken.

use anyhow::Result;

use crate::bench::Bench;
use crate::chart::Chart;
use crate::measure::Percentiles;
use crate::report::Section;
use crate::wake::{self, Server};

const SERVERS: [Server; 2] = [Server::BareAxum, Server::NORMAL];

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section =
        Section::new("Growth: waiters", "waking one is flat; waking all is at most linear in the number woken");
    let base = bench.size.pick(10, 100);
    let samples = bench.size.pick(30, 300);
    let runtime = tokio::runtime::Runtime::new()?;
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for factor in [1, 10, 100] {
        let count = base * factor;
        eprintln!(" {count} waiters");
        let (mut one, mut all) = (Vec::new(), Vec::new());
        for server in SERVERS {
            let name = server.name().to_owned();
            runtime.block_on(async {
                let mut target = server.launch(bench).await?;
                one.push((name.clone(), wake::probe(&mut target, count, samples).await?.woken_ns));
                drop(target);
                let mut target = server.launch(bench).await?;
                all.push((name, wake::all_at_once(&mut target, count, 3).await?.woken_ns));
                anyhow::Ok(())
            })?;
        }
        for (what, found) in [("one woken", &one), ("all woken", &all)] {
            for (name, values) in found {
                if let Some(found) = Percentiles::of(values.iter().copied())? {
                    push_point(&mut lines, &format!("{name}, {what}"), count, found.p50_ns);
                }
            }
        }
        section.add_latencies(&format!("One woken beside {count}"), &one)?;
        section.add_latencies(&format!("All {count} woken"), &all)?;
    }
    section.charts.push(Chart {
        file: "growth-waiters.svg".to_owned(),
        title: "Wake-up over HTTP, p50".to_owned(),
        x_label: "parked waiters".to_owned(),
        y_label: "µs".to_owned(),
        lines,
    });
    Ok(section)
}

fn push_point(lines: &mut Vec<(String, Vec<(f64, f64)>)>, name: &str, count: usize, p50_ns: u64) {
    let point = (count as f64, p50_ns as f64 / 1e3);
    match lines.iter_mut().find(|(known, _)| known == name) {
        Some((_, points)) => points.push(point),
        None => lines.push((name.to_owned(), vec![point])),
    }
}
