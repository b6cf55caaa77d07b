//! Nodes and the recovery of what a dead one left behind.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::id::{JobId, NodeId};
use crate::job::Lease;
use crate::node::{Node, NodeRole};
use crate::slot::{Slot, SlotLimits};

use super::StoreError;

#[async_trait]
pub trait NodeStore {
    /// Makes this process known, after taking whatever proves it alive. While it is known, no slot has more permits
    /// than it allows, on whatever node.
    async fn register_node(&self, node: NewNode) -> Result<(), StoreError>;

    /// Reports that the node is still alive. A no-op where a lock proves it.
    async fn beat(&self, id: &NodeId) -> Result<(), StoreError>;

    /// Oldest first.
    async fn nodes(&self) -> Result<Vec<Node>, StoreError>;

    /// Every slot, in the order of [`Slot::ALL`]: what is in use and what all nodes together allow.
    async fn slots(&self) -> Result<Vec<SlotUse>, StoreError>;

    /// Nodes of this store that are certainly dead. Called once a tick by one task of the process, which is what
    /// the count of unmoved heartbeats stands on.
    async fn dead_nodes(&self, observer: &NodeId) -> Result<Vec<NodeId>, StoreError>;

    /// Settles every job the node held, frees its permits, returns its reservations, forgets the node. Runs that
    /// outlive their node stay as they are, and while there are any the node is kept as one that has left. Idempotent.
    /// Returns the settled jobs in id order.
    async fn reap_node(&self, id: &NodeId, now: Timestamp) -> Result<Vec<JobId>, StoreError>;

    /// Runs whose node has left, oldest first.
    async fn left_runs(&self) -> Result<Vec<LeftRun>, StoreError>;

    /// Gives such a run to a node, with a higher attempt and the permits it has. Counts as no failure. `None`: it was
    /// taken by another node, or has ended.
    async fn adopt_run(&self, run: &Lease, node: &NodeId, now: Timestamp) -> Result<Option<Lease>, StoreError>;

    /// Fails such a run, whose host did not come back. `false`: it was taken meanwhile, or has ended.
    async fn lose_run(&self, run: &Lease, message: &str, now: Timestamp) -> Result<bool, StoreError>;
}

/// A run whose node has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftRun {
    pub lease: Lease,
    pub slot: Slot,
    /// Where its node was.
    pub host: String,
    pub left_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct NewNode {
    pub id: NodeId,
    pub role: NodeRole,
    pub host: String,
    pub pid: u32,
    pub version: String,
    pub started_at: Timestamp,
    /// What it allows of each slot. `None`: it runs no jobs, and sets no limit.
    pub limits: Option<SlotLimits>,
}

/// One slot over all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotUse {
    pub slot: Slot,
    /// The smallest that a live node allows. `None`: no node sets a limit.
    pub permits_max: Option<u32>,
    /// Permits in use, extra ones among them.
    pub taken: u32,
    /// Jobs of the slot that run.
    pub running: u32,
}
