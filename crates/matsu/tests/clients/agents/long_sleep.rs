//! A minute with the lid closed, which is too long for every day's tests.

use std::time::Duration;

use super::programs;
use crate::agent_runs::suspend::sleeps_through;

#[test]
fn a_run_sleeps_through_a_minute() {
    if programs("a minute asleep").is_some() {
        sleeps_through(Duration::from_secs(60));
    }
}
