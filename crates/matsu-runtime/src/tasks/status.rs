//! Waiting for tasks on behalf of a client: what it knows, how long it may be held, and what it is sent.
//!
//! Invariant: a reply names for every task the revision it shows, and nothing is remembered as delivered until the
//! transport has written it ([`crate::cursors::Cursors::delivered`]).

pub mod decide;
mod open_waits;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::clock::Clock;
use matsu_core::id::TaskId;
use matsu_core::limits::{COLLECT_FOR, TASKS_PER_WAIT_MAX, TICK};
use matsu_core::principal::Principal;
use matsu_core::task::Task;

use crate::access::Access;
use crate::cursors::InstanceId;
use crate::runtime::{Runtime, service};
use crate::snapshots::{Seen, SharedReader, Snapshot};
use crate::tasks::TaskError;
use crate::tasks::wait::{Check, Condition, Waited, after, wait_until};

pub(crate) use open_waits::OpenWaits;

pub use decide::{Decision, ReturnedBecause, WaitFor, decide};

/// A wish to wait.
#[derive(Clone, Debug)]
pub struct WaitRequest {
    /// The principal that asks; another principal's task does not exist for it.
    pub owner: Principal,
    /// In the order the answer shall have; at least one, none twice.
    pub ids: Vec<TaskId>,
    /// What the caller says it knows. Absent, or silent about a task: what its instance was last sent. A caller that
    /// was sent nothing waits for what comes after the first look, unless that look shows an end that was not read, a
    /// question or a login.
    pub since: Option<BTreeMap<TaskId, i64>>,
    pub wait_for: WaitFor,
    /// How long the caller wishes to be held; zero looks once.
    pub hold: Duration,
    /// How long it may be held. Absent: the runtime's own bound.
    pub hold_max: Option<Duration>,
    pub instance: Option<InstanceId>,
    /// Cancelled when something else needs the caller's attention.
    pub interrupt: Option<CancellationToken>,
}

/// One task as a wait saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Shared by all callers that got the same read, so a rendering can be shared as well.
    pub task: Arc<Task>,
    /// What the caller knew before; `0`: nothing.
    pub since: i64,
    /// The revision that the wait compared with. Of a caller that knew nothing it is what the first look saw.
    pub waits_from: i64,
}

#[derive(Clone, Debug)]
pub struct WaitReply {
    /// In the order of the request.
    pub tasks: Vec<TaskView>,
    /// Those with news since the caller's last reply.
    pub changed: Vec<TaskId>,
    pub returned_because: ReturnedBecause,
    pub waited_ms: u64,
    /// Set if it was shorter than the wish.
    pub hold_max: Option<Duration>,
    /// What to pass as `since` next time.
    pub next_since: BTreeMap<TaskId, i64>,
}

/// A wait that has no reply.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The caller went away; no reply can be delivered.
    #[error("the caller disconnected")]
    CallerDisconnected,
}

service! {
    /// Waits for news of tasks.
    Waits
}

impl Waits<'_> {
    /// Calls that are held open at the moment, in this process.
    #[must_use]
    pub fn open(self) -> usize {
        self.runtime.part::<OpenWaits>().len()
    }

    /// Holds the caller until the tasks have news of the wanted kind.
    ///
    /// # Errors
    /// An unknown or foreign id fails at once, whatever the wish; so does one that expires during the wait, and a
    /// wait beyond what one principal may hold open.
    pub async fn wait_for_tasks(
        self,
        request: WaitRequest,
        caller: &CancellationToken,
    ) -> Result<WaitReply, WaitError> {
        check_request(&request)?;
        let _counted = self.runtime.part::<OpenWaits>().open(&request.owner)?;
        let began = self.runtime.clock().instant();
        let hold_max = request.hold_max.unwrap_or(self.runtime.hold_max());
        let deadline = after(self.runtime.clock(), request.hold.min(hold_max));
        let interrupt = request.interrupt.clone().or_else(|| self.runtime.interrupt().cloned()).unwrap_or_default();
        let topics: Vec<Topic> = request.ids.iter().map(Topic::task).collect();
        let mut watch = Watch::new(self.runtime, &request);
        let wait = wait_until(self.runtime.hub(), self.runtime.clock(), &topics, Some(deadline), caller, &mut watch);
        let waited = tokio::select! {
           biased;
            waited = wait => waited,
            () = interrupt.cancelled() => Waited::Ready(Ok(ReturnedBecause::Interrupt)),
        };
        let returned_because = match waited {
            Waited::Ready(answer) => answer?,
            Waited::CallerDisconnected => return Err(WaitError::CallerDisconnected),
            Waited::Timeout => watch.at_the_deadline()?,
        };
        let tasks = watch.seen().await?;
        let waited_ms = u64::try_from((self.runtime.clock().instant() - began).as_millis()).unwrap_or(u64::MAX);
        let cut = (request.hold > hold_max).then_some(hold_max);
        Ok(reply(tasks, returned_because, waited_ms, cut))
    }
}

fn check_request(request: &WaitRequest) -> Result<(), TaskError> {
    if request.ids.is_empty() {
        return Err(TaskError::Invalid("name at least one task".to_owned()));
    }
    if request.ids.len() > TASKS_PER_WAIT_MAX {
        return Err(TaskError::Invalid(format!("at most {TASKS_PER_WAIT_MAX} tasks can be waited for at once")));
    }
    for (n, id) in request.ids.iter().enumerate() {
        if request.ids[..n].contains(id) {
            return Err(TaskError::Invalid(format!("{id} is named twice")));
        }
    }
    Ok(())
}

