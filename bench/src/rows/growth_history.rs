//! Growth with the length of the history: one claim and one status read beside up to ten million finished jobs.

use anyhow::Result;
use bench_peer::{Answer, Ask, Durability, Sample};

use crate::bench::{BARE_GROUPED, BARE_SQLITE, Bench, sqlite_contenders};
use crate::chart::Chart;
use crate::matsu_side;
use crate::measure::{Percentiles, Series, interleave, median, named};
use crate::report::{Section, grouped};
use crate::verdict::{Verdict, milliseconds, times};

/// Reads of a few microseconds need many.
const ROUNDS: usize = 7;

/// Each round of the longest history fills several gigabytes first.
const LONGEST_ROUNDS: usize = 2;

/// How much longer a claim or a status may take beside the longest history than beside the shortest.
const GROWTH_MAX: f64 = 1.3;
const CLAIM_MAX_NS: f64 = 2e7;

/// What is asked beside the history.
#[derive(Clone, Copy)]
enum Question {
    Claim,
    /// Of what is worked at.
    Status,
    OldStatus,
}

impl Question {
    const ALL: [Self; 3] = [Self::Claim, Self::Status, Self::OldStatus];

    fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Status => "status",
            Self::OldStatus => "status of something old",
        }
    }

    fn latencies(self, sample: &Sample) -> &[u64] {
        match self {
            Self::Claim => &sample.latencies_ns,
            Self::Status => &sample.status_ns,
            Self::OldStatus => &sample.old_status_ns,
        }
    }
}

/// All contenders beside one history.
struct Length {
    finished: usize,
    all: Vec<Series>,
}

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(
        "Growth: history length",
        "from 10,000 to 10,000,000 finished jobs claim and status take ≤ 1.3 × as long, and no claim ≥ 20 ms",
    );
    let lengths = measure(bench);
    let mut lines = Vec::new();
    for Length { finished, all } in &lengths {
        for question in Question::ALL {
            let mut latencies = Vec::new();
            for series in all {
                let values: Vec<u64> =
                    series.samples().flat_map(|sample| question.latencies(sample)).copied().collect();
                if let Some(found) = Percentiles::of(values.iter().copied())? {
                    push_point(&mut lines, &format!("{} {}", series.name, question.name()), *finished, found.p50_ns);
                }
                latencies.push((series.name.clone(), values));
            }
            section.add_latencies(&format!("{}, {finished} finished", question.name()), &latencies)?;
        }
    }
    if let [shortest, .., longest] = lengths.as_slice() {
        section.add_notes("History", &shortest.all);
        for question in Question::ALL {
            let (long, short) = (grouped(longest.finished as f64), grouped(shortest.finished as f64));
            let bar = format!("{} beside {long} finished jobs, ≤ {GROWTH_MAX} × beside {short}", question.name());
            let growth = |name| growth(question, named(&longest.all, name)?, named(&shortest.all, name)?);
            let (seen, bare) = (growth(matsu_side::SQLITE[0]), growth(BARE_SQLITE));
            section.verdicts.push(match (question, bare) {
                // One of ten thousand tasks is further from everybody's caches than one of a hundred.
                (Question::OldStatus, Some(bare)) => {
                    let bar =
                        format!("{} beside {long} finished jobs grows no more than a bare lookup", question.name());
                    Verdict::at_most(bar, seen, bare, times)
                }
                _ => Verdict::at_most(bar, seen, GROWTH_MAX, times),
            });
            if let Question::Claim = question {
                let own = named(&longest.all, matsu_side::SQLITE[0]);
                let claims =
                    own.iter().flat_map(|series| series.samples()).flat_map(|sample| question.latencies(sample));
                let worst = claims.max().map(|ns| *ns as f64);
                let bar = format!("the longest claim beside {long} finished jobs < 20 ms");
                section.verdicts.push(Verdict::at_most(bar, worst, CLAIM_MAX_NS, milliseconds));
            }
            if let Some(bare) = bare {
                section
                    .notes
                    .push(format!("{} of bare rusqlite from {short} to {long}: {bare:.2} ×.", question.name()));
            }
        }
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

/// The lengths take turns too: what is compared is a few microseconds, and the machine drifts by more than that. Beside
/// the longest only Matsu and the bare loop are measured: to fill the others takes them hours.
fn measure(bench: &Bench) -> Vec<Length> {
    let base = bench.size.pick(100, 10_000);
    let samples = bench.size.pick(50, 500);
    let names: Vec<_> = sqlite_contenders().into_iter().filter(|name| *name != BARE_GROUPED).collect();
    let mut lengths = [1, 10, 100, 1_000].map(|factor| Length { finished: base * factor, all: Vec::new() });
    for round in 0..bench.size.pick(1, bench.rounds.max(ROUNDS)) {
        for Length { finished, all } in &mut lengths {
            let finished = *finished;
            let is_longest = finished == base * 1_000;
            if is_longest && round >= LONGEST_ROUNDS {
                continue;
            }
            eprintln!(" {finished} finished jobs");
            let names = if is_longest { &[BARE_SQLITE, matsu_side::SQLITE[0]] } else { names.as_slice() };
            let more = interleave(bench, names, 1, |peer| {
                bench.sqlite_order(peer, Durability::Normal, Ask::History { finished, samples })
            });
            if all.is_empty() {
                *all = more;
            } else {
                all.iter_mut().zip(more).for_each(|(series, more)| series.answers.extend(more.answers));
            }
        }
    }
    lengths.into()
}

/// The median over rounds of how many times longer the median takes.
fn growth(question: Question, long: &Series, short: &Series) -> Option<f64> {
    let p50 = |answer: &Answer| match answer {
        Answer::Done(sample) => Some(Percentiles::of(question.latencies(sample).iter().copied()).ok()??.p50_ns as f64),
        Answer::Cannot { .. } | Answer::Failed { .. } => None,
    };
    let rounds = long.answers.iter().zip(&short.answers);
    median(rounds.filter_map(|(long, short)| Some(p50(long)? / p50(short)?)).collect())
}

fn push_point(lines: &mut Vec<(String, Vec<(f64, f64)>)>, name: &str, finished: usize, p50_ns: u64) {
    let point = (finished as f64, p50_ns as f64 / 1e3);
    match lines.iter_mut().find(|(known, _)| known == name) {
        Some((_, points)) => points.push(point),
        None => lines.push((name.to_owned(), vec![point])),
    }
}
