//! Claim and complete on Postgres with eight workers and an empty body.

use anyhow::Result;
use bench_peer::Ask;

use crate::bench::{Bench, POSTGRES_PEERS, postgres_contenders};
use crate::matsu_side;
use crate::measure::{interleave, ratio};
use crate::report::Section;
use crate::verdict::{Verdict, times};

const TITLE: &str = "Claim + complete, Postgres, 8 workers, empty body";
const BAR: &str = "ahead of graphile_worker and apalis-postgres, also as their guides tune them";

pub fn run(bench: &Bench) -> Result<Section> {
    let Some(server) = &bench.postgres else {
        return Ok(Section::skipped(TITLE, BAR, "`MATSU_TEST_POSTGRES` names no server"));
    };
    let mut section = Section::new(TITLE, BAR);
    let jobs = bench.size.pick(500, 5_000);
    let all = interleave(bench, &postgres_contenders(), bench.rounds, |peer| {
        bench.postgres_order(server, peer, Ask::Drain { jobs, workers: 8 })
    });
    section.add_rates(&format!("The server's own settings ({jobs} jobs)"), "jobs/s", &all);
    for peer in POSTGRES_PEERS {
        let seen = ratio(&all, matsu_side::POSTGRES[0], peer);
        section.verdicts.push(Verdict::at_least(format!("ahead of {peer}"), seen, 1.0, times));
    }
    section.notes.push(
        "The two tuned lines show what the peers' own guides recommend for throughput. They keep jobs in the process \
         before they are claimed, or write ends later in batches; Matsu keeps every fence and the history."
            .to_owned(),
    );
    Ok(section)
}
