//! The bars for a start and for a wake-up, where no other test runs beside them.

use std::time::Duration;

use super::programs;
use crate::agent_runs::figures::{Figures, starts, wake_ups};

/// Whatever else the machine does can only make it slower: the best of a few rounds counts.
const ROUNDS: usize = 5;

fn keeps_its_bar(what: &str, measure: impl Fn() -> (Figures, Duration)) {
    if programs(what).is_none() {
        return;
    }
    let kept = (0..ROUNDS).any(|_| {
        let (figures, bar) = measure();
        figures.keep(bar)
    });
    assert!(kept, "{what}: over its bar in every round");
}

#[test]
fn a_start_takes_twenty_milliseconds_at_most() {
    keeps_its_bar("a start with all places taken", starts);
}

#[test]
fn the_end_of_a_run_wakes_a_call_over_http_within_fifty_milliseconds() {
    keeps_its_bar("the wake-up of a call over HTTP", wake_ups);
}
