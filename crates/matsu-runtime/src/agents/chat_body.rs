//! The body of a job that starts an agent for a chat.
//!
//! Where messages are delivered by `resume`, a job is a turn: what a person has said goes in as the program's prompt,
//! its final words come back as the agent's answer, and the next turn resumes the same conversation. Where the program
//! waits itself, a job is its stay: it takes and answers messages over MCP until it must end. The program outlives
//! this process, and the next one takes its turn or stay over. Either way what was not acknowledged when the job is over
//! is for the next one.

use std::sync::Arc;

use async_trait::async_trait;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobEnd, JobKind};
use matsu_core::limits::{CHAT_RUN_SECONDS_MAX, MESSAGES_PER_ACTION_MAX, RUN_SECONDS};
use matsu_core::ports::agent::{Agent, AgentHost, Delivery, Resume, RunTrace, RunWish, TraceState};
use matsu_core::ports::store::{
    BeginTurn, ChatCall, Conversation, EndTurn, OutputPosition, ReadOutputPosition, ReadStanding, SessionKey,
    StoreError, Turn, TurnOutcome, TurnUnderWay,
};
use matsu_core::principal::Principal;
use matsu_core::run::{RunCheckpoint, RunInput};
use matsu_core::session::{EndReason, Session, SessionState};

use crate::runtime::JobBody;
use crate::runtime::context::{JobContext, Taken};
use crate::stop_signal::StopLevel;

use super::budget::Limits;
use super::chat_outcome;
use super::live_runs::LiveRuns;
use super::own_session::OwnSession;
use super::run::{Beginning, Run};
use super::run_body::{outlives, store_unavailable};

/// Starts the agents of chats on a host.
#[derive(Clone)]
pub struct ChatRuns {
    host: Arc<dyn AgentHost>,
}

/// A turn that could not be begun.
struct NotStarted {
    code: ErrorCode,
    why: String,
    /// What was refused would be refused again.
    is_worth_a_retry: bool,
}

impl NotStarted {
    fn for_good(code: ErrorCode, why: String) -> Self {
        Self { code, why, is_worth_a_retry: false }
    }

    fn for_now(code: ErrorCode, why: String) -> Self {
        Self { code, why, is_worth_a_retry: true }
    }
}

/// A run under way, and what it works in.
struct StartedTurn {
    run: Run,
    session: Session,
    delivery: Delivery,
}

impl ChatRuns {
    #[must_use]
    pub fn new(host: Arc<dyn AgentHost>) -> Self {
        Self { host }
    }

    fn agent(&self, definition: &str) -> Option<Agent> {
        self.host.agents().into_iter().find(|agent| agent.name == definition)
    }

    async fn begin(&self, cx: &JobContext, turn: &Turn, trace: Option<&RunTrace>) -> Result<StartedTurn, NotStarted> {
        let name = turn.agent.definition.clone().unwrap_or_default();
        let agent = self.agent(&name).ok_or_else(|| {
            NotStarted::for_good(ErrorCode::AgentNotFound, format!("there is no definition {name} on this machine"))
        })?;
        let delivery = delivery(&agent)?;
        let wish = RunWish {
            agent: name,
            message: prompt(turn, &agent, delivery),
            system_prompt: turn.agent.system_prompt.clone().filter(|_| agent.supports.system_prompt),
            working_directory: turn.project.working_directory.clone(),
            ..RunWish::default()
        };
        let checked = self.host.check(wish).map_err(|refusal| NotStarted::for_good(refusal.code, refusal.message))?;
        let input = RunInput { session: turn.chat.id.to_string(), ..checked.input };
        let resume = turn.conversation.clone().filter(|_| agent.supports.resume);
        let resume = resume.map(|note| Resume { vendor_session: note.vendor_session, place: note.place });
        if let Some(trace) = trace {
            return self.take_over(cx, trace, agent, delivery, input, resume).await;
        }
        let caller = turn.messages.last().map(|taken| Principal::from_text(taken.message.sender_id.clone()));
        let caller = caller.unwrap_or_else(Principal::local_user);
        let own = OwnSession::begin_in_chat(cx, &caller, &turn.chat, &input, &agent.connect_back).await;
        let own = own.map_err(|error| NotStarted::for_now(error.code(), error.to_string()))?;
        // Before the program: its first call must find out whose it is.
        let handle = cx.runtime().part::<LiveRuns>().register(cx, &input, &own, &agent.connect_back, resume.as_ref());
        let order = own.order(cx, &input, resume.as_ref());
        let live = self.host.start(order).await.map_err(|error| NotStarted::for_now(error.code, error.message))?;
        handle.works_in(live.directory());
        let (checkpoint, session, outlives) = (RunCheckpoint::default(), own.session().clone(), outlives(cx));
        let (cx, host, stored) = (cx.clone(), Arc::clone(&self.host), OutputPosition::default());
        let limits = Limits::default();
        let begin =
            Beginning { cx, agent, input, checkpoint, resume, own, handle, live, limits, outlives, stored, host };
        let run = Run::new(begin);
        Ok(StartedTurn { run, session, delivery })
    }

