//! The body of an agent's run: from the job's input to a started program, and from its end to the job's.

use std::sync::Arc;

use async_trait::async_trait;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobEnd, JobKind, JobState};
use matsu_core::limits::TICK;
use matsu_core::ports::agent::{Agent, AgentHost, Resume, RunOrder, RunTrace, StartError, TraceState};
use matsu_core::ports::store::{OutputPosition, ReadOutputPosition, StoreError};
use matsu_core::run::{KeptWork, RunCheckpoint, RunInput, RunOutput};

use crate::runtime::context::{JobContext, Taken};
use crate::runtime::{Expiry, JobBody};
use crate::stop_signal::StopLevel;

use super::budget::{Limits, may_spend};
use super::conversation::{conversation, earlier_log};
use super::dependencies::{may_begin, take_results};
use super::fallback::{hand_over, moves_on};
use super::live_runs::LiveRuns;
use super::own_session::OwnSession;
use super::run::{Beginning, Run, go_on_command};

/// The checkout of a large repository, and the end of processes.
const CHECK_AROUND_SECONDS: u32 = 600;

/// Runs agents on a host.
#[derive(Clone)]
pub struct AgentRuns {
    pub(super) host: Arc<dyn AgentHost>,
}

impl AgentRuns {
    #[must_use]
    pub fn new(host: Arc<dyn AgentHost>) -> Self {
        Self { host }
    }

    /// The run that this job has already, if its program was started; a new one otherwise.
    async fn begin(&self, cx: &JobContext) -> Result<Run, JobEnd> {
        let (_, checkpoint) = read(cx)?;
        if let Some(relocated) = &checkpoint.relocated {
            // What this machine had begun before the run was given to another one; its work is kept as a branch.
            self.host.give_up(&cx.lease.job_id, Some(relocated.attempt)).await;
        }
        let trace = match self.host.trace(&cx.lease.job_id) {
            // What it came to is in the checkpoint.
            Some(trace) if trace.attempt <= checkpoint.done_attempt => {
                self.host.forget(&cx.lease.job_id).await;
                None
            }
            trace => trace,
        };
        match (cx.taken, trace) {
            // A disk that lost power may have lost the mark of a program that had begun.
            (Taken::TakenOver, Some(trace)) if trace.state != TraceState::NotBegun || checkpoint.begun.is_some() => {
                self.take_over(cx, &trace).await
            }
            (Taken::TakenOver, None) => match nothing_left(cx, &checkpoint).await? {
                Left::NeverBegun => self.start(cx).await,
                Left::Removed => {
                    if let Some(run) = &checkpoint.begun {
                        self.host.end_processes(run).await;
                    }
                    Err(removed(cx))
                }
                // It waits for a permit as any other run; the question is void.
                Left::AskedElsewhere => Err(JobEnd::Requeue { run_at: None }),
            },
            (_, trace) => {
                if trace.is_some() {
                    // Of an earlier attempt, whose end is stored; or one that was prepared and never started.
                    self.host.forget(&cx.lease.job_id).await;
                }
                self.start(cx).await
            }
        }
    }

    /// Goes on with a run that another process has started, as soon as the store answers: a job that goes back into the
    /// queue would be begun anew, and its program ended.
    async fn take_over(&self, cx: &JobContext, trace: &RunTrace) -> Result<Run, JobEnd> {
        loop {
            match self.try_take_over(cx, trace).await {
                Err(JobEnd::Requeue { run_at: None }) => {}
                decided => return decided,
            }
            match cx.stop.level() {
                StopLevel::Shutdown => return Err(JobEnd::StillRuns),
                // Without its definition it is never followed, so it is ended here, if this process still owns it.
                StopLevel::EndSoon | StopLevel::Abort if self.is_undefined(cx) && is_owner(cx).await => {
                    let work = self.host.give_up(&cx.lease.job_id, None).await;
                    return Err(JobEnd::Cancelled { code: None, output_json: keep(cx, work).await });
                }
                // Any other word is obeyed once it is followed: only then can its program be ended.
                _ => {}
            }
            cx.runtime().clock().sleep(TICK).await;
        }
    }

