//! What surrounds one call: its caller, how long it may be held, and where progress goes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use matsu_core::access::Rights;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::ports::store::ReadTasks;
use matsu_core::principal::Principal;
use matsu_core::session::Session;
use matsu_core::task::{JobCounts, Task};

use crate::agents::RunHandle;
use crate::chats::sessions::Delivery;
use crate::cursors::InstanceId;
use crate::runtime::Runtime;

use super::{ToolEntry, ToolError};

/// The tasks that a call under way waits for, so that progress notifications can describe them.
#[derive(Debug, Default)]
pub struct Watched {
    ids: Mutex<Vec<TaskId>>,
}

impl Watched {
    pub fn set(&self, ids: &[TaskId]) {
        *self.ids.lock().unwrap_or_else(PoisonError::into_inner) = ids.to_vec();
    }

    /// One line: how far the watched tasks are.
    pub async fn in_words(&self, runtime: &Runtime) -> String {
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let tasks = runtime.store().run(ReadTasks(ids.clone())).await.unwrap_or_default();
        let counts = tasks.iter().fold(JobCounts::default(), |sum, task| sum.plus(&task.counts));
        let ended = counts.total() - counts.unfinished();
        match (counts.total(), counts.running) {
            (0, _) => "waiting".to_owned(),
            (total, 0) => format!("{ended} of {total} jobs done"),
            (total, running) => format!("{ended} of {total} jobs done, {running} running"),
        }
    }
}

#[derive(Clone)]
pub struct ToolContext {
    /// Works for the session that calls, if there is one: an interrupt undoes its writes and ends its waits.
    pub runtime: Runtime,
    /// Who acts: the session, if one is named, else the principal that the transport authenticated.
    pub principal: Principal,
    /// The principal that the transport authenticated.
    pub transport: Principal,
    /// What the caller may do. Of a session the dispatch finds them out.
    pub rights: Arc<Rights>,
    /// The session that acts. The dispatch finds it out.
    pub session: Option<Arc<Session>>,
    /// Tells connections apart: what went out over one that closed may never have arrived.
    pub connection: Arc<str>,
    /// What the reply hands over.
    pub delivery: Arc<Delivery>,
    pub instance: Option<InstanceId>,
    /// Cancelled when the caller is gone. Ends waits, never work.
    pub caller: CancellationToken,
    /// How long this client can be held; absent: the server's own bound.
    pub hold_max: Option<Duration>,
    pub workplace: Arc<Workplace>,
    /// A session token that the transport presents, as it came; the dispatch checks it.
    pub session_token: Option<Arc<str>>,
    pub watched: Arc<Watched>,
    pub tasks: NativeTasks,
    /// The client's own name for this very call; a repetition of the call carries the same.
    pub call_key: Option<String>,
    /// Research that this call creates ends with its last search: a person started it and calls no stop_task.
    pub ends_when_done: bool,
    /// The run of an agent that the call comes from.
    pub run: Option<RunHandle>,
}

/// Where the caller works, as its own side says. A wish, not a right: what may be touched is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workplace {
    /// Folders its work may lie in; empty: nothing was said.
    pub roots: Vec<PathBuf>,
    pub cwd: Option<PathBuf>,
    /// The folder of its project: the same for every session that works on it.
    pub project: Option<String>,
}

/// Whether the caller can follow a native task. It says so with every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeTasks {
    Understood,
    Unknown,
}

impl ToolContext {
    /// A call that nothing more is known about.
    #[must_use]
    pub fn new(runtime: Runtime, principal: Principal) -> Self {
        Self {
            rights: Arc::new(Rights::presumed(&principal)),
            transport: principal.clone(),
            principal,
            session_token: None,
            workplace: Arc::default(),
            session: None,
            connection: runtime.node().as_str().into(),
            delivery: Arc::default(),
            instance: None,
            caller: CancellationToken::new(),
            hold_max: None,
            watched: Arc::default(),
            tasks: NativeTasks::Unknown,
            call_key: None,
            ends_when_done: false,
            run: None,
            runtime,
        }
    }

    /// The same call as the session's own. Tools that an interrupt does not stop write to the plain store.
    pub(crate) fn of_session(&self, entry: &ToolEntry, session: Arc<Session>) -> Self {
        let runtime = if entry.rules.exempt { self.runtime.clone() } else { self.runtime.on_behalf_of(&session.id) };
        Self { runtime, principal: session.principal(), session: Some(session), ..self.clone() }
    }

    /// The session that acts.
    ///
    /// # Errors
    /// There is none, though the tool's rules ask for one.
    pub fn session(&self) -> Result<&Arc<Session>, ToolError> {
        let missing = || ToolError::new(ErrorCode::SessionInvalid, "this tool needs a session; call authenticate");
        self.session.as_ref().ok_or_else(missing)
    }

    /// The reply shows these tasks to the caller.
    pub(crate) async fn shows(&self, tasks: &[&Task]) {
        self.delivery.results(&self.runtime, &self.principal, tasks).await;
    }

    /// Where a person can watch a task. Omitted for agent sessions.
    #[must_use]
    pub fn watch_link(&self, task: &TaskId) -> Option<String> {
        if self.session.is_some() { None } else { self.runtime.watch_link(task) }
    }

    /// How long a wish to be held is granted.
    #[must_use]
    pub fn hold_max(&self) -> Duration {
        self.hold_max.unwrap_or_else(|| self.runtime.hold_max())
    }
}
