//! A run's own session: begun before its program starts, over when its last process is gone.
//!
//! It says who a process of the run is when it calls back, and bounds what that may do. The token goes to the program
//! and to nobody else; the store keeps its hash.

use matsu_core::change::Topic;
use matsu_core::id::{AgentId, ProjectId};
use matsu_core::limits::TICK;
use matsu_core::ports::agent::{ConnectBack, ReportRule};
use matsu_core::ports::store::{EndSession, StoreError, WantedFor};
use matsu_core::principal::Principal;
use matsu_core::project::DEFAULT_PROJECT;
use matsu_core::run::RunInput;
use matsu_core::secret::Token;
use matsu_core::session::{EndReason, Said, Session, SessionState};
use matsu_core::wake::Subscription;

use crate::context::JobContext;
use crate::runtime::Runtime;
use crate::sessions::begin::StartedAgent;
use crate::stop_signal::StopWord;

/// A lost wake-up costs this many ticks.
const LOOK_EVERY_TICKS: u32 = 5;

pub struct OwnSession {
    runtime: Runtime,
    session: Session,
    token: Token,
    rule: ReportRule,
    subscription: Subscription,
}

/// Why a session is over before its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The agent has said how its task went.
    Reported,
    /// Somebody has taken it away.
    Revoked,
}

impl OwnSession {
    /// # Errors
    /// As the store's; a task or chat that is over.
    pub async fn begin(cx: &JobContext, input: &RunInput, back: &ConnectBack) -> Result<Self, StoreError> {
        let runtime = cx.runtime();
        let missing = || StoreError::NotFound { what: "task", id: cx.lease.job_id.to_string() };
        let task_id = cx.job.task_id.clone().ok_or_else(missing)?;
        let task = runtime.store().tasks(std::slice::from_ref(&task_id)).await?.pop().ok_or_else(missing)?;
        let owner = person_behind(runtime, &task.owner).await?;
        let chat = input.presence.as_ref().and_then(|presence| presence.chat_id.clone());
        let is_assigned = input.presence.is_some() && chat.is_none();
        let (agent_id, project_id) = match &input.presence {
            Some(presence) => (presence.agent_id.clone(), presence.project_id.clone()),
            None => (AgentId::of_program(&input.agent), ProjectId::from_text(DEFAULT_PROJECT)),
        };
        // Before it begins: whatever ends it from then on is heard.
        let subscription = runtime.hub().subscribe(&[Topic::agent(&agent_id, &project_id)]);
        let started = StartedAgent {
            agent_id,
            project_id,
            wanted: chat.map_or(WantedFor::Task(task_id), WantedFor::Chat),
            job_id: cx.lease.job_id.clone(),
            mode: Some(input.mode.to_string()),
            grants: back.grants.clone(),
        };
        let begun = runtime.begin_for_run(&owner, started).await?;
        let rule = if is_assigned { ReportRule::Required } else { back.report };
        let token = Token::new(&begun.token);
        Ok(Self { runtime: runtime.clone(), session: begun.session, token, rule, subscription })
    }

    pub fn token(&self) -> &Token {
        &self.token
    }

    /// Whether the run must say itself how its task went.
    pub fn must_report(&self) -> bool {
        self.rule == ReportRule::Required
    }

    /// Returns when the session is over although the run is not.
    pub async fn over(&self) -> Over {
        loop {
            tokio::select! {
                biased;
                () = self.subscription.woken() => {}
                () = self.runtime.clock().sleep(TICK * LOOK_EVERY_TICKS) => {}
            }
            // A store that does not answer now is asked again.
            let Ok(session) = self.runtime.store().session(&self.session.id).await else { continue };
            if session.state != SessionState::Ended {
                continue;
            }
            match session.end_reason {
                Some(EndReason::Reported) => return Over::Reported,
                // It has left by itself, which is no reason to end its program.
                Some(EndReason::LoggedOut) => std::future::pending().await,
                _ => return Over::Revoked,
            }
        }
    }

    /// The run is over: the token opens nothing any more. Returns what the agent has reported by then.
    pub async fn close(&self, cx: &JobContext) -> Option<Said> {
        let (id, now) = (self.session.id.clone(), self.runtime.clock().now());
        let request = EndSession { id, to: SessionState::Ended, reason: EndReason::ProcessEnded, now };
        // First the end, then the look: a report that was under way either counts or comes too late for good.
        loop {
            let ended = self.runtime.store().end_session(request.clone()).await;
            let said = match ended {
                Ok(_) => self.runtime.store().report_of(&self.session.id).await,
                Err(error) => Err(error),
            };
            match said {
                Ok(said) => return said,
                Err(error) if cx.stop.word() >= StopWord::Abort || !matches!(error, StoreError::Unavailable(_)) => {
                    tracing::warn!(session = %self.session.id, %error, "the session of a run is left to the sweeper");
                    return None;
                }
                Err(_) => self.runtime.clock().sleep(TICK).await,
            }
        }
    }
}

/// What a run starts belongs to its session; the session belongs to whoever is at the beginning of it all.
async fn person_behind(runtime: &Runtime, owner: &Principal) -> Result<Principal, StoreError> {
    let Some(session) = owner.as_session() else { return Ok(owner.clone()) };
    match runtime.store().session(&session).await {
        Ok(session) => Ok(session.owner),
        Err(StoreError::NotFound { .. }) => Ok(owner.clone()),
        Err(error) => Err(error),
    }
}
