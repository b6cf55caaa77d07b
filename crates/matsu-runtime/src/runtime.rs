//! What all modules of this process share: the store, the clock, the settings, the jobs that run here. Cheap to clone.
//!
//! It imports no module that does work, so those can import it. What one of them remembers is a [`Runtime::part`] of
//! its own type. Nothing here must survive: that is in the store.

pub mod body;
pub mod context;
mod options;
mod outage;
mod parts;
mod research_kit;
pub mod run_clock;
pub mod running;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::clock::{Clock, Timestamp};
use matsu_core::id::{NodeId, SessionId, TaskId};
use matsu_core::ports::agent::AgentHost;
use matsu_core::ports::store::{NewNode, Store};
use matsu_core::slot::{Slot, SlotLimits};
use matsu_core::wake::Hub;

use crate::cursors::Cursors;
use crate::snapshots::Snapshots;

pub use body::{Bodies, JobBody};
pub use context::{JobContext, Taken};
pub use options::{Expiry, RuntimeOptions, SessionOptions, Settings, Workers};
pub(crate) use outage::Outage;
use parts::Parts;
pub use research_kit::{ResearchKit, ResearchSettings};
use running::Running;

/// A group of verbs on what a [`Runtime`] shares. It holds nothing of its own: `Tasks::of(&runtime).submit(…)`.
macro_rules! service {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name<'a> {
            runtime: &'a $crate::Runtime,
        }

        impl<'a> $name<'a> {
            #[must_use]
            pub fn of(runtime: &'a $crate::Runtime) -> Self {
                Self { runtime }
            }
        }
    };
}
pub(crate) use service;

#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
    behalf: Option<Arc<Behalf>>,
}

/// What a runtime that works for a session does differently.
struct Behalf {
    /// Every write is checked against the session's interrupts, in its own transaction.
    store: Arc<dyn Store>,
    /// Cancelled when the session must hear something: waits end.
    interrupt: CancellationToken,
}

struct Inner {
    options: RuntimeOptions,
    settings: RwLock<Settings>,
    /// Replaced when others took this node for dead.
    node: Mutex<NodeId>,
    started_at: Timestamp,
    cursors: Cursors,
    snapshots: Arc<Snapshots>,
    running: Running,
    claiming: AtomicBool,
    /// A node that the store does not know must not claim: no other node would ever find it dead.
    registered: AtomicBool,
    nodes_at_work: AtomicU32,
    look: Notify,
    page: OnceLock<String>,
    parts: Parts,
}

impl Runtime {
    #[must_use]
    pub fn new(options: RuntimeOptions) -> Self {
        let started_at = options.clock.now();
        let snapshots = Snapshots::new(Arc::clone(&options.store), options.clock);
        let inner = Inner {
            node: Mutex::new(NodeId::mint(started_at)),
            started_at,
            cursors: Cursors::default(),
            snapshots,
            running: Running::default(),
            claiming: AtomicBool::new(true),
            registered: AtomicBool::new(false),
            nodes_at_work: AtomicU32::new(1),
            look: Notify::new(),
            page: OnceLock::new(),
            parts: Parts::default(),
            settings: RwLock::new(options.settings.clone()),
            options,
        };
        Self { inner: Arc::new(inner), behalf: None }
    }

