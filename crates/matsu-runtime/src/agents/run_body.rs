//! The body of an agent's run: from the job's input to a started program, and from its end to the job's.

use std::sync::Arc;

use async_trait::async_trait;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobEnd, JobKind, Retry};
use matsu_core::ports::agent::{Agent, AgentHost, Resume, RunOrder, RunTrace, Say, TraceState};
use matsu_core::ports::store::{OutputPosition, StoreError};
use matsu_core::run::{RunCheckpoint, RunInput};

use crate::body::JobBody;
use crate::context::{JobContext, Taken};
use crate::options::Expiry;

use super::own_session::OwnSession;
use super::run::{Beginning, Run};

/// Runs agents on a host.
#[derive(Clone)]
pub struct AgentRuns {
    host: Arc<dyn AgentHost>,
}

impl AgentRuns {
    #[must_use]
    pub fn new(host: Arc<dyn AgentHost>) -> Self {
        Self { host }
    }

    /// The run that this job has already, if its program was started; a new one otherwise.
    async fn begin(&self, cx: &JobContext) -> Result<Run, JobEnd> {
        let trace = self.host.trace(&cx.lease.job_id);
        match (cx.taken, trace) {
            (Taken::TakenOver, Some(trace)) if trace.state != TraceState::NotBegun => self.take_over(cx, trace).await,
            (_, trace) => {
                if trace.is_some() {
                    // Of an earlier attempt, whose end is stored; or one that was prepared and never started.
                    self.host.forget(&cx.lease.job_id).await;
                }
                self.start(cx).await
            }
        }
    }

    /// Goes on with a run that another process has started.
    async fn take_over(&self, cx: &JobContext, trace: RunTrace) -> Result<Run, JobEnd> {
        let (input, checkpoint) = read(cx)?;
        let agent = self.agent(&input)?;
        let store = cx.runtime().store();
        let stored = store.output_position(&cx.lease.job_id, trace.attempt).await.map_err(|error| away(&error))?;
        let own = OwnSession::take_over(cx, &trace, &input, &agent.connect_back).await;
        let own = own.map_err(|error| no_session(&error))?;
        let resumed = trace.resumed_session.clone();
        let resume = resumed.map(|vendor_session| Resume { vendor_session, place: checkpoint.place.clone() });
        let seat = cx.runtime().live_runs().sit_down(cx, &input, &own, &agent.connect_back, resume.as_ref());
        match self.host.adopt(&cx.lease, &trace.run_id, stored.read_to).await {
            Ok(live) => {
                seat.works_in(live.directory());
                let (cx, host) = (cx.clone(), Arc::clone(&self.host));
                let begin =
                    Beginning { cx, agent, input, checkpoint, resume, own, seat, live, outlives: true, stored, host };
                Ok(Run::new(begin))
            }
            Err(error) => {
                own.close(cx).await;
                Err(failed(error.code, error.message))
            }
        }
    }

    fn agent(&self, input: &RunInput) -> Result<Agent, JobEnd> {
        let found = self.host.agents().into_iter().find(|agent| agent.name == input.agent);
        let gone = || failed(ErrorCode::AgentStartFailed, format!("there is no agent {} any more", input.agent));
        found.ok_or_else(gone)
    }