    /// `Requeue`: the store or the definition of the agent is away.
    async fn try_take_over(&self, cx: &JobContext, trace: &RunTrace) -> Result<Run, JobEnd> {
        let (mut input, checkpoint) = read(cx)?;
        take_results(cx, &mut input).await?;
        let Ok(agent) = self.agent(&input) else {
            let waits = format!(
                "the run continues and cannot be followed: the definition of agent {} is gone or cannot be read. Put it \
                 back, or stop the task",
                input.agent
            );
            cx.progress(&waits).await;
            return Err(JobEnd::Requeue { run_at: None });
        };
        let limits = Limits::of(cx).await.map_err(|error| store_unavailable(&error))?;
        let store = cx.runtime().store();
        let mut stored = store
            .run(ReadOutputPosition { job: cx.lease.job_id.clone(), from_attempt: trace.attempt })
            .await
            .map_err(|error| store_unavailable(&error))?;
        if stored.log == 0 {
            stored.log = earlier_log(cx, &checkpoint).await?;
        }
        let own = OwnSession::take_over(cx, trace, &input, &agent.connect_back).await;
        let own = own.map_err(|error| match error {
            StoreError::NotFound { .. } => {
                let why = "the session of the run is no longer stored, so the run is ended";
                JobEnd::failed(ErrorCode::SupervisorLost, why.to_owned())
            }
            error => no_session(&error),
        })?;
        let resumed = trace.resumed_session.clone();
        let resume = resumed.map(|vendor_session| Resume { vendor_session, place: checkpoint.place.clone() });
        let handle = cx.runtime().part::<LiveRuns>().register(cx, &input, &own, &agent.connect_back, resume.as_ref());
        match self.host.adopt(&cx.lease, &trace.run_id, stored.read_to).await {
            Ok(live) => {
                tracing::info!(job.id = %cx.lease.job_id, run = %trace.run_id, "a run is followed again");
                handle.works_in(live.directory());
                let (cx, host) = (cx.clone(), Arc::clone(&self.host));
                let begin = Beginning {
                    cx,
                    agent,
                    input,
                    checkpoint,
                    resume,
                    own,
                    handle,
                    live,
                    limits,
                    outlives: true,
                    stored,
                    host,
                };
                Ok(Run::new(begin))
            }
            Err(error) => {
                own.close(cx).await;
                Err(JobEnd::failed(error.code, error.message))
            }
        }
    }

    fn is_undefined(&self, cx: &JobContext) -> bool {
        read(cx).is_ok_and(|(input, _)| self.agent(&input).is_err())
    }

    pub(super) fn agent(&self, input: &RunInput) -> Result<Agent, JobEnd> {
        let found = self.host.agents().into_iter().find(|agent| agent.name == input.agent);
        let gone = || JobEnd::failed(ErrorCode::AgentStartFailed, format!("agent {} no longer exists", input.agent));
        found.ok_or_else(gone)
    }

