//! The heartbeat of this node, and the recovery of nodes without one.

use tokio_util::sync::CancellationToken;

use matsu_core::limits::{BEAT_EVERY, TICK};
use matsu_core::node::NodeRole;
use matsu_core::ports::store::{ReadNodes, StoreError};

use crate::runtime::{Outage, Runtime};
use crate::tasks::queue::adoptions::Adoptions;

/// Makes this process known to the store, however long that takes. `false`: the shutdown came before it was.
pub async fn register(runtime: &Runtime, shutdown: &CancellationToken) -> bool {
    let work = async {
        let mut outage = Outage::new("register");
        while let Some(pause) = outage.note(&register_once(runtime, outage.is_on()).await) {
            runtime.clock().sleep(pause).await;
        }
    };
    shutdown.run_until_cancelled(work).await.is_some()
}

/// The answer to an earlier try may have been lost after its commit, so a second one looks first.
async fn register_once(runtime: &Runtime, is_retry: bool) -> Result<(), StoreError> {
    let node = runtime.new_node();
    if !is_retry || !runtime.store().run(ReadNodes).await?.iter().any(|known| known.id == node.id) {
        runtime.store().register_node(node).await?;
    }
    runtime.set_registered();
    Ok(())
}

pub async fn run(runtime: &Runtime) {
    let mut outage = Outage::new("heart");
    let mut beat_at = runtime.clock().instant() + BEAT_EVERY;
    // At once: runs wait to be taken over.
    let _pause = outage.note(&reap(runtime).await);
    loop {
        runtime.clock().sleep(TICK).await;
        // By the clock and not by the count of turns, which a slow store makes longer; and again at the next turn if
        // it failed, since others count how long it stands still.
        let is_beat = runtime.clock().instant() >= beat_at;
        let lived = live(runtime, is_beat).await;
        if is_beat && lived.is_ok() {
            beat_at = runtime.clock().instant() + BEAT_EVERY;
        }
        let reaped = reap(runtime).await;
        // The pause is not used: the count of unmoved heartbeats stands on one look a tick.
        let _pause = outage.note(&lived.and(reaped));
    }
}

/// One beat if it is time. A node that is no longer known was taken for dead: its leases are lost, and it starts
/// again as another.
async fn live(runtime: &Runtime, is_beat: bool) -> Result<(), StoreError> {
    if !runtime.is_registered() {
        return register_once(runtime, true).await;
    }
    if !is_beat {
        return Ok(());
    }
    match runtime.store().beat(&runtime.node()).await {
        Err(StoreError::NotFound { .. }) => {
            let lost = runtime.node();
            runtime.running().lose_all();
            let fresh = runtime.take_new_node_id();
            tracing::warn!(lost.id = %lost, node.id = %fresh, "this node was considered dead and registers again");
            register_once(runtime, false).await
        }
        answer => answer,
    }
}

async fn reap(runtime: &Runtime) -> Result<(), StoreError> {
    for dead in runtime.store().dead_nodes(&runtime.node()).await? {
        let jobs = runtime.store().reap_node(&dead, runtime.clock().now()).await?;
        tracing::warn!(node.id = %dead, jobs = jobs.len(), "jobs of a dead node were requeued or failed");
        runtime.part::<Adoptions>().look_now();
    }
    let nodes = runtime.store().run(ReadNodes).await?;
    let at_work = nodes.iter().filter(|node| node.role != NodeRole::Command).count();
    runtime.set_nodes_at_work(u32::try_from(at_work).unwrap_or(u32::MAX));
    Ok(())
}
