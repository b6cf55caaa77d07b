//! One waiter woken over HTTP while none, or 10,000, others stay parked.

use anyhow::Result;

use crate::bench::Bench;
use crate::peers::bare_axum::BareAxum;
use crate::report::Section;
use crate::wake;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Wake of a waiting request over HTTP", "p50 ≤ 0.5 ms, p99 ≤ 5 ms");
    let samples = bench.size.pick(50, 1_000);
    let crowd = bench.size.pick(1_000, 10_000);
    let runtime = tokio::runtime::Runtime::new()?;
    for parked in [0, crowd] {
        let latencies = runtime.block_on(async {
            let mut target = BareAxum::launch().await?;
            wake::probe(&mut target, parked, samples).await
        })?;
        section.add_latencies(&format!("{} parked", parked + 1), &[("bare axum".to_owned(), latencies)])?;
    }
    section.notes.push("From just before the publication in the server to the last byte at the client.".to_owned());
    Ok(section)
}
