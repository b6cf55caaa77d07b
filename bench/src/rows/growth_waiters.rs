//! Growth with the number of parked waiters: one of them woken, and all of them woken.

use anyhow::Result;

use crate::bench::Bench;
use crate::chart::Chart;
use crate::measure::Percentiles;
use crate::peers::bare_axum::BareAxum;
use crate::report::Section;
use crate::wake;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section =
        Section::new("Growth: waiters", "waking one is flat; waking all is at most linear in the number woken");
    let base = bench.size.pick(10, 100);
    let samples = bench.size.pick(30, 300);
    let runtime = tokio::runtime::Runtime::new()?;
    let mut one_line = Vec::new();
    let mut all_line = Vec::new();
    for factor in [1, 10, 100] {
        let count = base * factor;
        let (one, all) = runtime.block_on(async {
            let mut target = BareAxum::launch().await?;
            let one = wake::probe(&mut target, count, samples).await?;
            drop(target);
            let mut target = BareAxum::launch().await?;
            anyhow::Ok((one, wake::all_at_once(&mut target, count, 3).await?))
        })?;
        for (line, values) in [(&mut one_line, &one), (&mut all_line, &all)] {
            if let Some(found) = Percentiles::of(values.iter().copied())? {
                line.push((count as f64, found.p99_ns as f64 / 1e3));
            }
        }
        section.add_latencies(&format!("One woken beside {count}"), &[("bare axum".to_owned(), one)])?;
        section.add_latencies(&format!("All {count} woken"), &[("bare axum".to_owned(), all)])?;
    }
    section.charts.push(Chart {
        file: "growth-waiters.svg".to_owned(),
        title: "Wake-up over HTTP, p99".to_owned(),
        x_label: "parked waiters".to_owned(),
        y_label: "µs".to_owned(),
        lines: vec![("bare axum, one woken".to_owned(), one_line), ("bare axum, all woken".to_owned(), all_line)],
    });
    Ok(section)
}
