//! What a runtime is made of. Everything that differs between a daemon, a worker and a test stands here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::{Clock, Timestamp};
use matsu_core::language::Language;
use matsu_core::limits::{
    CANCEL_ACK_MAX, CHAT_IDLE_END, CONNECT_MAX, HOLD_ACK_MAX, HOLD_MAX, HOST_GRACE, NATIVE_WAIT_MAX, RESULT_KEPT,
    RESULT_KEPT_IN_MEMORY, SESSION_KEPT, SESSION_TOUCH_EVERY, TOMBSTONE_KEPT, WAIT_KEPT_AFTER_READ,
};
use matsu_core::node::NodeRole;
use matsu_core::ports::agent::AgentHost;
use matsu_core::ports::store::{ExpiryRule, Store};
use matsu_core::slot::SlotLimits;
use matsu_core::usage::{Price, UsageLimit};

use super::body::Bodies;
use super::research_kit::ResearchKit;

/// The parts and settings of a [`crate::Runtime`].
#[derive(Clone)]
pub struct RuntimeOptions {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub limits: SlotLimits,
    pub bodies: Bodies,
    /// The command lines of this machine. Absent: no agent is known.
    pub agents: Option<Arc<dyn AgentHost>>,
    pub workers: Workers,
    pub expiry: Expiry,
    /// What holds at the start; see [`crate::Runtime::reload`].
    pub settings: Settings,
    pub role: NodeRole,
    pub host: String,
    pub pid: u32,
    pub version: String,
}

impl RuntimeOptions {
    /// A serving node with the usual settings.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Clock, limits: SlotLimits, bodies: Bodies) -> Self {
        Self {
            store,
            clock,
            limits,
            bodies,
            agents: None,
            workers: Workers::All,
            expiry: Expiry::Durable,
            settings: Settings::default(),
            role: NodeRole::Serve,
            host: String::new(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// What can be changed while a runtime works.
#[derive(Clone)]
pub struct Settings {
    /// How long a wait is held at most, unless its request says otherwise.
    pub hold_max: Duration,
    /// The same for a call whose caller is fed with progress, and may be kept alive by it.
    pub hold_max_progress: Duration,
    pub sessions: SessionOptions,
    /// What research is done with; absent where this process does none.
    pub research: Option<Arc<ResearchKit>>,
    /// How long a run waits for its host to come back.
    pub host_grace: Duration,
    /// How long finished agent tasks are kept in a store that stays.
    pub results_kept: Duration,
    /// What a million tokens cost, by model or agent; for programs that do not say what they cost.
    pub prices: Arc<BTreeMap<String, Price>>,
    /// What all runs of one person may cost in a day.
    pub day_limit: Option<UsageLimit>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hold_max: HOLD_MAX,
            hold_max_progress: HOLD_MAX,
            sessions: SessionOptions::default(),
            research: None,
            host_grace: HOST_GRACE,
            results_kept: RESULT_KEPT,
            prices: Arc::default(),
            day_limit: None,
        }
    }
}

/// Whether this process runs jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// A dispatcher for every slot.
    All,
    /// It serves and waits, and leaves the jobs to others.
    None,
}

/// How long finished agent and wait tasks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// The store ends with the process: an hour after the end, read or not.
    InMemory,
    /// The store stays: as long as is set (`keep.results`), read or not.
    Durable,
}

impl Expiry {
    #[must_use]
    pub fn rule(self, now: Timestamp, results_kept: Duration) -> ExpiryRule {
        let kept = match self {
            Self::InMemory => RESULT_KEPT_IN_MEMORY,
            Self::Durable => results_kept,
        };
        ExpiryRule {
            now,
            waits_read_before: now.minus(WAIT_KEPT_AFTER_READ),
            finished_before: now.minus(kept),
            waits_before: now.minus(NATIVE_WAIT_MAX),
            tombstones_before: now.minus(TOMBSTONE_KEPT),
        }
    }
}

/// What can be set about sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionOptions {
    /// How long a session lives after its last call.
    pub ttl: Duration,
    /// The session of an agent in a chat without new messages ends after this long.
    pub idle_end: Duration,
    /// An agent that was called to a chat has this long to come.
    pub connect_max: Duration,
    /// How long an agent may take to acknowledge a cancel.
    pub cancel_grace: Duration,
    /// How long an agent may take to acknowledge a block or a pause.
    pub hold_grace: Duration,
    /// The language of texts for agents and people.
    pub language: Language,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            ttl: SESSION_KEPT,
            idle_end: CHAT_IDLE_END,
            connect_max: CONNECT_MAX,
            cancel_grace: CANCEL_ACK_MAX,
            hold_grace: HOLD_ACK_MAX,
            language: Language::English,
        }
    }
}

impl SessionOptions {
    /// A call moves the expiry only if the last one was this long ago: most calls write nothing.
    pub(crate) fn touch_every(&self) -> Duration {
        SESSION_TOUCH_EVERY.min(self.ttl / 60)
    }
}