    /// Goes on with a turn or a stay that another process has begun.
    async fn take_over(
        &self,
        cx: &JobContext,
        trace: &RunTrace,
        agent: Agent,
        delivery: Delivery,
        input: RunInput,
        resume: Option<Resume>,
    ) -> Result<StartedTurn, NotStarted> {
        let later = |error: StoreError| NotStarted::for_now(error.code(), error.to_string());
        let stored = cx
            .runtime()
            .store()
            .run(ReadOutputPosition { job: cx.lease.job_id.clone(), from_attempt: trace.attempt })
            .await
            .map_err(later)?;
        let own = OwnSession::take_over(cx, trace, &input, &agent.connect_back).await.map_err(later)?;
        let handle = cx.runtime().part::<LiveRuns>().register(cx, &input, &own, &agent.connect_back, resume.as_ref());
        let live = self.host.adopt(&cx.lease, &trace.run_id, stored.read_to).await;
        let live = live.map_err(|error| NotStarted::for_now(error.code, error.message))?;
        handle.works_in(live.directory());
        let (checkpoint, session) = (RunCheckpoint::default(), own.session().clone());
        let (cx, host) = (cx.clone(), Arc::clone(&self.host));
        let (limits, outlives) = (Limits::default(), true);
        let begin =
            Beginning { cx, agent, input, checkpoint, resume, own, handle, live, limits, outlives, stored, host };
        Ok(StartedTurn { run: Run::new(begin), session, delivery })
    }

    /// What is to be written down, or the job's end if the turn is not over.
    async fn have(
        &self,
        cx: &JobContext,
        turn: &Turn,
        trace: Option<&RunTrace>,
    ) -> Result<(TurnOutcome, JobEnd), JobEnd> {
        let StartedTurn { run, session, delivery } = match self.begin(cx, turn, trace).await {
            Ok(begun) => begun,
            Err(NotStarted { code, why, is_worth_a_retry }) => {
                tracing::warn!(chat = %turn.chat.id, %why, "an agent could not be started for a chat");
                let outcome = chat_outcome::failed(cx, turn, &why, is_worth_a_retry, Conversation::GoesOn);
                return Ok((outcome, JobEnd::failed(code, why)));
            }
        };
        let mut came = true;
        let end = {
            let stay = run.until_it_ends();
            tokio::pin!(stay);
            tokio::select! {
                end = &mut stay => end,
                () = until_not_connected(cx, &session, delivery) => {
                    came = false;
                    stay.await
                }
            }
        };
        // A quota that returns, a shutdown, a lost lease: the same messages are for the next attempt.
        let is_cut_off = cx.stop.level() != StopLevel::GoOn && !matches!(end, JobEnd::Completed { .. });
        if is_cut_off
            || matches!(
                end,
                JobEnd::Requeue { .. }
                    | JobEnd::StillRuns
                    | JobEnd::OwnerLost
                    | JobEnd::OwnerDied
                    | JobEnd::AwaitingAuth
            )
        {
            return Err(end);
        }
        let outcome = match delivery {
            Delivery::Resume => chat_outcome::of_turn(cx, turn, &end).await,
            Delivery::Wait if !came => Ok(chat_outcome::never_came(cx, turn)),
            Delivery::Wait => chat_outcome::of_stay(cx, turn, &session, &end).await,
        };
        outcome.map(|outcome| (outcome, end)).map_err(|error| store_unavailable(&error))
    }
}

/// A program that waits itself has to find its way back for that.
fn delivery(agent: &Agent) -> Result<Delivery, NotStarted> {
    if agent.delivery == Delivery::Wait && !agent.connect_back.is_enabled {
        let why = format!(
            "definition {} has delivery = \"wait\" but no connect_back; add connect_back, or use delivery = \"resume\"",
            agent.name
        );
        return Err(NotStarted::for_good(ErrorCode::AgentStartFailed, why));
    }
    Ok(agent.delivery)
}

