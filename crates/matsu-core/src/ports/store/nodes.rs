//! Nodes and the recovery of what a dead one left behind.

use crate::clock::Timestamp;
use crate::id::NodeId;
use crate::job::Lease;
use crate::node::{Node, NodeRole};
use crate::slot::{Slot, SlotLimits};

use super::request;

/// Oldest first.
#[derive(Clone, Debug)]
pub struct ReadNodes;
request!(ReadNodes => Vec<Node>);

/// Every slot, in the order of [`Slot::ALL`]: what is in use and what all nodes together allow.
#[derive(Clone, Debug)]
pub struct ReadSlots;
request!(ReadSlots => Vec<SlotUse>);

/// Runs whose node has left, oldest first.
#[derive(Clone, Debug)]
pub struct ReadLeftRuns;
request!(ReadLeftRuns => Vec<LeftRun>);

/// Gives such a run to a node, with a higher attempt and the permits it has. Counts as no failure. `None`: it was
/// taken by another node, or has ended.
#[derive(Clone, Debug)]
pub struct AdoptRun {
    pub run: Lease,
    pub node: NodeId,
    pub now: Timestamp,
}
request!(AdoptRun => Option<Lease>);

/// Fails such a run, whose host did not come back. `false`: it was taken meanwhile, or has ended.
#[derive(Clone, Debug)]
pub struct LoseRun {
    pub run: Lease,
    pub message: String,
    pub now: Timestamp,
}
request!(LoseRun => bool);

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
