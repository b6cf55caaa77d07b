//! Nodes: which ones there are, and the recovery of what a dead one held.

use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, NodeId, TaskId};
use matsu_core::job::{JobEnd, JobKind, Lease};
use matsu_core::node::{Node, NodeRole};
use matsu_core::ports::store::{NewNode, ReadNodes, ReadSlots, Request, SlotUse, StoreError};
use matsu_core::slot::Slot;

use super::finish_and_claim::{Fence, ending, release, settle_one};
use super::steer::wake_all_slots;
use crate::sql::{Sql, Transition, Tx, params};
use crate::transitions::held;
use crate::transitions::hold::hold;
use crate::transitions::ledger::Ledger;

const REGISTER: Sql =
    Sql::both("INSERT INTO nodes (id, role, host, pid, version, beat, started_at) VALUES ($1, $2, $3, $4, $5, 0, $6)");
const BEAT: Sql = Sql::both("UPDATE nodes SET beat = beat + 1 WHERE id = $1 AND role <> 'left'");
const NODES: Sql = Sql::both(
    "SELECT id, role, host, pid, version, beat, started_at FROM nodes WHERE role <> 'left' ORDER BY started_at, id",
);
const WISH: Sql = Sql::both("INSERT INTO slot_wishes (slot, node_id, permits_max) VALUES ($1, $2, $3)");
const FORGET_WISHES: Sql = Sql::both("DELETE FROM slot_wishes WHERE node_id = $1");
/// Which jobs may be held, so that not all that ever ran or waits is looked through. On SQLite an index names them; on
/// PostgreSQL a job that runs has a permit, or was set aside.
macro_rules! maybe_held {
    () => {
        concat!(
            "id = ANY(ARRAY(SELECT job_id FROM permits WHERE job_id IS NOT NULL UNION ALL SELECT id FROM jobs WHERE hold = ",
            hold!(NoPermit),
            " AND finished_at IS NULL))"
        )
    };
}
const RUNNING: Sql = Sql::each(
    concat!(
        "SELECT slot, count(*) FROM jobs WHERE owner_node IS NOT NULL AND state = 'running' AND ",
        held!(),
        " GROUP BY slot"
    ),
    concat!("SELECT slot, count(*) FROM jobs WHERE state = 'running' AND ", maybe_held!(), " GROUP BY slot"),
);
const TAKEN: Sql = Sql::both("SELECT slot, count(*) FROM permits WHERE job_id IS NOT NULL GROUP BY slot");
const WISHES: Sql = Sql::both("SELECT slot, min(permits_max) FROM slot_wishes GROUP BY slot");
const FORGET: Sql = Sql::both("DELETE FROM nodes WHERE id = $1");
/// A node may have been forgotten and yet have claimed once more.
const LEAVE: Sql = Sql::both(
    "INSERT INTO nodes (id, role, host, pid, version, beat, started_at, left_at) \
     VALUES ($1, 'left', '', 0, '', 0, $2, $2) \
     ON CONFLICT (id) DO UPDATE SET role = 'left', left_at = coalesce(nodes.left_at, $2)",
);
/// A node rarely goes, and nothing it held may be missed: here all that is unfinished is looked through.
const HELD_BY: Sql = Sql::both(concat!(
    "SELECT id, task_id, kind FROM jobs WHERE owner_node = $1 AND finished_at IS NULL AND ",
    held!()
));
const UNREGISTERED: Sql = Sql::each(
    concat!("SELECT DISTINCT owner_node FROM jobs WHERE owner_node NOT IN (SELECT id FROM nodes) AND ", held!()),
    concat!(
        "SELECT DISTINCT owner_node FROM jobs WHERE owner_node NOT IN (SELECT id FROM nodes) AND ",
        held!(),
        " AND ",
        maybe_held!()
    ),
);

pub struct Register(pub NewNode);

impl Request for Register {
    type Output = ();
}

impl Transition for Register {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let node = &self.0;
        tx.run(&REGISTER, params![&node.id, node.role.as_str(), &node.host, node.pid, &node.version, node.started_at])
            .await?;
        if let Some(limits) = &node.limits {
            let wishes = Slot::ALL.iter().map(|slot| params![slot.as_str(), &node.id, limits.of(*slot)].to_vec());
            tx.run_each(&WISH, &wishes.collect::<Vec<_>>()).await?;
        }
        Ok(())
    }
}

/// Where a count belongs.
type Write = fn(&mut SlotUse, u32);

