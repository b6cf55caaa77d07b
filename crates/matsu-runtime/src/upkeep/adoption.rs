//! Runs whose node has left: those of this machine are taken over, others are given up after their grace time. And what
//! runs have left on this machine is removed once the end of their job is stored.

use std::collections::HashSet;

use matsu_core::id::JobId;
use matsu_core::job::Lease;
use matsu_core::limits::TICK;
use matsu_core::ports::agent::AgentHost;
use matsu_core::ports::store::{LeftRun, ProgressNote, StoreError};

use crate::options::Workers;
use crate::runtime::Runtime;

use super::outage::Outage;

/// What is left of ended runs is looked for less often.
const FORGET_EVERY_TICKS: u32 = 5;

pub async fn run(runtime: &Runtime) {
    let Some(host) = runtime.agents().filter(|_| runtime.workers() == Workers::All) else {
        return std::future::pending().await;
    };
    let mut outage = Outage::new("adoption");
    let mut ticks = 0_u32;
    let mut shown = HashSet::new();
    loop {
        let adopted = adopt(runtime, host.as_ref(), &mut shown).await;
        let _pause = outage.note(&adopted);
        if adopted.is_ok() && ticks.is_multiple_of(FORGET_EVERY_TICKS) {
            let _pause = outage.note(&forget(runtime, host.as_ref()).await);
        }
        ticks = ticks.wrapping_add(1);
        tokio::select! {
            () = runtime.adoptions().asked_to_look() => {}
            () = runtime.clock().sleep(TICK) => {}
        }
    }
}

async fn adopt(runtime: &Runtime, host: &dyn AgentHost, shown: &mut HashSet<Lease>) -> Result<(), StoreError> {
    for left in runtime.store().left_runs().await? {
        let now = runtime.clock().now();
        // A run without a trace was claimed and never started, if this is where it would have been.
        if host.trace(&left.lease.job_id).is_some() || left.host == runtime.host() {
            if let Some(lease) = runtime.store().adopt_run(&left.lease, &runtime.node(), now).await? {
                tracing::info!(job.id = %lease.job_id, attempt = lease.attempt, "a run is taken over");
                runtime.adoptions().add(left.slot);
                runtime.wake_queue(left.slot);
            }
        } else if now.since(left.left_at) > runtime.host_grace() {
            lose(runtime, &left).await?;
        } else if shown.insert(left.lease.clone()) {
            show_waiting(runtime, &left).await?;
        }
    }
    Ok(())
}

/// Shows as progress what the run waits for. The next progress of the run replaces it.
async fn show_waiting(runtime: &Runtime, left: &LeftRun) -> Result<(), StoreError> {
    let progress_json = serde_json::json!({ "message": format!("waiting for host {}", left.host) }).to_string();
    let note = ProgressNote { lease: left.lease.clone(), progress_json };
    runtime.store().note_progress(&[note], runtime.clock().now()).await.map(drop)
}

async fn lose(runtime: &Runtime, left: &LeftRun) -> Result<(), StoreError> {
    let seconds = runtime.host_grace().as_secs();
    let task = runtime.store().job(&left.lease.job_id).await?.task_id;
    let go_on = task.map(|task| format!(". To run it again: matsu retry {task}")).unwrap_or_default();
    let message =
        format!("host {} has not come back within {seconds} s; what the run had stored is kept{go_on}", left.host);
    if runtime.store().lose_run(&left.lease, &message, runtime.clock().now()).await? {
        tracing::warn!(job.id = %left.lease.job_id, host = left.host, "a run is given up: its host has not come back");
    }
    Ok(())
}

/// A folder stays until the end of its job is stored. A job that the store does not know belongs to another store, or
/// was removed long ago; the same holds for it.
async fn forget(runtime: &Runtime, host: &dyn AgentHost) -> Result<(), StoreError> {
    for job in host.jobs_with_runs() {
        if is_over(runtime, &job).await? {
            host.give_up(&job).await;
        }
    }
    Ok(())
}

async fn is_over(runtime: &Runtime, id: &JobId) -> Result<bool, StoreError> {
    match runtime.store().job(id).await {
        Ok(job) => {
            let lease = Lease { job_id: job.id, attempt: job.attempt };
            Ok(job.state.is_finished() && !runtime.running().contains(&lease))
        }
        Err(StoreError::NotFound { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}
