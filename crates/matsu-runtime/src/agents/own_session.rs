//! A run's own session: begun before its program starts, over when its last process is gone.
//!
//! It says who a process of the run is when it calls back, and bounds what that may do. The token goes to the program
//! and nowhere else; the store keeps its hash.

use std::time::Duration;

use tokio::time::Instant;

use matsu_core::change::Topic;
use matsu_core::chat::Chat;
use matsu_core::id::{AgentId, ProjectId, RunId};
use matsu_core::limits::{AFTER_REPORT_MAX, TICK};
use matsu_core::ports::agent::{ConnectBack, PromptKind, ReportRule, Resume, RunOrder, RunTrace};
use matsu_core::ports::store::{
    EndSession, ReadReport, ReadSession, ReadStanding, ReadTasks, SessionKey, Standing, StoreError, WantedFor,
};
use matsu_core::principal::Principal;
use matsu_core::project::DEFAULT_PROJECT;
use matsu_core::run::RunInput;
use matsu_core::secret::{self, Token};
use matsu_core::session::{AgentReport, EndReason, Purpose, Session, SessionState};
use matsu_core::wake::Subscription;

use super::run_body::outlives;
use crate::chats::sessions::Sessions;
use crate::chats::sessions::begin::StartedAgent;
use crate::runtime::context::JobContext;
use crate::runtime::{Runtime, SessionOptions};
use crate::stop_signal::StopLevel;

/// A lost wake-up costs this many ticks.
const LOOK_EVERY_TICKS: u32 = 5;

pub struct OwnSession {
    runtime: Runtime,
    session: Session,
    run_id: RunId,
    token: Token,
    socket_key: Token,
    rule: ReportRule,
    subscription: Subscription,
    /// The next look that comes by itself.
    look_at: Instant,
}

impl OwnSession {
    /// What a host starts in this session: the run's message, in a conversation that begins or goes on.
    pub fn order(&self, cx: &JobContext, input: &RunInput, resume: Option<&Resume>) -> RunOrder {
        RunOrder {
            lease: cx.lease.clone(),
            run_id: self.run_id.clone(),
            session_id: self.session.id.clone(),
            outlives: outlives(cx),
            socket_key: self.socket_key.clone(),
            task_id: cx.job.task_id.clone(),
            input: input.clone(),
            say: PromptKind::Message,
            feedback: None,
            resume: resume.cloned(),
            onto: Vec::new(),
            token: self.token.clone(),
        }
    }

    /// # Errors
    /// As the store's; a task or chat that is over.
    pub async fn begin(cx: &JobContext, input: &RunInput, back: &ConnectBack) -> Result<Self, StoreError> {
        let runtime = cx.runtime();
        let missing = || StoreError::NotFound { what: "task", id: cx.lease.job_id.to_string() };
        let task_id = cx.job.task_id.clone().ok_or_else(missing)?;
        let task = runtime.store().run(ReadTasks(vec![task_id.clone()])).await?.pop().ok_or_else(missing)?;
        let owner = person_behind(runtime, &task.owner).await?;
        let (agent_id, project_id) = match &input.presence {
            Some(presence) => (presence.agent_id.clone(), presence.project_id.clone()),
            None => (AgentId::of_program(&input.agent), ProjectId::from_text(DEFAULT_PROJECT)),
        };
        let rule = report_rule(input, back);
        let started = StartedAgent {
            agent_id,
            project_id,
            wanted: WantedFor::Task(task_id),
            job_id: cx.lease.job_id.clone(),
            run_id: RunId::mint(runtime.clock().now()),
            mode: Some(input.mode.to_string()),
            grants: back.grants.clone(),
        };
        Self::begin_as(runtime, &owner, started, rule).await
    }

    /// For an agent that was called to a chat by this person.
    ///
    /// # Errors
    /// As the store's; a chat that is over.
    pub async fn begin_in_chat(
        cx: &JobContext,
        owner: &Principal,
        chat: &Chat,
        input: &RunInput,
        back: &ConnectBack,
    ) -> Result<Self, StoreError> {
        let no_agent = || StoreError::NotFound { what: "agent", id: chat.id.to_string() };
        let started = StartedAgent {
            agent_id: chat.kind.agent().cloned().ok_or_else(no_agent)?,
            project_id: chat.project_id.clone(),
            wanted: WantedFor::Chat(chat.id.clone()),
            job_id: cx.lease.job_id.clone(),
            run_id: RunId::mint(cx.runtime().clock().now()),
            mode: Some(input.mode.to_string()),
            grants: back.grants.clone(),
        };
        Self::begin_as(cx.runtime(), owner, started, ReportRule::Optional).await
    }

    /// The session of a run that another process has begun.
    ///
    /// # Errors
    /// As the store's; the session is forgotten.
    pub async fn take_over(
        cx: &JobContext,
        trace: &RunTrace,
        input: &RunInput,
        back: &ConnectBack,
    ) -> Result<Self, StoreError> {
        let runtime = cx.runtime().clone();
        let session = runtime.plain_store().run(ReadSession(trace.session_id.clone())).await?;
        let topic = Topic::agent(&session.agent_id, &session.project_id);
        let subscription = runtime.hub().subscribe(&[topic]);
        let look_at = runtime.clock().instant();
        let (token, socket_key) = (trace.token.clone(), trace.socket_key.clone());
        let (run_id, rule) = (trace.run_id.clone(), report_rule(input, back));
        Ok(Self { runtime, session, run_id, token, socket_key, rule, subscription, look_at })
    }