    async fn start(&self, cx: &JobContext) -> Result<Run, JobEnd> {
        let (input, checkpoint) = read(cx)?;
        if let Some(until) = checkpoint.quota_until.map(Timestamp::from_millis)
            && until > cx.runtime().clock().now()
        {
            // Put off by more than a job can be at once: it is looked at in between.
            return Err(JobEnd::Requeue { run_at: Some(until) });
        }
        let (resume, say) = match &checkpoint.vendor_session {
            Some(session) => {
                let resume = Resume { vendor_session: session.clone(), place: checkpoint.place.clone() };
                (Some(resume), if checkpoint.machine_restarts > 0 { Say::GoOnAfterRestart } else { Say::GoOn })
            }
            None => match continued(&input) {
                Some(resume) => (Some(resume), Say::Message),
                None => (earlier(cx, &input).await.map_err(|error| away(&error))?, Say::Message),
            },
        };
        let agent = self.agent(&input)?;
        let own = OwnSession::begin(cx, &input, &agent.connect_back).await.map_err(|error| no_session(&error))?;
        // Before the program: its first call must find out whose it is.
        let seat = cx.runtime().live_runs().sit_down(cx, &input, &own, &agent.connect_back, resume.as_ref());
        let order = RunOrder {
            lease: cx.lease.clone(),
            run_id: own.run_id().clone(),
            session_id: own.session().id.clone(),
            outlives: outlives(cx),
            socket_key: own.socket_key().clone(),
            task_id: cx.job.task_id.clone(),
            input: input.clone(),
            say,
            resume: resume.clone(),
            token: own.token().clone(),
        };
        match self.host.start(order).await {
            Ok(live) => {
                seat.works_in(live.directory());
                let (host, stored, outlives) = (Arc::clone(&self.host), OutputPosition::default(), outlives(cx));
                let cx = cx.clone();
                let begin = Beginning { cx, agent, input, checkpoint, resume, own, seat, live, outlives, stored, host };
                Ok(Run::new(begin))
            }
            Err(error) => {
                own.close(cx).await;
                Err(failed(error.code, error.message))
            }
        }
    }
}

/// A store in memory is gone with its process, and no later one would know the run.
pub(super) fn outlives(cx: &JobContext) -> bool {
    cx.runtime().expiry() == Expiry::Durable
}

/// What is to be done, and what earlier attempts have left.
fn read(cx: &JobContext) -> Result<(RunInput, RunCheckpoint), JobEnd> {
    let input = serde_json::from_str(&cx.job.input_json)
        .map_err(|error| failed(ErrorCode::InvalidParams, format!("the run cannot be read: {error}")))?;
    let checkpoint = cx.job.checkpoint_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
    Ok((input, checkpoint.unwrap_or_default()))
}

/// The conversation of the earlier run that this one continues.
fn continued(input: &RunInput) -> Option<Resume> {
    let continues = input.continues.clone()?;
    Some(Resume { vendor_session: continues.vendor_session?, place: continues.place })
}

/// The conversation that the caller wants to go on with.
async fn earlier(cx: &JobContext, input: &RunInput) -> Result<Option<Resume>, StoreError> {
    if !input.resume {
        return Ok(None);
    }
    let store = cx.runtime().store();
    let ids: Vec<_> = cx.job.task_id.iter().cloned().collect();
    let Some(task) = store.tasks(&ids).await?.pop() else { return Ok(None) };
    let session = store.agent_session(&task.owner, &input.session).await?;
    Ok(session.and_then(|session| {
        let place = session.place;
        session.vendor_session.map(|vendor_session| Resume { vendor_session, place })
    }))
}

pub(super) fn failed(code: ErrorCode, message: String) -> JobEnd {
    JobEnd::Failed { code: code.to_string(), message, retry: Retry::Never, output_json: None }
}

fn no_session(error: &StoreError) -> JobEnd {
    match error {
        // The task or the chat has ended meanwhile.
        StoreError::Refused { code, message } => failed(*code, message.clone()),
        error => away(error),
    }
}

/// Nothing was started, so it can simply be tried again.
pub(super) fn away(error: &StoreError) -> JobEnd {
    tracing::warn!(%error, "a run waits for the store");
    JobEnd::Requeue { run_at: None }
}

#[async_trait]
impl JobBody for AgentRuns {
    fn kind(&self) -> JobKind {
        JobKind::AgentRun
    }

    fn run_seconds_max(&self, job: &Job) -> Option<u32> {
        serde_json::from_str::<RunInput>(&job.input_json).ok().map(|input| input.timeout_seconds)
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        match self.begin(&cx).await {
            Ok(run) => run.until_it_ends().await,
            Err(end) => end,
        }
    }
}
