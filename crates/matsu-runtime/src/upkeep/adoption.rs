//! Runs whose node has left: those of this machine are taken over; others begin again here if they may, or are given up,
//! after their grace time. And what runs have left on this machine is removed once the end of their job is stored.
//!
//! The grace time is counted by this process, from when it first saw that the node had left: the clocks of two machines
//! need not agree, and one that jumps ends no run.

use std::collections::{BTreeSet, HashMap, HashSet};

use futures_util::stream::{self, StreamExt};
use tokio::time::Instant;

use matsu_core::id::JobId;
use matsu_core::job::{Job, Lease};
use matsu_core::limits::{RUN_RESTARTS_MAX, TICK};
use matsu_core::ports::agent::AgentHost;
use matsu_core::ports::store::{
    AdoptRun, JobUpdate, LeftRun, LoseRun, NoteProgress, ProgressNote, ReadJob, ReadLeftRuns, StoreError, UpdateJob,
};
use matsu_core::run::{Relocated, RunCheckpoint, RunInput};
use matsu_core::slot::Slot;

use crate::agents::go_on_command;
use crate::runtime::{Outage, Runtime, Workers};
use crate::tasks::Tasks;
use crate::tasks::queue::adoptions::Adoptions;

/// What is left of ended runs is looked for less often.
const FORGET_EVERY_TICKS: u32 = 5;

/// So many are taken over at a time: the store commits together what waits for it.
const AT_ONCE: usize = 16;

/// Runs of other machines, and since when this process has seen them left.
type Waiting = HashMap<Lease, Instant>;

pub async fn run(runtime: &Runtime) {
    let Some(host) = runtime.agents().filter(|_| runtime.workers() == Workers::All) else {
        return std::future::pending().await;
    };
    tokio::join!(host.recover(), take_over(runtime, host.as_ref()));
}

async fn take_over(runtime: &Runtime, host: &dyn AgentHost) {
    let mut outage = Outage::new("adoption");
    let mut ticks = 0_u32;
    let mut waiting = Waiting::new();
    let adoptions = runtime.part::<Adoptions>();
    loop {
        let adopted = look(runtime, host, &mut waiting).await;
        let _pause = outage.note(&adopted);
        if adopted.is_ok() && ticks.is_multiple_of(FORGET_EVERY_TICKS) {
            let _pause = outage.note(&forget(runtime, host).await);
        }
        ticks = ticks.wrapping_add(1);
        tokio::select! {
            () = adoptions.asked_to_look() => {}
            () = runtime.clock().sleep(TICK) => {}
        }
    }
}

async fn look(runtime: &Runtime, host: &dyn AgentHost, waiting: &mut Waiting) -> Result<(), StoreError> {
    let left = runtime.store().run(ReadLeftRuns).await?;
    waiting.retain(|lease, _| left.iter().any(|left| left.lease == *lease));
    if left.is_empty() {
        return Ok(());
    }
    let here: HashSet<JobId> = host.jobs_with_runs().into_iter().collect();
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for left in left {
        // A run without a trace was claimed and never started, if this is where it would have been.
        let is_ours = left.host == runtime.host()
            || (here.contains(&left.lease.job_id) && is_of_use(runtime, host, &left.lease.job_id).await?);
        if is_ours { ours.push(left) } else { others.push(left) }
    }
    adopt(runtime, &ours).await?;
    for left in others {
        wait_for(runtime, host, &left, waiting).await?;
    }
    Ok(())
}

/// Whether what this machine has of a run can go on: it did not begin again elsewhere.
async fn is_of_use(runtime: &Runtime, host: &dyn AgentHost, job: &JobId) -> Result<bool, StoreError> {
    let relocated = checkpoint(&runtime.store().run(ReadJob(job.clone())).await?).relocated;
    Ok(host.trace(job).is_some_and(|trace| relocated.is_none_or(|relocated| trace.attempt >= relocated.attempt)))
}

