//! One waiter woken over HTTP while none, or 10,000, others stay parked.

use anyhow::Result;

use crate::bench::Bench;
use crate::measure::Percentiles;
use crate::report::{Section, grouped};
use crate::verdict::{Verdict, milliseconds};
use crate::wake::{self, Server, Wakes};

const SERVERS: [Server; 3] = [Server::BareAxum, Server::NORMAL, Server::FULL];

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Wake of a waiting request over HTTP", "p50 ≤ 0.5 ms, p99 ≤ 5 ms");
    let rounds = bench.rounds.min(3);
    let samples = bench.size.pick(50, 1_000) / rounds;
    let crowd = bench.size.pick(1_000, 10_000);
    let runtime = tokio::runtime::Runtime::new()?;
    for parked in [0, crowd] {
        let mut found = SERVERS.map(|server| (server, Wakes::default()));
        for round in 0..rounds {
            for (server, wakes) in &mut found {
                wakes.extend(runtime.block_on(async {
                    let mut target = server.launch(bench).await?;
                    wake::probe(&mut target, parked, samples).await
                })?);
                eprintln!("  {} parked, round {} of {rounds}, {}", parked + 1, round + 1, server.name());
            }
        }
        let caption = format!("{} parked", grouped((parked + 1) as f64));
        let mut add = |what: &str, of: fn(&Wakes) -> &Vec<u64>| {
            let seen = found.each_ref().map(|(server, wakes)| (server.name().to_owned(), of(wakes).clone()));
            section.add_latencies(&format!("{caption}: {what}"), &seen)
        };
        add("from the end of work to its waiter's answer", |wakes| &wakes.ended_ns)?;
        add("from the request for a change to the waiter's answer", |wakes| &wakes.woken_ns)?;
        add("from the request for a change to its own answer", |wakes| &wakes.changed_ns)?;
        for (server, wakes) in &found {
            if *server != Server::BareAxum {
                add_verdicts(&mut section, &format!("{caption}, {}", server.name()), wakes)?;
            }
        }
    }
    section.notes.push(
        "The bars are about the first table of each kind: from the moment that a job's body ends, with nothing stored \
         yet, to the last byte of the answer that its waiter reads. So the durable end of the job is in it, at FULL also \
         the disk. In the others the request that makes the change counts too, with its two reads and its transaction."
            .to_owned(),
    );
    section.notes.push(
        "The parked waiters are strangers: at Matsu each waits for a task of its own, at the bare server all for one \
         other topic."
            .to_owned(),
    );
    Ok(section)
}

fn add_verdicts(section: &mut Section, what: &str, wakes: &Wakes) -> Result<()> {
    let found = Percentiles::of(wakes.ended_ns.iter().copied())?;
    let (p50, p99) = found.map_or((None, None), |found| (Some(found.p50_ns as f64), Some(found.p99_ns as f64)));
    section.verdicts.push(Verdict::at_most(format!("{what}, p50 ≤ 0.5 ms"), p50, 5e5, milliseconds));
    section.verdicts.push(Verdict::at_most(format!("{what}, p99 ≤ 5 ms"), p99, 5e6, milliseconds));
    Ok(())
}
