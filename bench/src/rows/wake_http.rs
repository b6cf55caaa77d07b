//! One waiter woken over HTTP while none, or 10,000, others stay parked.

use anyhow::Result;

use crate::bench::Bench;
use crate::measure::Percentiles;
use crate::report::{Section, grouped};
use crate::verdict::{Verdict, milliseconds, times};
use crate::wake::{self, Server, Wakes};

const SERVERS: [Server; 4] = [Server::BareAxum, Server::BareDurable, Server::NORMAL, Server::FULL];

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Wake of a waiting request over HTTP",
        "NORMAL p50 ≤ 3 × bare axum, FULL p50 ≤ 0.5 ms beyond a bare commit; p99 ≤ 5 ms",
    );
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
        let [bare, durable, normal, full] = &found;
        let axum = p50(&bare.1)?;
        let disk = p50(&durable.1)? - axum;
        let what = |server: &Server| format!("{caption}, {}", server.name());
        let of_axum = Some(p50(&normal.1)? / axum);
        section.verdicts.push(Verdict::at_most(what(&normal.0) + ", p50 ≤ 3 × bare axum", of_axum, 3.0, times));
        let beyond = Some(p50(&full.1)? - disk);
        let bar = what(&full.0) + ", p50 ≤ 0.5 ms beyond a bare commit";
        section.verdicts.push(Verdict::at_most(bar, beyond, 5e5, milliseconds));
        for (server, wakes) in [normal, full] {
            let p99 = Percentiles::of(wakes.ended_ns.iter().copied())?.map(|found| found.p99_ns as f64);
            section.verdicts.push(Verdict::at_most(what(server) + ", p99 ≤ 5 ms", p99, 5e6, milliseconds));
        }
    }
    section.notes.push(
        "The bars are about the first table of each kind: from the moment that a job's body ends, with nothing stored \
         yet, to the last byte of the answer that its waiter reads. So the durable end of the job is in it, at FULL also \
         the disk. In the others the request that makes the change counts too, with its two reads and its transaction."
            .to_owned(),
    );
    section.notes.push(
        "How long the disk takes is not Matsu's to say: at FULL one bare commit is taken off, which is what the bare \
         server takes longer with one than without, in the same run."
            .to_owned(),
    );
    section.notes.push(
        "The parked waiters are unrelated: at Matsu each waits for a task of its own, at the bare server all for one \
         other topic."
            .to_owned(),
    );
    Ok(section)
}

fn p50(wakes: &Wakes) -> Result<f64> {
    Ok(Percentiles::of(wakes.ended_ns.iter().copied())?.map_or(f64::NAN, |found| found.p50_ns as f64))
}
