//! Rounds, medians and percentiles.
//!
//! Machines are noisy and drift, so contenders take turns within each round, and a ratio is the median over rounds of
//! two measurements taken next to each other, never a quotient of two medians taken minutes apart.

use anyhow::Result;
use bench_peer::{Answer, Order, Sample};
use hdrhistogram::Histogram;

use crate::bench::Bench;

/// Every round of one contender, in order.
pub struct Series {
    pub name: String,
    pub answers: Vec<Answer>,
}

impl Series {
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.answers.iter().filter_map(|answer| match answer {
            Answer::Done(sample) => Some(sample),
            Answer::Cannot { .. } | Answer::Failed { .. } => None,
        })
    }

    pub fn rates(&self) -> Vec<f64> {
        self.samples().map(Sample::per_second).collect()
    }

    /// Why there is no number, if there is none.
    pub fn excuse(&self) -> Option<String> {
        self.answers.iter().find_map(|answer| match answer {
            Answer::Done(_) => None,
            Answer::Cannot { reason } => Some(format!("cannot: {reason}")),
            Answer::Failed { error } => Some(format!("failed: {error}")),
        })
    }

    pub fn note(&self) -> Option<&str> {
        self.samples().last().and_then(|sample| sample.note.as_deref())
    }

    /// Only rounds in which both have a number count.
    pub fn ratio_to(&self, base: &Series) -> Option<f64> {
        let pairs = self.answers.iter().zip(&base.answers);
        let ratios = pairs.filter_map(|pair| match pair {
            (Answer::Done(own), Answer::Done(base)) => Some(own.per_second() / base.per_second()),
            _ => None,
        });
        median(ratios.collect())
    }
}

/// The series of this name, if it took part.
pub fn named<'a>(all: &'a [Series], name: &str) -> Option<&'a Series> {
    all.iter().find(|series| series.name == name)
}

/// The median over rounds of one contender's ratio to another.
pub fn ratio(all: &[Series], name: &str, base: &str) -> Option<f64> {
    named(all, name)?.ratio_to(named(all, base)?)
}

pub fn median_rate(all: &[Series], name: &str) -> Option<f64> {
    median(named(all, name)?.rates())
}

/// A contender that cannot do the row is asked once, not in every round.
pub fn interleave(bench: &Bench, names: &[&str], rounds: usize, order: impl Fn(&str) -> Order) -> Vec<Series> {
    let mut all: Vec<_> = names.iter().map(|name| Series { name: (*name).to_owned(), answers: Vec::new() }).collect();
    for round in 0..rounds {
        for series in &mut all {
            if matches!(series.answers.last(), Some(Answer::Cannot { .. })) {
                continue;
            }
            let order = order(&series.name);
            let answer = bench.processes.run(&order);
            bench.discard(&order);
            eprintln!("  round {} of {rounds}, {}: {}", round + 1, series.name, brief(&answer));
            series.answers.push(answer);
        }
    }
    all
}

pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// Nanosecond percentiles to three significant digits.
pub struct Percentiles {
    pub count: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

impl Percentiles {
    pub fn of(values: impl IntoIterator<Item = u64>) -> Result<Option<Self>> {
        let mut histogram = Histogram::<u64>::new(3)?;
        for value in values {
            histogram.record(value)?;
        }
        if histogram.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            count: histogram.len(),
            p50_ns: histogram.value_at_quantile(0.50),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        }))
    }
}

fn brief(answer: &Answer) -> String {
    match answer {
        Answer::Done(sample) if sample.elapsed_ns > 0 => {
            format!("{:.0}/s {}", sample.per_second(), sample.note.as_deref().unwrap_or_default())
        }
        Answer::Done(sample) => match Percentiles::of(sample.latencies_ns.iter().copied()) {
            Ok(Some(found)) => format!("p50 {} µs, p99 {} µs", found.p50_ns / 1000, found.p99_ns / 1000),
            _ => "no samples".to_owned(),
        },
        Answer::Cannot { reason } => format!("cannot: {reason}"),
        Answer::Failed { error } => format!("failed: {error}"),
    }
}
