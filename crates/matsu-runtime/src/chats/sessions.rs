//! Sessions of agents: how one begins, and what its agent does next.
//!
//! The store decides; nothing is remembered here but the calls that wait at this moment.

pub mod begin;
mod delivery;
pub mod next;
pub(crate) mod passkey;
mod waiters;

use matsu_core::id::{AgentId, ProjectId, RunId, SessionId};
use matsu_core::notification::Notification;
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{ListNotifications, ListSessions, ReadSession, SessionFilter, SessionOfRun, StoreError};
use matsu_core::principal::Principal;
use matsu_core::session::{Session, SessionState};

pub use begin::StartedSession;
pub use delivery::{Delivery, Shown};
pub use next::{Next, NextReply, NextRequest};

use crate::runtime::service;
pub(crate) use waiters::Waiters;

service! {
    /// Sessions of agents.
    Sessions
}

impl Sessions<'_> {
    /// Sessions, newest first.
    ///
    /// # Errors
    /// As the store's.
    pub async fn list(self, filter: &SessionFilter, page: &PageRequest) -> Result<Page<Session>, StoreError> {
        self.runtime.store().run(ListSessions { filter: filter.clone(), page: page.clone() }).await
    }

    /// The first active sessions of an agent in a project.
    pub(super) async fn active_of(self, agent: &AgentId, project: &ProjectId) -> Result<Vec<Session>, StoreError> {
        let (agent_id, project_id) = (Some(agent.clone()), Some(project.clone()));
        let filter = SessionFilter { owner: None, agent_id, project_id, state: Some(SessionState::Active) };
        Ok(self.list(&filter, &PageRequest::default()).await?.items)
    }

    /// The session of this id.
    ///
    /// # Errors
    /// As the store's.
    pub async fn read(self, id: &SessionId) -> Result<Session, StoreError> {
        self.runtime.store().run(ReadSession(id.clone())).await
    }

    /// The session that a run has, or had.
    ///
    /// # Errors
    /// As the store's.
    pub async fn of_run(self, run: &RunId) -> Result<Option<Session>, StoreError> {
        self.runtime.store().run(SessionOfRun(run.clone())).await
    }

    /// Notifications, newest first; of this session and this principal, where they are named.
    ///
    /// # Errors
    /// As the store's.
    pub async fn notifications(
        self,
        session: Option<&SessionId>,
        owner: Option<&Principal>,
        page: &PageRequest,
    ) -> Result<Page<Notification>, StoreError> {
        self.runtime
            .store()
            .run(ListNotifications { session: session.cloned(), owner: owner.cloned(), page: page.clone() })
            .await
    }
}