    async fn start(&self, cx: &JobContext) -> Result<Run, JobEnd> {
        let (mut input, checkpoint) = read(cx)?;
        if let Some(until) = checkpoint.quota_until.map(Timestamp::from_millis)
            && until > cx.runtime().clock().now()
        {
            // Put off by more than a job can be at once: it is looked at in between.
            return Err(JobEnd::Requeue { run_at: Some(until) });
        }
        let limits = may_spend(cx).await?;
        let (resume, say) = conversation(cx, &mut input, &checkpoint).await?;
        let onto = take_results(cx, &mut input).await?;
        let agent = self.agent(&input)?;
        let stored = OutputPosition { log: earlier_log(cx, &checkpoint).await?, ..OutputPosition::default() };
        let own = OwnSession::begin(cx, &input, &agent.connect_back).await.map_err(|error| no_session(&error))?;
        // Before the program: its first call must find out whose it is.
        let handle = cx.runtime().part::<LiveRuns>().register(cx, &input, &own, &agent.connect_back, resume.as_ref());
        let feedback = checkpoint.feedback.clone();
        let order = RunOrder { say, feedback, onto, ..own.order(cx, &input, resume.as_ref()) };
        match self.host.start(order).await {
            Ok(live) => {
                handle.works_in(live.directory());
                let (host, outlives) = (Arc::clone(&self.host), outlives(cx));
                let cx = cx.clone();
                let begin = Beginning {
                    cx,
                    agent,
                    input,
                    checkpoint,
                    resume,
                    own,
                    handle,
                    live,
                    limits,
                    outlives,
                    stored,
                    host,
                };
                Ok(Run::new(begin))
            }
            Err(error) => {
                own.close(cx).await;
                if self.moved_on(cx, &input, checkpoint.clone(), &error).await {
                    return Err(JobEnd::Requeue { run_at: None });
                }
                Err(match &checkpoint.relocated {
                    Some(relocated) => {
                        let from = &relocated.from;
                        let why = format!(
                            "host {from} did not reconnect, and the run could not start here: {}",
                            error.message
                        );
                        JobEnd::failed(ErrorCode::HostLost, why)
                    }
                    None => JobEnd::failed(error.code, error.message),
                })
            }
        }
    }
}

impl AgentRuns {
    /// Leaves a run that could not be started to the next agent of the list, if there is one.
    async fn moved_on(
        &self,
        cx: &JobContext,
        input: &RunInput,
        mut checkpoint: RunCheckpoint,
        error: &StartError,
    ) -> bool {
        let known = RunOutput { agent: input.agent.clone(), usage: checkpoint.spent, ..RunOutput::default() };
        let checks = checkpoint.rounds;
        if !moves_on(error.code) || !hand_over(input, &mut checkpoint, &known, &error.message, checks) {
            return false;
        }
        checkpoint.done_attempt = cx.lease.attempt;
        cx.keep(&checkpoint, &known).await.is_ok()
    }
}

/// A store in memory is gone with its process, and no later one would know the run.
pub(super) fn outlives(cx: &JobContext) -> bool {
    cx.runtime().expiry() == Expiry::Durable
}

/// What is to be done, and what earlier attempts have left.
fn read(cx: &JobContext) -> Result<(RunInput, RunCheckpoint), JobEnd> {
    let input: RunInput = serde_json::from_str(&cx.job.input_json)
        .map_err(|error| JobEnd::failed(ErrorCode::InvalidParams, format!("the stored run cannot be read: {error}")))?;
    let checkpoint = cx.job.checkpoint_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let checkpoint: RunCheckpoint = checkpoint.unwrap_or_default();
    Ok((input.after(checkpoint.tried.len()), checkpoint))
}

/// What became of a run of which this machine has nothing.
enum Left {
    /// Its program was not started, or not here.
    NeverBegun,
    /// It had begun here: what it printed is stored. Its folder was removed.
    Removed,
    /// It begins again here, and waited for an answer where it was begun.
    AskedElsewhere,
}

async fn nothing_left(cx: &JobContext, checkpoint: &RunCheckpoint) -> Result<Left, JobEnd> {
    // One that was parked before its program was started waited for a person's consent, and has it now.
    let input: Option<RunInput> = serde_json::from_str(&cx.job.input_json).ok();
    let waited = input.is_some_and(|input| input.consent.is_some()) && *checkpoint == RunCheckpoint::default();
    let is_parked = cx.job.state == JobState::AwaitingInput && !waited;
    if checkpoint.relocated.is_some() {
        return Ok(if is_parked { Left::AskedElsewhere } else { Left::NeverBegun });
    }
    // What is stored may be of an earlier attempt, which has left a count.
    let bare = RunCheckpoint { place: None, vendor_session: None, ..checkpoint.clone() };
    let is_first = bare == RunCheckpoint::default();
    let stored = cx
        .runtime()
        .store()
        .run(ReadOutputPosition { job: cx.lease.job_id.clone(), from_attempt: 0 })
        .await
        .map_err(|error| store_unavailable(&error))?;
    let has_said = checkpoint.vendor_session.is_some() || stored.read_to > 0;
    let has_begun = checkpoint.begun.is_some() || (is_first && has_said);
    Ok(if is_parked || has_begun { Left::Removed } else { Left::NeverBegun })
}

