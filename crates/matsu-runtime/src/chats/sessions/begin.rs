//! How a session begins: an agent shows its passkey, or Matsu starts the agent itself.

use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::{AgentId, JobId, ProjectId, RunId, SessionId};
use matsu_core::limits::RUN_SESSION_KEPT;
use matsu_core::ports::store::{NewSession, ReadAgent, ReadStanding, SessionKey, StoreError, WantedFor};
use matsu_core::principal::Principal;
use matsu_core::secret;
use matsu_core::session::Session;

use crate::chats::sessions::Waiters;

use super::passkey;

use super::Sessions;

/// A session and the token that opens it, which is not kept.
#[derive(Clone, Debug)]
pub struct StartedSession {
    pub session: Session,
    pub token: String,
    pub expires_in: Duration,
}

/// A session for an agent that Matsu starts.
#[derive(Clone, Debug)]
pub struct StartedAgent {
    pub agent_id: AgentId,
    pub project_id: ProjectId,
    pub wanted: WantedFor,
    pub job_id: JobId,
    pub run_id: RunId,
    /// The run's permission mode; what the agent starts may have at most this.
    pub mode: Option<String>,
    /// Toolsets and tools beyond `sessions`.
    pub grants: String,
}

impl Sessions<'_> {
    /// Begins a session for what is open for this agent.
    ///
    /// # Errors
    /// `SESSION_INVALID` for an unknown agent or a wrong passkey, `NOTHING_TO_DO` if nothing waits for it.
    pub async fn authenticate(
        self,
        owner: &Principal,
        agent_id: &AgentId,
        key: &str,
        project_id: &ProjectId,
    ) -> Result<StartedSession, StoreError> {
        let known = match self.runtime.store().run(ReadAgent(agent_id.clone())).await {
            Ok(agent) => Some(agent.passkey_hash),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        if !passkey::matches(key.to_owned(), known).await? {
            return Err(StoreError::Refused {
                code: ErrorCode::SessionInvalid,
                message: "unknown agent or passkey; check both, then authenticate again".to_owned(),
            });
        }
        let listening = self.listening(agent_id, project_id).await?;
        let (agent_id, project_id) = (agent_id.clone(), project_id.clone());
        let knowing = |new| NewSession { listening, ..new };
        self.begin(owner.clone(), agent_id, project_id, WantedFor::WhateverIsOpen, knowing).await
    }

    /// Which sessions of the agent certainly have a process: those that wait here.
    async fn listening(self, agent: &AgentId, project: &ProjectId) -> Result<Vec<SessionId>, StoreError> {
        let live = self.active_of(agent, project).await?;
        Ok(live.into_iter().map(|session| session.id).filter(|id| self.runtime.part::<Waiters>().any(id)).collect())
    }

    /// Begins the session of an agent that Matsu starts itself.
    ///
    /// # Errors
    /// A task or chat that is over.
    pub async fn begin_for_run(self, owner: &Principal, run: StartedAgent) -> Result<StartedSession, StoreError> {
        let StartedAgent { agent_id, project_id, wanted, job_id, run_id, mode, grants } = run;
        let of_run = |new: NewSession| {
            // It ends with its run; no hour of silence, and no night with the lid closed, ends it before.
            let expires_at = new.now.plus(RUN_SESSION_KEPT);
            NewSession { job_id: Some(job_id), run_id: Some(run_id), mode, grants: Some(grants), expires_at, ..new }
        };
        self.begin(owner.clone(), agent_id, project_id, wanted, of_run).await
    }

    /// The session that a token opens, ended ones too: what may still be called is the dispatch's to say.
    ///
    /// # Errors
    /// As the store's.
    pub async fn session_by_token(self, token: &str) -> Result<Option<Session>, StoreError> {
        let key = SessionKey::TokenHash(secret::hash(token));
        Ok(self
            .runtime
            .store()
            .run(ReadStanding { key: key.clone(), now: self.runtime.clock().now() })
            .await?
            .map(|standing| standing.session))
    }

    /// Whether the session whose token has this hash is not over.
    ///
    /// # Errors
    /// As the store's.
    pub async fn is_session_live(self, token_hash: &str) -> Result<bool, StoreError> {
        let now = self.runtime.clock().now();
        let standing =
            self.runtime.store().run(ReadStanding { key: SessionKey::TokenHash(token_hash.to_owned()), now }).await?;
        Ok(standing.is_some_and(|standing| standing.session.is_live(now)))
    }

    async fn begin(
        self,
        owner: Principal,
        agent_id: AgentId,
        project_id: ProjectId,
        wanted: WantedFor,
        more: impl FnOnce(NewSession) -> NewSession,
    ) -> Result<StartedSession, StoreError> {
        let (token, now) = (secret::mint(), self.runtime.clock().now());
        let ttl = self.runtime.session_options().ttl;
        let new = NewSession {
            id: SessionId::mint(now),
            token_hash: secret::hash(&token),
            owner,
            agent_id,
            project_id,
            wanted,
            listening: Vec::new(),
            job_id: None,
            run_id: None,
            mode: None,
            grants: None,
            now,
            expires_at: now.plus(ttl),
        };
        let session = self.runtime.store().run(more(new)).await?;
        let expires_in = session.expires_at.since(now);
        Ok(StartedSession { session, token, expires_in })
    }
}