impl Transition for ReadSlots {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<SlotUse>, StoreError> {
        let mut slots: Vec<SlotUse> =
            Slot::ALL.iter().map(|slot| SlotUse { slot: *slot, permits_max: None, taken: 0, running: 0 }).collect();
        let write: [(&Sql, Write); 3] = [
            (&WISHES, |slot, count| slot.permits_max = Some(count)),
            (&TAKEN, |slot, count| slot.taken = count),
            (&RUNNING, |slot, count| slot.running = count),
        ];
        for (sql, write) in write {
            for row in tx.rows(sql, params![]).await? {
                let mut c = row.columns();
                let name = c.word(Slot::parse)?;
                let count = c.count()?;
                slots.iter_mut().filter(|slot| slot.slot == name).for_each(|slot| write(slot, count));
            }
        }
        Ok(slots)
    }
}

pub struct Beat(pub NodeId);

impl Request for Beat {
    type Output = ();
}

impl Transition for Beat {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        if tx.run(&BEAT, params![&self.0]).await? == 0 {
            return Err(StoreError::NotFound { what: "node", id: self.0.to_string() });
        }
        Ok(())
    }
}

impl Transition for ReadNodes {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Node>, StoreError> {
        let rows = tx.rows(&NODES, params![]).await?;
        rows.iter()
            .map(|row| {
                let mut c = row.columns();
                Ok(Node {
                    id: NodeId::from_text(c.text()?),
                    role: c.word(NodeRole::parse)?,
                    host: c.text()?,
                    pid: c.count()?,
                    version: c.text()?,
                    beat: c.int()?,
                    started_at: c.time()?,
                })
            })
            .collect()
    }
}

/// Owners of running jobs that are not among the nodes: reaped, and yet they claimed once more.
pub struct ReadUnregistered;

impl Request for ReadUnregistered {
    type Output = Vec<NodeId>;
}

impl Transition for ReadUnregistered {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<NodeId>, StoreError> {
        let rows = tx.rows(&UNREGISTERED, params![]).await?;
        rows.iter().map(|row| row.only_text().map(NodeId::from_text)).collect()
    }
}

pub struct ReapNode {
    pub node: NodeId,
    pub now: Timestamp,
}

impl Request for ReapNode {
    type Output = Vec<JobId>;
}

impl Transition for ReapNode {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<JobId>, StoreError> {
        let mut ledger = Ledger::default();
        // Again, under the locks, until nothing new is found: while they were awaited a job may have ended, and a
        // node that only seemed dead may have started one. A job settled without its task would spoil the counts.
        let (jobs, left) = loop {
            let held = held_by(tx, &self.node).await?;
            let (left, jobs): (Vec<_>, Vec<_>) = held.into_iter().partition(|held| held.kind.outlives_owner());
            if !ledger.lock_also(tx, jobs.iter().filter_map(|held| held.task_id.clone())).await? {
                break (jobs.into_iter().map(|held| held.id).collect::<Vec<JobId>>(), left.len());
            }
        };
        let rows = ending(tx, jobs.iter()).await?;
        let mut settled = Vec::new();
        for id in jobs {
            let Some(row) = rows.get(&id) else { continue };
            let lease = Lease { job_id: id.clone(), attempt: row.attempt };
            let answer = settle_one(tx, &mut ledger, row, &lease, &JobEnd::OwnerDied, Fence::Bump, self.now).await?;
            if answer.is_ok() {
                settled.push(id);
            }
        }
        release(tx, &settled.iter().map(JobId::as_str).collect::<Vec<_>>()).await?;
        if left > 0 {
            tx.run(&LEAVE, params![&self.node, self.now]).await?;
        } else {
            tx.run(&FORGET, params![&self.node]).await?;
        }
        tx.run(&FORGET_WISHES, params![&self.node]).await?;
        ledger.write(tx, self.now).await?;
        if !settled.is_empty() {
            wake_all_slots(tx);
        }
        Ok(settled)
    }
}

/// A job that a node holds.
struct HeldJob {
    id: JobId,
    task_id: Option<TaskId>,
    kind: JobKind,
}

/// In the order of their ids. (Sorted there, a planner may walk all of history in that order.)
async fn held_by(tx: &mut Tx<'_>, node: &NodeId) -> Result<Vec<HeldJob>, StoreError> {
    let mut held = Vec::new();
    for row in tx.rows(&HELD_BY, params![node]).await? {
        let mut c = row.columns();
        let (id, task_id) = (JobId::from_text(c.text()?), c.opt_text()?.map(TaskId::from_text));
        held.push(HeldJob { id, task_id, kind: c.word(JobKind::parse)? });
    }
    held.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    Ok(held)
}
