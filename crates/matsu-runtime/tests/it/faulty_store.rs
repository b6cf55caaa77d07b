//! A store that fails on command: before the work, or after it with the answer lost. It also keeps a trace.

use std::any::type_name;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use matsu_core::change::Topic;
use matsu_core::clock::{Clock, Timestamp};
use matsu_core::id::{JobId, NodeId, SessionId};
use matsu_core::ports::store::{
    ForeignChange, NewNode, PruneRule, Pruned, ReadNodes, Request, Run, Store, StoreError, StoreInfo,
};
use matsu_core::wake::Hub;

use crate::fixtures::Chance;

pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
    trace: AtomicU64,
    calls: AtomicU64,
    calls_of: Mutex<HashMap<&'static str, u64>>,
    is_chattering: AtomicBool,
}

/// What goes wrong.
pub enum Plan {
    Nothing,
    /// Every call is refused.
    Down,
    /// No call ever returns.
    Hangs,
    /// The next calls of this name panic, and their callers with them.
    Panics(&'static str, u32),
    /// The next calls of this name do their work, and their answer is lost.
    AnswerLost(&'static str, u32),
    /// This many calls in a hundred are refused, and of this many the answer is lost.
    AtRandom {
        chance: Chance,
        refused: u64,
        lost: u64,
    },
}

enum Fault {
    None,
    Refused,
    AnswerLost,
    Hangs,
    Panics,
}

impl FaultyStore {
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            plan: Mutex::new(Plan::Nothing),
            trace: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            calls_of: Mutex::default(),
            is_chattering: AtomicBool::new(false),
        })
    }

    pub fn set(&self, plan: Plan) {
        *self.plan.lock().expect("a plan") = plan;
    }

    /// A number that two runs share only if they made the same calls in the same order.
    pub fn trace(&self) -> u64 {
        self.trace.load(Ordering::Relaxed)
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How often this was called.
    pub fn calls_of(&self, name: &str) -> u64 {
        self.calls_of.lock().expect("counts").get(name).copied().unwrap_or(0)
    }

    /// From now on other nodes have something to say a thousand times a second.
    pub fn chatter(&self) {
        self.is_chattering.store(true, Ordering::Relaxed);
    }

    fn fault(&self, name: &'static str) -> Fault {
        match &mut *self.plan.lock().expect("a plan") {
            Plan::Nothing => Fault::None,
            Plan::Down => Fault::Refused,
            Plan::Hangs => Fault::Hangs,
            Plan::Panics(which, times) if *which == name && *times > 0 => {
                *times -= 1;
                Fault::Panics
            }
            Plan::Panics(..) => Fault::None,
            Plan::AnswerLost(which, times) if *which == name && *times > 0 => {
                *times -= 1;
                Fault::AnswerLost
            }
            Plan::AnswerLost(..) => Fault::None,
            Plan::AtRandom { chance, refused, lost } => match chance.below(100) {
                roll if roll < *refused => Fault::Refused,
                roll if roll < *refused + *lost => Fault::AnswerLost,
                _ => Fault::None,
            },
        }
    }

    async fn pass<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        *self.calls_of.lock().expect("counts").entry(name).or_default() += 1;
        let traced =
            name.bytes().fold(self.trace(), |trace, byte| (trace ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        self.trace.store(traced, Ordering::Relaxed);
        let gone = || StoreError::Unavailable("as the test wished".to_owned());
        match self.fault(name) {
            Fault::None => call.await,
            Fault::Refused => Err(gone()),
            Fault::Hangs => std::future::pending().await,
            Fault::Panics => panic!("as the test wished"),
            Fault::AnswerLost => {
                call.await?;
                Err(gone())
            }
        }
    }
}

#[async_trait]
impl<R: Request> Run<R> for FaultyStore
where
    dyn Store: Run<R>,
{
    async fn run(&self, request: R) -> Result<R::Output, StoreError> {
        let name = type_name::<R>();
        self.pass(name.rsplit("::").next().unwrap_or(name), self.inner.run(request)).await
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn hub(&self) -> &Arc<Hub> {
        self.inner.hub()
    }

    fn guarded(&self, session: &SessionId) -> Arc<dyn Store> {
        self.inner.guarded(session)
    }

    async fn foreign_change(&self) -> ForeignChange {
        if self.is_chattering.load(Ordering::Relaxed) {
            Clock::system().sleep(Duration::from_millis(1)).await;
            return ForeignChange::Topics(vec![Topic::from_text("task/elsewhere")]);
        }
        self.inner.foreign_change().await
    }

    async fn register_node(&self, node: NewNode) -> Result<(), StoreError> {
        self.pass("register_node", self.inner.register_node(node)).await
    }

    async fn beat(&self, id: &NodeId) -> Result<(), StoreError> {
        // As where heartbeats count: a node that was reaped gets an error.
        if !self.inner.run(ReadNodes).await?.iter().any(|node| node.id == *id) {
            return Err(StoreError::NotFound { what: "node", id: id.to_string() });
        }
        self.pass("beat", self.inner.beat(id)).await
    }

    async fn dead_nodes(&self, observer: &NodeId) -> Result<Vec<NodeId>, StoreError> {
        self.pass("dead_nodes", self.inner.dead_nodes(observer)).await
    }

    async fn reap_node(&self, id: &NodeId, now: Timestamp) -> Result<Vec<JobId>, StoreError> {
        self.pass("reap_node", self.inner.reap_node(id, now)).await
    }

    async fn prune(&self, rule: PruneRule, rows_max: u32) -> Result<Pruned, StoreError> {
        self.pass("prune", self.inner.prune(rule, rows_max)).await
    }

    async fn check(&self) -> Result<StoreInfo, StoreError> {
        self.pass("check", self.inner.check()).await
    }

    async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        self.pass("backup", self.inner.backup(to)).await
    }
}