/// The program's first message. What the agent is goes before it, where its program has no better place for that.
fn prompt(turn: &Turn, agent: &Agent, delivery: Delivery) -> String {
    let is_new = turn.conversation.is_none();
    let who = turn.agent.system_prompt.as_deref().filter(|_| is_new && !agent.supports.system_prompt);
    let said: Vec<&str> = match delivery {
        Delivery::Resume => turn.messages.iter().map(|taken| taken.message.content.as_str()).collect(),
        Delivery::Wait => vec![WAIT],
    };
    who.into_iter().chain(said).collect::<Vec<_>>().join("\n\n")
}

const WAIT: &str = "A person talks with you in a chat. Call get_next_action of the MCP server matsu and follow \
                    its action: answer its messages with send_message, then call get_next_action again. Repeat \
                    this until the action is end_session; then stop. What you write elsewhere is not delivered.";

/// Returns when a program that should have called has not, and has been turned away.
async fn until_not_connected(cx: &JobContext, session: &Session, delivery: Delivery) {
    let runtime = cx.runtime();
    if delivery == Delivery::Resume {
        return std::future::pending().await;
    }
    runtime.clock().sleep(runtime.session_options().connect_max).await;
    let (key, now) = (SessionKey::Id(session.id.clone()), runtime.clock().now());
    match runtime.plain_store().run(ReadStanding { key: key.clone(), now }).await {
        Ok(Some(standing)) if !standing.session.has_called() => {
            let (to, reason) = (SessionState::Ended, EndReason::ProcessEnded);
            let end = matsu_core::ports::store::EndSession { id: session.id.clone(), to, reason, now };
            if let Err(error) = runtime.plain_store().run(end).await {
                tracing::warn!(%error, session = %session.id, "an agent that did not connect could not be ended");
                std::future::pending::<()>().await;
            }
        }
        _ => std::future::pending().await,
    }
}

#[async_trait]
impl JobBody for ChatRuns {
    fn kind(&self) -> JobKind {
        JobKind::AgentChat
    }

    fn run_seconds_max(&self, job: &Job) -> Option<u32> {
        let call: ChatCall = serde_json::from_str(&job.input_json).ok()?;
        Some(match self.agent(&call.definition).map(|agent| agent.delivery) {
            Some(Delivery::Wait) => CHAT_RUN_SECONDS_MAX,
            Some(Delivery::Resume) | None => RUN_SECONDS,
        })
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        let (store, now) = (cx.runtime().store(), cx.runtime().clock().now());
        if let Some(until) = quota(&cx).filter(|until| *until > now) {
            // Put off by more than a job can be at once: it is looked at in between.
            return JobEnd::Requeue { run_at: Some(until) };
        }
        let trace = self.host.trace(&cx.lease.job_id);
        let begun = trace.filter(|trace| cx.taken == Taken::TakenOver && trace.state != TraceState::NotBegun);
        let turn = if begun.is_some() {
            store.run(TurnUnderWay { lease: cx.lease.clone(), rows_max: MESSAGES_PER_ACTION_MAX }).await
        } else {
            // Of an earlier attempt, whose end is stored; or one that was prepared and never started.
            self.host.forget(&cx.lease.job_id).await;
            store.run(BeginTurn { lease: cx.lease.clone(), rows_max: MESSAGES_PER_ACTION_MAX, now }).await
        };
        let turn = match turn {
            Ok(Some(turn)) => turn,
            Ok(None) => return JobEnd::Completed { output_json: "{}".to_owned() },
            Err(error) => return store_unavailable(&error),
        };
        let (outcome, end) = match self.have(&cx, &turn, begun.as_ref()).await {
            Ok(over) => over,
            Err(end) => return end,
        };
        write_down(&cx, outcome).await.map_or_else(|error| store_unavailable(&error), |()| end)
    }
}

/// When the vendor has more to give, as an earlier attempt has read.
fn quota(cx: &JobContext) -> Option<Timestamp> {
    let checkpoint: RunCheckpoint = serde_json::from_str(cx.job.checkpoint_json.as_deref()?).ok()?;
    checkpoint.quota_until.map(Timestamp::from_millis)
}

async fn write_down(cx: &JobContext, outcome: TurnOutcome) -> Result<(), StoreError> {
    let (lease, now) = (cx.lease.clone(), cx.runtime().clock().now());
    cx.runtime().store().run(EndTurn { lease, outcome, now }).await
}
