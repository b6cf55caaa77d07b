//! Which tasks a principal sees: its own, those of sessions that work for it, and, for a session, those its agent was
//! given.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use matsu_core::id::{AgentId, ProjectId, SessionId, TaskId};
use matsu_core::ports::store::{ReadSession, StoreError};
use matsu_core::principal::Principal;
use matsu_core::task::Task;

use super::Access;

/// What of a session never changes, so it is read once.
#[derive(Clone, Debug)]
struct Identity {
    owner: Principal,
    agent: AgentId,
    project: ProjectId,
    task: Option<TaskId>,
}

const KNOWN_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct KnownSessions {
    known: Mutex<HashMap<SessionId, Identity>>,
}

impl Access<'_> {
    /// Whether this principal may read the task. For any other, the task does not exist.
    pub(crate) async fn sees(self, who: &Principal, task: &Task) -> Result<bool, StoreError> {
        if task.owner == *who {
            return Ok(true);
        }
        // What a session started is also for whom the session works.
        if let Some(session) = task.owner.as_session()
            && self.identity(&session).await?.is_some_and(|identity| identity.owner == *who)
        {
            return Ok(true);
        }
        let Some(session) = who.as_session() else { return Ok(false) };
        let Some(identity) = self.identity(&session).await? else { return Ok(false) };
        let given = task.assignee.as_deref() == Some(identity.agent.as_str())
            && task.project_id.as_deref() == Some(identity.project.as_str());
        Ok(given || identity.task.as_ref() == Some(&task.id))
    }

    async fn identity(self, id: &SessionId) -> Result<Option<Identity>, StoreError> {
        let sessions = self.runtime.part::<KnownSessions>();
        if let Some(identity) = sessions.known.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            return Ok(Some(identity.clone()));
        }
        let session = match self.runtime.store().run(ReadSession(id.clone())).await {
            Ok(session) => session,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let identity = Identity {
            owner: session.owner,
            agent: session.agent_id,
            project: session.project_id,
            task: session.task_id,
        };
        let mut known = sessions.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(id.clone(), identity.clone());
        Ok(Some(identity))
    }
}
