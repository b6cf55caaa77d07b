//! Enqueue on SQLite: one caller, 64 callers, and batches of 100, at both durability settings.

use anyhow::Result;
use bench_peer::{Ask, Durability, How};

use crate::bench::{BARE_SQLITE, Bench, sqlite_contenders};
use crate::matsu_side;
use crate::measure::{interleave, median_rate, ratio};
use crate::report::{Section, grouped};
use crate::verdict::{Verdict, times};

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Enqueue, SQLite",
        "≥ 10,000/s NORMAL, ≥ 5,000/s FULL with 64 callers, ≥ 50,000/s batched; ahead of honker in every row; one \
         caller ≥ 0.5 × the bare loop",
    );
    let jobs = bench.size.pick(500, 10_000);
    // A single caller at FULL waits for the disk once per job, so fewer jobs take as long.
    let cases = [
        ("one caller", How::Single, Durability::Normal, jobs),
        ("one caller", How::Single, Durability::Full, jobs / 5),
        ("64 callers", How::Callers { callers: 64 }, Durability::Normal, jobs),
        ("64 callers", How::Callers { callers: 64 }, Durability::Full, jobs / 5),
        ("batches of 100", How::Batched { size: 100 }, Durability::Normal, jobs * 5),
        ("batches of 100", How::Batched { size: 100 }, Durability::Full, jobs * 5),
    ];
    for (name, how, durability, jobs) in cases {
        let caption = format!("{name}, {} ({jobs} jobs)", durability.pragma());
        eprintln!(" {caption}");
        // Batched claiming changes nothing about enqueueing.
        let names: Vec<_> = sqlite_contenders().into_iter().filter(|name| *name != "honker batch 10").collect();
        let all = interleave(bench, &names, bench.rounds, |peer| {
            bench.sqlite_order(peer, durability, Ask::Enqueue { jobs, how })
        });
        section.add_rates(&caption, "jobs/s", &all);
        if let Some(least) = bar(how, durability) {
            let bar = format!("{name}, {}, ≥ {}/s", durability.pragma(), grouped(least));
            let seen = median_rate(&all, matsu_side::SQLITE[0]);
            section.verdicts.push(Verdict::at_least(bar, seen, least, |rate| format!("{}/s", grouped(rate))));
        }
        let setting = format!("{name}, {}", durability.pragma());
        let ahead = ratio(&all, matsu_side::SQLITE[0], "honker");
        section.verdicts.push(Verdict::at_least(format!("{setting}, ahead of honker"), ahead, 1.0, times));
        if let How::Single = how {
            let of_bare = ratio(&all, matsu_side::SQLITE[0], BARE_SQLITE);
            section.verdicts.push(Verdict::at_least(format!("{setting}, ≥ 0.5 × {BARE_SQLITE}"), of_bare, 0.5, times));
        }
    }
    Ok(section)
}

/// A single caller is held to others, not to a rate.
fn bar(how: How, durability: Durability) -> Option<f64> {
    match (how, durability) {
        (How::Single, _) => None,
        (How::Callers { .. }, Durability::Normal) => Some(10_000.0),
        (How::Callers { .. }, Durability::Full) => Some(5_000.0),
        (How::Batched { .. }, _) => Some(50_000.0),
    }
}