fn reply(
    tasks: Vec<TaskView>,
    returned_because: ReturnedBecause,
    waited_ms: u64,
    hold_max: Option<Duration>,
) -> WaitReply {
    let changed = tasks.iter().filter(|view| view.task.revision > view.since);
    let changed = changed.map(|view| view.task.id.clone()).collect();
    let next_since = tasks.iter().map(|view| (view.task.id.clone(), view.task.revision)).collect();
    WaitReply { tasks, changed, returned_because, waited_ms, hold_max, next_since }
}

/// What one wait knows between two looks.
struct Watch {
    runtime: Runtime,
    clock: Clock,
    owner: Principal,
    wait_for: WaitFor,
    readers: Vec<SharedReader>,
    /// What the caller knows of each task; `None`: nothing.
    known: Vec<Option<i64>>,
    /// What each task is compared with, from the first complete look on.
    from: Vec<i64>,
    /// A wish to be held for no time is a look: it compares with nothing.
    holds: bool,
    /// The last complete look.
    tasks: Vec<Arc<Task>>,
    collect_until: Option<Instant>,
    failure: Option<TaskError>,
}

impl Watch {
    fn new(runtime: &Runtime, request: &WaitRequest) -> Self {
        let given = |id: &TaskId| request.since.as_ref().and_then(|since| since.get(id)).copied();
        let sent = |id: &TaskId| {
            let revision = runtime.cursors().since(request.instance.as_ref()?, id);
            (revision > 0).then_some(revision)
        };
        Self {
            runtime: runtime.clone(),
            clock: *runtime.clock(),
            owner: request.owner.clone(),
            wait_for: request.wait_for,
            readers: request.ids.iter().map(|id| runtime.snapshots().reader(id.clone())).collect(),
            known: request.ids.iter().map(|id| given(id).or_else(|| sent(id))).collect(),
            from: Vec::new(),
            holds: request.hold > Duration::ZERO,
            tasks: Vec::new(),
            collect_until: None,
            failure: None,
        }
    }

    async fn read(&mut self) -> Result<Vec<Arc<Task>>, TaskError> {
        let mut tasks = Vec::with_capacity(self.readers.len());
        for reader in &mut self.readers {
            let snapshot = reader.read().await;
            tasks.push(visible(&self.runtime, &self.owner, reader.id(), snapshot).await?);
        }
        Ok(tasks)
    }

    /// The hold is over. What was being collected counts; a store that never answered is the caller's to know.
    fn at_the_deadline(&mut self) -> Result<ReturnedBecause, TaskError> {
        match (self.tasks.is_empty(), self.failure.take()) {
            (true, Some(failure)) => Err(failure),
            _ if self.collect_until.is_some() => Ok(ReturnedBecause::Changed),
            _ => Ok(ReturnedBecause::Timeout),
        }
    }

    /// An interrupt can come before the first look ended.
    async fn seen(mut self) -> Result<Vec<TaskView>, TaskError> {
        if self.tasks.is_empty() {
            self.tasks = self.read().await?;
        }
        self.compare();
        let views = self.tasks.into_iter().zip(self.known).zip(self.from);
        Ok(views.map(|((task, known), waits_from)| TaskView { task, since: known.unwrap_or(0), waits_from }).collect())
    }
}

impl Watch {
    /// Fixes what the tasks are compared with, at the first complete look.
    fn compare(&mut self) {
        if self.from.is_empty() {
            let holds = self.holds;
            let start = |task: &Task| if holds { decide::start(task) } else { 0 };
            let pairs = self.tasks.iter().zip(&self.known);
            self.from = pairs.map(|(task, known)| known.unwrap_or_else(|| start(task))).collect();
        }
    }
}

impl Condition for Watch {
    type Value = Result<ReturnedBecause, TaskError>;

    async fn look(&mut self) -> Check<Result<ReturnedBecause, TaskError>> {
        match self.read().await {
            Ok(tasks) => {
                self.tasks = tasks;
                self.failure = None;
            }
            // Nothing was changed and it may come back: the caller has asked to be held anyway.
            Err(TaskError::Unavailable(why)) => {
                self.failure = Some(TaskError::Unavailable(why));
                return Check::NotBefore(after(&self.clock, TICK));
            }
            Err(error) => return Check::Ready(Err(error)),
        }
        self.compare();
        let pairs: Vec<(&Task, i64)> = self.tasks.iter().map(Arc::as_ref).zip(self.from.iter().copied()).collect();
        match decide(&pairs, self.wait_for) {
            Decision::Answer(because) => Check::Ready(Ok(because)),
            Decision::Sleep => Check::NotYet,
            Decision::Collect => {
                // Counted from the first change that was seen; later ones do not prolong it.
                let clock = self.clock;
                let until = *self.collect_until.get_or_insert_with(|| after(&clock, COLLECT_FOR));
                if self.clock.instant() >= until {
                    Check::Ready(Ok(ReturnedBecause::Changed))
                } else {
                    Check::NotBefore(until)
                }
            }
        }
    }
}

/// The one place where ownership and expiry turn into "not found" for a wait.
async fn visible(
    runtime: &Runtime,
    owner: &Principal,
    id: &TaskId,
    snapshot: Snapshot,
) -> Result<Arc<Task>, TaskError> {
    match snapshot {
        Ok(Seen::Found(task)) if Access::of(runtime).sees(owner, &task).await? => Ok(task),
        Ok(Seen::Found(_) | Seen::Expired { .. }) => Err(TaskError::NotFound(id.clone())),
        Err(error) => Err(TaskError::shared(id, &error)),
    }
}