fn checkpoint(job: &Job) -> RunCheckpoint {
    job.checkpoint_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Takes them over, and wakes the queues that have to begin them once.
async fn adopt(runtime: &Runtime, runs: &[LeftRun]) -> Result<(), StoreError> {
    let each = runs.iter().map(|left| adopt_one(runtime.clone(), left.clone())).collect::<Vec<_>>();
    let adopted: Vec<_> = stream::iter(each).buffer_unordered(AT_ONCE).collect().await;
    let slots: BTreeSet<_> = adopted.iter().filter_map(|adopted| adopted.as_ref().ok().copied().flatten()).collect();
    for slot in slots {
        runtime.part::<Adoptions>().add(slot);
        runtime.wake_queue(slot);
    }
    adopted.into_iter().find_map(Result::err).map_or(Ok(()), Err)
}

async fn adopt_one(runtime: Runtime, left: LeftRun) -> Result<Option<Slot>, StoreError> {
    let lease = runtime
        .store()
        .run(AdoptRun { run: left.lease.clone(), node: runtime.node(), now: runtime.clock().now() })
        .await?;
    if let Some(lease) = &lease {
        tracing::info!(job.id = %lease.job_id, attempt = lease.attempt, "a run is taken over");
    }
    Ok(lease.map(|_| left.slot))
}

async fn wait_for(
    runtime: &Runtime,
    host: &dyn AgentHost,
    left: &LeftRun,
    waiting: &mut Waiting,
) -> Result<(), StoreError> {
    let now = runtime.clock().instant();
    let Some(since) = waiting.get(&left.lease) else {
        waiting.insert(left.lease.clone(), now);
        return show_waiting(runtime, left).await;
    };
    let (waited, grace) = (now - *since, runtime.host_grace());
    if waited <= grace {
        return Ok(());
    }
    let job = runtime.store().run(ReadJob(left.lease.job_id.clone())).await?;
    let input: Option<RunInput> = serde_json::from_str(&job.input_json).ok();
    let times = checkpoint(&job).relocated.map_or(0, |relocated| relocated.times);
    let may_move = input.as_ref().is_some_and(|input| may_move(host, input)) && times < RUN_RESTARTS_MAX;
    if may_move && input.is_some_and(|input| host.can_take(&input)) {
        return relocate(runtime, left, &job).await;
    }
    // Another machine may be able to take it.
    if may_move && waited <= 2 * grace {
        return Ok(());
    }
    lose(runtime, left, &job).await
}

fn may_move(host: &dyn AgentHost, input: &RunInput) -> bool {
    host.agents().iter().any(|agent| agent.name == input.agent && agent.relocatable)
}

/// Shows as progress what the run waits for. The next progress of the run replaces it.
async fn show_waiting(runtime: &Runtime, left: &LeftRun) -> Result<(), StoreError> {
    let progress_json = serde_json::json!({ "message": format!("waiting for host {}", left.host) }).to_string();
    let note = ProgressNote { lease: left.lease.clone(), progress_json };
    runtime.store().run(NoteProgress { notes: vec![note], now: runtime.clock().now() }).await.map(drop)
}

/// Makes it begin again here. First what was begun elsewhere is marked as of no use, under the lease of the node that
/// has left; then the run is taken over. If its own machine comes back in between, that one begins it again.
async fn relocate(runtime: &Runtime, left: &LeftRun, job: &Job) -> Result<(), StoreError> {
    let before = checkpoint(job);
    let times = before.relocated.as_ref().map_or(0, |relocated| relocated.times) + 1;
    let relocated = Relocated { from: left.host.clone(), attempt: left.lease.attempt + 1, times };
    // The conversation is known to that machine only.
    let next = RunCheckpoint { vendor_session: None, relocated: Some(relocated), ..before };
    let update = JobUpdate::Checkpoint(serde_json::json!(next).to_string());
    match runtime.store().run(UpdateJob { lease: left.lease.clone(), update, now: runtime.clock().now() }).await {
        Ok(()) => {}
        // Taken by another node meanwhile.
        Err(StoreError::LeaseLost(_)) => return Ok(()),
        Err(error) => return Err(error),
    }
    tracing::warn!(job.id = %job.id, host = left.host, "a run starts again here: its host did not reconnect");
    adopt(runtime, std::slice::from_ref(left)).await
}

async fn lose(runtime: &Runtime, left: &LeftRun, job: &Job) -> Result<(), StoreError> {
    let seconds = runtime.host_grace().as_secs();
    let next = job.task_id.as_ref().map(|task| {
        format!(
            ". To go on from there, on that host: {}. To start again from the beginning: matsu retry {task}",
            go_on_command(task)
        )
    });
    let message = format!(
        "host {} did not reconnect within {seconds} s. The output of the run so far is kept. If the host comes back, \
         it ends the run and keeps its changes there as a branch (matsu branches){}",
        left.host,
        next.unwrap_or_default()
    );
    if runtime
        .store()
        .run(LoseRun { run: left.lease.clone(), message: message.clone(), now: runtime.clock().now() })
        .await?
    {
        tracing::warn!(job.id = %left.lease.job_id, host = left.host, "a run has failed: its host did not reconnect");
    }
    Ok(())
}

/// A folder stays until the end of its job is stored, or until the job begins again elsewhere. A job that the store does
/// not know belongs to another store, or was removed long ago; the same holds for it.
async fn forget(runtime: &Runtime, host: &dyn AgentHost) -> Result<(), StoreError> {
    for id in host.jobs_with_runs() {
        match runtime.store().run(ReadJob(id.clone())).await {
            Ok(job) => {
                let lease = Lease { job_id: job.id.clone(), attempt: job.attempt };
                if let Some(relocated) = checkpoint(&job).relocated {
                    host.give_up(&id, Some(relocated.attempt)).await;
                }
                if job.state.is_finished() && !runtime.running().contains(&lease) {
                    Tasks::of(runtime).give_up_runs(host, &id).await?;
                }
            }
            Err(StoreError::NotFound { .. }) => drop(host.give_up(&id, None).await),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