/// Whether no other process has taken the job meanwhile.
async fn is_owner(cx: &JobContext) -> bool {
    match &cx.job.checkpoint_json {
        Some(checkpoint) => match serde_json::from_str::<serde_json::Value>(checkpoint) {
            Ok(checkpoint) => cx.checkpoint(&checkpoint).await.is_ok(),
            Err(_) => false,
        },
        None => cx.checkpoint(&serde_json::json!(RunCheckpoint::default())).await.is_ok(),
    }
}

/// The output of a run that was given up. Where what goes on from it begins is written down.
async fn keep(cx: &JobContext, work: Option<KeptWork>) -> Option<String> {
    let KeptWork { agent, changes, left_work, place } = work?;
    let (_, checkpoint) = read(cx).ok()?;
    if let Err(error) = cx.checkpoint(&serde_json::json!(RunCheckpoint { place, ..checkpoint })).await {
        tracing::warn!(job.id = %cx.lease.job_id, %error, "the location of a run's work could not be stored");
    }
    serde_json::to_string(&RunOutput { agent, changes, left_work, ..RunOutput::default() }).ok()
}

fn removed(cx: &JobContext) -> JobEnd {
    let go_on = cx.job.task_id.as_ref().map(|task| format!(". To go on from there: {}", go_on_command(task)));
    let message = "the folder of the run was removed or damaged while no daemon ran, so the run cannot be followed; \
                   the processes that were found were ended, and the output that a daemon had read is kept";
    JobEnd::failed(ErrorCode::SupervisorLost, format!("{message}{}", go_on.unwrap_or_default()))
}

fn no_session(error: &StoreError) -> JobEnd {
    match error {
        // The task or the chat has ended meanwhile.
        StoreError::Refused { code, message } => JobEnd::failed(*code, message.clone()),
        error => store_unavailable(error),
    }
}

/// Nothing was started, so it can simply be tried again.
pub(crate) fn store_unavailable(error: &StoreError) -> JobEnd {
    tracing::warn!(%error, "store unavailable; a run waits and tries again");
    JobEnd::Requeue { run_at: None }
}

#[async_trait]
impl JobBody for AgentRuns {
    fn kind(&self) -> JobKind {
        JobKind::AgentRun
    }

    fn run_seconds_max(&self, job: &Job) -> Option<u32> {
        let input = serde_json::from_str::<RunInput>(&job.input_json).ok()?;
        let checkpoint = job.checkpoint_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let checkpoint: RunCheckpoint = checkpoint.unwrap_or_default();
        match &input.check {
            // It counts by itself; this only bounds what it takes besides.
            Some(check) if checkpoint.to_check.is_some() || input.verifies.is_some() => {
                Some(check.timeout_seconds.saturating_add(CHECK_AROUND_SECONDS))
            }
            _ => Some(input.timeout_seconds),
        }
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        let (input, checkpoint) = match read(&cx) {
            Ok(read) => read,
            Err(end) => return end,
        };
        let to_check = checkpoint.to_check.clone().or_else(|| input.verifies.clone());
        if let (Some(check), Some(known)) = (input.check.clone(), to_check) {
            return self.check(&cx, input, checkpoint, check, *known).await;
        }
        let has_begun = checkpoint != RunCheckpoint::default() || self.host.trace(&cx.lease.job_id).is_some();
        if !has_begun && let Err(end) = may_begin(&cx, &input).await {
            return end;
        }
        if let Some(consent) = &input.consent
            && checkpoint.done_attempt == 0
            && let Err(end) = self.consented(&cx, consent).await
        {
            return end;
        }
        match self.begin(&cx).await {
            Ok(run) => run.until_it_ends().await,
            Err(end) => end,
        }
    }
}
