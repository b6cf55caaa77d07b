//! The runtime: one handle on the store, the running jobs and the waits of this process. Cheap to clone.
//!
//! It holds no truth of its own: everything that must survive is in the store, and what is here can be lost.

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

use crate::agents::LiveRuns;
use crate::body::Bodies;
use crate::chat::WeakChats;
use crate::cursors::Cursors;
use crate::dispatch::signal::News;
use crate::options::{Expiry, RuntimeOptions, Settings, Workers};
use crate::queue::adoptions::Adoptions;
use crate::queue::lone::Lone;
use crate::queue::running::Running;
use crate::research::{DeliveredStatus, ResearchKit};
use crate::sessions::{SessionOptions, Sight, Waiters};
use crate::snapshots::Snapshots;
use crate::status::OpenWaits;
use crate::tasks::OpenTasks;

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
    open_waits: Arc<OpenWaits>,
    open_tasks: OpenTasks,
    delivered: DeliveredStatus,
    snapshots: Arc<Snapshots>,
    running: Running,
    lone: Lone,
    adoptions: Adoptions,
    live_runs: Arc<LiveRuns>,
    claiming: AtomicBool,
    /// A node that the store does not know must not claim: no other node would ever find it dead.
    registered: AtomicBool,
    nodes_at_work: AtomicU32,
    look: Notify,
    waiters: Arc<Waiters>,
    sight: Sight,
    news: News,
    page: OnceLock<String>,
    chats_of_runs: OnceLock<WeakChats>,
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
            open_waits: Arc::default(),
            open_tasks: OpenTasks::default(),
            delivered: DeliveredStatus::default(),
            snapshots,
            running: Running::default(),
            lone: Lone::default(),
            adoptions: Adoptions::default(),
            live_runs: Arc::default(),
            claiming: AtomicBool::new(true),
            registered: AtomicBool::new(false),
            nodes_at_work: AtomicU32::new(1),
            look: Notify::new(),
            waiters: Arc::default(),
            sight: Sight::default(),
            news: News::default(),
            page: OnceLock::new(),
            chats_of_runs: OnceLock::new(),
            settings: RwLock::new(options.settings.clone()),
            options,
        };
        Self { inner: Arc::new(inner), behalf: None }
    }

    pub(crate) fn chats_of_runs(&self) -> &OnceLock<WeakChats> {
        &self.inner.chats_of_runs
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

    pub(crate) fn waiters(&self) -> &Arc<Waiters> {
        &self.inner.waiters
    }

    pub(crate) fn sight(&self) -> &Sight {
        &self.inner.sight
    }

    pub(crate) fn news(&self) -> &News {
        &self.inner.news
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

    /// The runs of agents that go on in this process.
    #[must_use]
    pub fn live_runs(&self) -> &Arc<LiveRuns> {
        &self.inner.live_runs
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

    /// What readers of research tasks have been shown.
    pub(crate) fn delivered(&self) -> &DeliveredStatus {
        &self.inner.delivered
    }

    /// Calls that are held open at the moment, in this process.
    #[must_use]
    pub fn waits_open(&self) -> usize {
        self.inner.open_waits.len()
    }

    pub(crate) fn open_tasks(&self) -> &OpenTasks {
        &self.inner.open_tasks
    }

    pub(crate) fn open_waits(&self) -> &Arc<OpenWaits> {
        &self.inner.open_waits
    }

    pub(crate) fn lone(&self) -> &Lone {
        &self.inner.lone
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

    pub(crate) fn adoptions(&self) -> &Adoptions {
        &self.inner.adoptions
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
