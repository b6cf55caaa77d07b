//! Schedules and webhooks whose last start failed.

use super::{Finding, bad};
use crate::compose;
use crate::config::Config;
use matsu_core::ports::store::FailedStarts;
use matsu_core::unstarted::FailedStart;

/// None if every schedule and webhook could start its work when it last tried.
pub async fn failed(config: &Config) -> Vec<Finding> {
    // What is wrong with the store is a finding of its own.
    let Ok(opened) = compose::open_store(config).await else { return Vec::new() };
    let Ok(failed) = opened.store.run(FailedStarts).await else { return Vec::new() };
    failed.iter().map(finding).collect()
}

fn finding(start: &FailedStart) -> Finding {
    let FailedStart { kind, name, owner, at, why } = start;
    let detail = format!("the {kind} {name} of {owner} could not start its work at {at}: {why}");
    let advice = format!("correct the cause, or remove the {kind} and add it again; see `matsu {kind} history {name}`");
    bad("starts", detail, advice)
}