    async fn begin_as(
        runtime: &Runtime,
        owner: &Principal,
        started: StartedAgent,
        rule: ReportRule,
    ) -> Result<Self, StoreError> {
        // Before it begins: whatever ends it from then on is noticed.
        let subscription = runtime.hub().subscribe(&[Topic::agent(&started.agent_id, &started.project_id)]);
        let run_id = started.run_id.clone();
        let begun = Sessions::of(runtime).begin_for_run(owner, started).await?;
        let (token, socket_key) = (Token::new(&begun.token), Token::new(&secret::mint()));
        let look_at = runtime.clock().instant() + TICK * LOOK_EVERY_TICKS;
        let (runtime, session) = (runtime.clone(), begun.session);
        Ok(Self { runtime, session, run_id, token, socket_key, rule, subscription, look_at })
    }

    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// What the run's supervisor shows when it forwards a connection. The program never gets it.
    pub fn socket_key(&self) -> &Token {
        &self.socket_key
    }

    pub fn token(&self) -> &Token {
        &self.token
    }

    /// Whether the run must say itself how its task went.
    pub fn must_report(&self) -> bool {
        self.rule == ReportRule::Required
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns when the session is over although the run is not, with how long its program still has to leave. May be
    /// dropped and called again: a look that was begun is then made up for.
    pub async fn over(&mut self) -> Duration {
        let (clock, key) = (*self.runtime.clock(), SessionKey::Id(self.session.id.clone()));
        loop {
            tokio::select! {
                biased;
                () = self.subscription.woken() => {}
                () = clock.sleep_until(self.look_at) => {}
            }
            // Until the look is over, so that a caller that drops it in between does not lose what woke it.
            self.look_at = clock.instant();
            // A store that does not answer now is asked again.
            let standing = self.runtime.plain_store().run(ReadStanding { key: key.clone(), now: clock.now() }).await;
            self.look_at = clock.instant() + TICK * LOOK_EVERY_TICKS;
            if let Ok(standing) = standing
                && let Some(patience) = patience(standing.as_ref(), &self.runtime.session_options())
            {
                return patience;
            }
        }
    }

    /// The run is over: the token opens nothing any more. Returns what the agent has reported by then.
    pub async fn close(&self, cx: &JobContext) -> Option<AgentReport> {
        let (id, now) = (self.session.id.clone(), self.runtime.clock().now());
        let request = EndSession { id, to: SessionState::Ended, reason: EndReason::ProcessEnded, now };
        // First the end, then the look: a report that was under way either counts or comes too late for good.
        loop {
            let ended = self.runtime.store().run(request.clone()).await;
            let said = match ended {
                Ok(_) => self.runtime.store().run(ReadReport(self.session.id.clone())).await,
                Err(error) => Err(error),
            };
            match said {
                Ok(said) => return said,
                Err(error) if cx.stop.level() >= StopLevel::Abort || !matches!(error, StoreError::Unavailable(_)) => {
                    tracing::warn!(session = %self.session.id, %error, "the session of a run could not be ended");
                    return None;
                }
                Err(_) => self.runtime.clock().sleep(TICK).await,
            }
        }
    }
}

/// A named agent says itself how its task went, if it can.
fn report_rule(input: &RunInput, back: &ConnectBack) -> ReportRule {
    if input.presence.is_some() && back.is_enabled { ReportRule::Required } else { back.report }
}

/// How long a program still has to leave by itself. `None`: its session goes on, or its end is none of the run's.
fn patience(standing: Option<&Standing>, options: &SessionOptions) -> Option<Duration> {
    let Some(Standing { session, unread }) = standing else { return Some(Duration::ZERO) };
    let is_chat = session.purpose == Purpose::Chat;
    match (session.state, session.end_reason) {
        // Who makes no calls cannot hear that it should stop. A task's own status tells its run.
        (SessionState::Active, _) => {
            (is_chat && !session.has_called() && unread.interrupts > 0).then_some(Duration::ZERO)
        }
        (SessionState::Ending, _) if session.has_called() => Some(options.cancel_grace),
        (SessionState::Ending, _) => Some(Duration::ZERO),
        (SessionState::Ended, Some(EndReason::Reported)) => Some(AFTER_REPORT_MAX),
        (SessionState::Ended, Some(EndReason::LoggedOut | EndReason::Idle | EndReason::ClosedByPerson)) if is_chat => {
            Some(AFTER_REPORT_MAX)
        }
        // It has left by itself, which is no reason to end its program.
        (SessionState::Ended, Some(EndReason::LoggedOut)) => None,
        (SessionState::Ended, _) => Some(Duration::ZERO),
    }
}

/// What a run starts belongs to its session; the session belongs to the principal who started the first run.
async fn person_behind(runtime: &Runtime, owner: &Principal) -> Result<Principal, StoreError> {
    let Some(session) = owner.as_session() else { return Ok(owner.clone()) };
    match runtime.store().run(ReadSession(session.clone())).await {
        Ok(session) => Ok(session.owner),
        Err(StoreError::NotFound { .. }) => Ok(owner.clone()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
