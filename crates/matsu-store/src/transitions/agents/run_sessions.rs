//! Conversations with agents: taken with the task that uses them, named by the vendor while it runs.

use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::ports::store::{
    AgentSession, InsertRun, InsertedTask, NoteSession, ReadAgentSession, SessionClaim, StoreError,
};
use matsu_core::task::NewTask;

use crate::sql::{Row, Sql, Transition, Tx, params};
use crate::transitions::chats::turns;
use crate::transitions::tasks::update_job::task_of;

const RESERVE: Sql = Sql::both(
    "INSERT INTO agent_sessions (owner, name, agent, directory, task_id, updated_at) VALUES ($1, $2, $3, $4, $5, $6) \
     ON CONFLICT (owner, name) DO NOTHING",
);
const LOCK: Sql = Sql::each(
    "SELECT name, agent, directory, vendor_session, place, task_id FROM agent_sessions WHERE owner = $1 AND name = $2",
    "SELECT name, agent, directory, vendor_session, place, task_id FROM agent_sessions WHERE owner = $1 AND name = $2 \
     FOR UPDATE",
);
const READ: Sql = Sql::both(
    "SELECT name, agent, directory, vendor_session, place, task_id FROM agent_sessions WHERE owner = $1 AND name = $2",
);
const UNFINISHED: Sql = Sql::both("SELECT 1 FROM tasks WHERE id = $1 AND finished_at IS NULL");
const TAKE: Sql = Sql::both(
    "UPDATE agent_sessions SET task_id = $3, updated_at = $4, vendor_session = CASE WHEN $5 = 1 THEN vendor_session END, \
     place = CASE WHEN $5 = 1 THEN place END WHERE owner = $1 AND name = $2",
);
const NOTE: Sql =
    Sql::both("UPDATE agent_sessions SET vendor_session = $2, place = $3, updated_at = $4 WHERE task_id = $1");

impl Transition for InsertRun {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<InsertedTask, StoreError> {
        let inserted = self.task.run(tx).await?;
        match &self.session {
            Some(claim) if !inserted.existed => take(tx, &self.task, claim).await?,
            _ => {}
        }
        Ok(inserted)
    }
}

async fn take(tx: &mut Tx<'_>, task: &NewTask, claim: &SessionClaim) -> Result<(), StoreError> {
    let (owner, name) = (&task.owner, &claim.name);
    let fresh = params![owner, name, &claim.agent, &claim.directory, &task.id, task.created_at];
    if !claim.resume && tx.run(&RESERVE, fresh).await? > 0 {
        return Ok(());
    }
    let row = tx.row(&LOCK, params![owner, name]).await?;
    let Some(row) = row else { return Err(refused(format!("there is no session {name} to resume"))) };
    let session = read(&row)?;
    if session.agent != claim.agent {
        let message = format!("session {name} is a conversation with {}, not with {}", session.agent, claim.agent);
        return Err(refused(message));
    }
    if session.directory != claim.directory {
        return Err(refused(format!("session {name} belongs to another directory; resume it from there")));
    }
    if tx.row(&UNFINISHED, params![&session.task_id]).await?.is_some() {
        let message = format!("session {name} is in use by task {}, which has not ended", session.task_id);
        return Err(refused(message));
    }
    if claim.resume && session.vendor_session.is_none() {
        return Err(refused(format!("session {name} has nothing to resume: its last run reported no conversation")));
    }
    tx.run(&TAKE, params![owner, name, &task.id, task.created_at, i64::from(claim.resume)]).await?;
    Ok(())
}

fn refused(message: String) -> StoreError {
    StoreError::Refused { code: ErrorCode::SessionConflict, message }
}

fn read(row: &Row) -> Result<AgentSession, StoreError> {
    let mut c = row.columns();
    Ok(AgentSession {
        name: c.text()?,
        agent: c.text()?,
        directory: c.text()?,
        vendor_session: c.opt_text()?,
        place: c.opt_text()?,
        task_id: TaskId::from_text(c.text()?),
    })
}

impl Transition for ReadAgentSession {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<AgentSession>, StoreError> {
        tx.row(&READ, params![&self.owner, &self.name]).await?.map(|row| read(&row)).transpose()
    }
}

impl Transition for NoteSession {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let Some(task) = task_of(tx, &self.lease).await? else {
            return turns::note_conversation(tx, &self.lease, &self.note).await;
        };
        tx.run(&NOTE, params![&task, &self.note.vendor_session, self.note.place.as_ref(), self.now]).await?;
        Ok(())
    }
}