    /// What one module remembers in this process, made when it is first asked for.
    pub(crate) fn part<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        self.inner.parts.get()
    }

    /// Where the page is, once its listener is open. The first value counts.
    pub fn set_page(&self, address: String) {
        let _ = self.inner.page.set(address);
    }

    /// Where a person can watch a task.
    #[must_use]
    pub fn watch_link(&self, task: &TaskId) -> Option<String> {
        self.inner.page.get().map(|page| format!("{page}/tasks/{task}"))
    }

    /// The store, with the writes that this runtime may make.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        self.behalf.as_ref().map_or(self.plain_store(), |behalf| &behalf.store)
    }

    /// The store itself, for what a session's interrupts do not hold up.
    pub(crate) fn plain_store(&self) -> &Arc<dyn Store> {
        &self.inner.options.store
    }

    /// The same runtime, working for a session: an interrupt that is committed first undoes its writes.
    pub(crate) fn on_behalf_of(&self, session: &SessionId) -> Self {
        let behalf = Behalf { store: self.plain_store().guarded(session), interrupt: CancellationToken::new() };
        Self { inner: Arc::clone(&self.inner), behalf: Some(Arc::new(behalf)) }
    }

    /// Ends the waits of whom it works for.
    pub(crate) fn interrupt(&self) -> Option<&CancellationToken> {
        self.behalf.as_ref().map(|behalf| &behalf.interrupt)
    }

    /// Other settings from here on. What was begun by the earlier ones goes on by them.
    pub fn reload(&self, settings: Settings) {
        *self.inner.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    fn settings<T>(&self, read: impl FnOnce(&Settings) -> T) -> T {
        read(&self.inner.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    #[must_use]
    pub fn session_options(&self) -> SessionOptions {
        self.settings(|settings| settings.sessions)
    }

    #[must_use]
    pub fn hub(&self) -> &Arc<Hub> {
        self.plain_store().hub()
    }

    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.inner.options.clock
    }

    #[must_use]
    pub fn limits(&self) -> &SlotLimits {
        &self.inner.options.limits
    }

    #[must_use]
    pub fn bodies(&self) -> &Bodies {
        &self.inner.options.bodies
    }

    /// The command lines of this machine, if this process knows any.
    #[must_use]
    pub fn agents(&self) -> Option<&Arc<dyn AgentHost>> {
        self.inner.options.agents.as_ref()
    }

    /// What research is done with, where this process does any.
    #[must_use]
    pub fn research(&self) -> Option<Arc<ResearchKit>> {
        self.settings(|settings| settings.research.clone())
    }

    #[must_use]
    pub fn hold_max(&self) -> Duration {
        self.settings(|settings| settings.hold_max)
    }

    /// The same for a call that its caller hears progress of.
    #[must_use]
    pub fn hold_max_progress(&self) -> Duration {
        self.settings(|settings| settings.hold_max_progress)
    }

    #[must_use]
    pub fn cursors(&self) -> &Cursors {
        &self.inner.cursors
    }

    #[must_use]
    pub fn snapshots(&self) -> &Arc<Snapshots> {
        &self.inner.snapshots
    }

    /// This process as the store knows it at the moment.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.inner.node.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Jobs whose work would end with this process. Runs of agents go on without it.
    #[must_use]
    pub fn bound_jobs(&self) -> usize {
        self.inner.running.bound_here()
    }

    /// Whether this process follows a run of an agent.
    #[must_use]
    pub fn has_runs(&self) -> bool {
        self.inner.running.any_outlives()
    }

    /// How many bodies this process runs.
    #[must_use]
    pub fn running_jobs(&self) -> usize {
        self.inner.running.len()
    }

    /// Claims nothing more until [`Runtime::resume_claiming`]; what runs goes on. For a hand-over.
    pub fn pause_claiming(&self) {
        self.inner.claiming.store(false, Ordering::SeqCst);
    }

    pub fn resume_claiming(&self) {
        self.inner.claiming.store(true, Ordering::SeqCst);
        self.wake_queues();
    }

    #[must_use]
    pub fn is_claiming(&self) -> bool {
        self.inner.claiming.load(Ordering::SeqCst) && self.is_registered()
    }

    /// How many nodes run jobs of this store, this one among them; as of the last tick.
    pub(crate) fn nodes_at_work(&self) -> u32 {
        self.inner.nodes_at_work.load(Ordering::Relaxed)
    }

    pub(crate) fn set_nodes_at_work(&self, nodes: u32) {
        self.inner.nodes_at_work.store(nodes.max(1), Ordering::Relaxed);
    }

    pub(crate) fn running(&self) -> &Running {
        &self.inner.running
    }

    pub(crate) fn workers(&self) -> Workers {
        self.inner.options.workers
    }

    pub(crate) fn expiry(&self) -> Expiry {
        self.inner.options.expiry
    }

    pub(crate) fn wake_queue(&self, slot: Slot) {
        self.hub().publish([&Topic::queue(slot)]);
    }

    pub(crate) fn wake_queues(&self) {
        let topics: Vec<Topic> = Slot::ALL.iter().copied().map(Topic::queue).collect();
        self.hub().publish(&topics);
    }

    /// What this process registers as.
    pub(crate) fn new_node(&self) -> NewNode {
        let options = &self.inner.options;
        NewNode {
            id: self.node(),
            role: options.role,
            host: options.host.clone(),
            pid: options.pid,
            version: options.version.clone(),
            started_at: self.inner.started_at,
            limits: (options.workers == Workers::All).then(|| options.limits.clone()),
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.inner.options.host
    }

    /// What a million tokens cost, by model or agent.
    #[must_use]
    pub fn prices(&self) -> Arc<BTreeMap<String, matsu_core::usage::Price>> {
        self.settings(|settings| Arc::clone(&settings.prices))
    }

    /// What all runs of one person may cost in a day.
    #[must_use]
    pub fn day_limit(&self) -> Option<matsu_core::usage::UsageLimit> {
        self.settings(|settings| settings.day_limit)
    }

    /// How long finished agent tasks are kept.
    #[must_use]
    pub fn results_kept(&self) -> Duration {
        self.settings(|settings| settings.results_kept)
    }

    pub(crate) fn host_grace(&self) -> Duration {
        self.settings(|settings| settings.host_grace)
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.inner.registered.load(Ordering::SeqCst)
    }

    pub(crate) fn set_registered(&self) {
        self.inner.registered.store(true, Ordering::SeqCst);
        self.wake_queues();
    }

    /// A node that was reaped never comes back: its id is spent, so that nothing it still writes can count.
    pub(crate) fn take_new_node_id(&self) -> NodeId {
        let fresh = NodeId::mint(self.clock().now());
        self.inner.registered.store(false, Ordering::SeqCst);
        self.inner.node.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&fresh);
        fresh
    }

    /// Asks for a look at the orders now rather than at the next tick.
    pub(crate) fn look_for_orders(&self) {
        self.inner.look.notify_one();
    }

    pub(crate) async fn asked_to_look(&self) {
        self.inner.look.notified().await;
    }
}
