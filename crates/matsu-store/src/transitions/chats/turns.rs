//! Turns of a chat whose agent is started: what calls it, what it is given, what comes of it.
//!
//! The chat's row names the one job that works for it. A transition that changes that holds the chat's lock, and one
//! that writes for the job checks its fence first, so a job that was given up can neither answer nor call another.

use matsu_core::change::ChangeKind;
use matsu_core::chat::{Chat, ChatState, Message, NewMessage, Sender, lines};
use matsu_core::clock::Timestamp;
use matsu_core::id::{AgentId, ChatId, JobId, MessageId, SessionId};
use matsu_core::job::{JobKind, Lease, NewJob, Priority};
use matsu_core::ports::store::{
    BeginTurn, ChatCall, Conversation, EndSession, EndTurn, ReadQuestion, ReleaseChats, SessionNote, StoreError,
    TakenMessage, Turn, TurnOutcome, TurnUnderWay,
};
use matsu_core::project::ProjectStatus;
use matsu_core::session::{EndReason, SessionState};
use matsu_core::slot::Slot;

use super::chat::{announce, lock, read};
use super::directory::{read_agent, read_project};
use super::messages::{append, pending};
use crate::sql::{Sql, Transition, Tx, internal, params};
use crate::transitions::jobs::check_fence;
use crate::transitions::jobs::insert_jobs;

const CALLED: Sql = Sql::both("SELECT job_id, vendor_session, place, start_failures FROM chats WHERE id = $1");
const CHAT_OF_JOB: Sql = Sql::both("SELECT id FROM chats WHERE job_id = $1");
const ASKED: Sql = Sql::both(
    "SELECT jobs.id, jobs.progress_json FROM chats JOIN jobs ON jobs.id = chats.job_id \
     WHERE chats.id = $1 AND jobs.state = 'awaiting_input'",
);
const ACTIVE_SESSION: Sql =
    Sql::both("SELECT 1 FROM sessions WHERE chat_id = $1 AND state = 'active' AND expires_at > $2 LIMIT 1");
const CALL: Sql = Sql::both("UPDATE chats SET job_id = $2, connecting_since = $3, start_failures = $4 WHERE id = $1");
const LET_GO: Sql =
    Sql::both("UPDATE chats SET job_id = NULL, connecting_since = NULL, start_failures = 0 WHERE id = $1");
const HAND_OUT: Sql = Sql::both("UPDATE chats SET handed_seq = $2 WHERE id = $1 AND handed_seq < $2");
const ACKNOWLEDGE: Sql = Sql::both("UPDATE chats SET acked_seq = $2 WHERE id = $1 AND acked_seq < $2");
const FORGET: Sql = Sql::both("UPDATE chats SET vendor_session = NULL, place = NULL WHERE id = $1");
const NOTE: Sql = Sql::both("UPDATE chats SET vendor_session = $2, place = $3 WHERE job_id = $1");
const SESSION_OF_JOB: Sql = Sql::both("SELECT id FROM sessions WHERE job_id = $1 AND state <> 'ended'");
const OF_ENDED_JOBS: Sql = Sql::both(
    "SELECT chats.id, chats.job_id, jobs.error_message FROM chats LEFT JOIN jobs ON jobs.id = chats.job_id \
     WHERE chats.job_id IS NOT NULL AND (jobs.id IS NULL OR jobs.finished_at IS NOT NULL) ORDER BY chats.id LIMIT 100",
);

/// What the row holds besides the chat itself.
struct Called {
    job: Option<JobId>,
    conversation: Option<SessionNote>,
    failures: u32,
}

async fn called(tx: &mut Tx<'_>, chat: &ChatId) -> Result<Called, StoreError> {
    let row = tx.row(&CALLED, params![chat]).await?.ok_or_else(|| internal("a locked chat is gone"))?;
    let mut c = row.columns();
    let job = c.opt_text()?.map(JobId::from_text);
    let (vendor_session, place) = (c.opt_text()?, c.opt_text()?);
    let conversation = vendor_session.map(|vendor_session| SessionNote { vendor_session, place });
    Ok(Called { job, conversation, failures: u32::try_from(c.int()?).unwrap_or(u32::MAX) })
}

/// Starts the agent of a locked chat, if Matsu can start it, no session of it is in the chat and no job was called yet.
/// `false`: the agent connects by itself, if at all.
pub async fn call_if_needed(tx: &mut Tx<'_>, id: &ChatId, now: Timestamp) -> Result<bool, StoreError> {
    let chat = read(tx, id).await?;
    let Some(agent) = chat.kind.agent() else { return Ok(false) };
    let Some(definition) = read_agent(tx, agent).await?.definition else { return Ok(false) };
    let is_paused = read_project(tx, &chat.project_id).await?.status == ProjectStatus::Paused;
    let is_there = tx.row(&ACTIVE_SESSION, params![id, now]).await?.is_some();
    let needed = chat.state == ChatState::Open && chat.has_unread() && !is_paused && !is_there;
    if needed && called(tx, id).await?.job.is_none() {
        call(tx, &chat, definition, 0, now, now).await?;
    }
    Ok(true)
}

async fn call(
    tx: &mut Tx<'_>,
    chat: &Chat,
    definition: String,
    failures: u32,
    run_at: Timestamp,
    now: Timestamp,
) -> Result<(), StoreError> {
    let input = ChatCall { chat_id: chat.id.clone(), definition };
    let job = NewJob {
        id: JobId::mint(now),
        kind: JobKind::AgentChat,
        // A person waits for it.
        priority: Priority::High,
        // Not a run's place: one that waits for its next message would hold it for minutes.
        slot: Slot::AgentChat,
        input_json: serde_json::to_string(&input).map_err(internal)?,
        cause_id: None,
        run_at,
        dedupe_key: None,
    };
    tx.run(&CALL, params![&chat.id, &job.id, now, failures]).await?;
    insert_jobs(tx, None, &[job], now).await?;
    announce(tx, chat, ChangeKind::ChatState, now).await
}

/// The chat that this job works for, locked; under the fence.
async fn chat_of(tx: &mut Tx<'_>, lease: &Lease) -> Result<Option<Chat>, StoreError> {
    check_fence(tx, lease).await?;
    let Some(row) = tx.row(&CHAT_OF_JOB, params![&lease.job_id]).await? else { return Ok(None) };
    let chat = lock(tx, &ChatId::from_text(row.only_text()?)).await?;
    let is_ours = called(tx, &chat.id).await?.job.as_ref() == Some(&lease.job_id);
    Ok(is_ours.then_some(chat))
}

/// People see something of the job that works for a chat, and it has changed.
pub async fn announce_job(tx: &mut Tx<'_>, job: &JobId, now: Timestamp) -> Result<(), StoreError> {
    let Some(row) = tx.row(&CHAT_OF_JOB, params![job]).await? else { return Ok(()) };
    let chat = read(tx, &ChatId::from_text(row.only_text()?)).await?;
    announce(tx, &chat, ChangeKind::ChatState, now).await
}

/// What a job has asked is answered: the chat that it works for shows so, and keeps the line.
pub async fn answered(tx: &mut Tx<'_>, job: &JobId, line: Option<&str>, now: Timestamp) -> Result<(), StoreError> {
    let Some(row) = tx.row(&CHAT_OF_JOB, params![job]).await? else { return Ok(()) };
    let chat = lock(tx, &ChatId::from_text(row.only_text()?)).await?;
    if let Some(line) = line {
        system_message(tx, &chat, line, now).await?;
    }
    let chat = read(tx, &chat.id).await?;
    announce(tx, &chat, ChangeKind::ChatState, now).await
}

impl Transition for ReadQuestion {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Output, StoreError> {
        let Some(row) = tx.row(&ASKED, params![&self.0]).await? else { return Ok(None) };
        let mut c = row.columns();
        let job = JobId::from_text(c.text()?);
        let question = c.opt_text()?.and_then(|text| serde_json::from_str(&text).ok());
        Ok(question.map(|question| (job, question)))
    }
}

/// The vendor has named the conversation of the chat that the job works for.
pub async fn note_conversation(tx: &mut Tx<'_>, lease: &Lease, note: &SessionNote) -> Result<(), StoreError> {
    tx.run(&NOTE, params![&lease.job_id, &note.vendor_session, note.place.as_ref()]).await.map(drop)
}

impl Transition for BeginTurn {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Turn>, StoreError> {
        let Some(chat) = chat_of(tx, &self.lease).await? else { return Ok(None) };
        // An earlier attempt of this job may have left its session behind.
        end_sessions(tx, &self.lease.job_id, self.now).await?;
        let is_there = tx.row(&ACTIVE_SESSION, params![&chat.id, self.now]).await?.is_some();
        let messages = match chat.state {
            ChatState::Open if !is_there => pending(tx, &chat, chat.acked_seq, self.rows_max).await?,
            _ => Vec::new(),
        };
        let (Some(last), Some(agent)) = (messages.last(), chat.kind.agent()) else {
            tx.run(&LET_GO, params![&chat.id]).await?;
            return Ok(None);
        };
        tx.run(&HAND_OUT, params![&chat.id, last.seq]).await?;
        let agent = agent.clone();
        turn(tx, chat, &agent, messages).await.map(Some)
    }
}

async fn turn(tx: &mut Tx<'_>, chat: Chat, agent: &AgentId, messages: Vec<Message>) -> Result<Turn, StoreError> {
    let agent = read_agent(tx, agent).await?;
    let project = read_project(tx, &chat.project_id).await?;
    let Called { conversation, failures, .. } = called(tx, &chat.id).await?;
    let take = |message: Message| TakenMessage { redelivered: message.seq <= chat.handed_seq, message };
    let messages = messages.into_iter().map(take).collect();
    Ok(Turn { chat, agent, project, messages, conversation, failures })
}

impl Transition for TurnUnderWay {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Turn>, StoreError> {
        let Some(chat) = chat_of(tx, &self.lease).await? else { return Ok(None) };
        let Some(agent) = chat.kind.agent().cloned() else { return Ok(None) };
        // Messages since then are for the next turn.
        let mut messages = pending(tx, &chat, chat.acked_seq, self.rows_max).await?;
        messages.retain(|message| message.seq <= chat.handed_seq);
        turn(tx, chat, &agent, messages).await.map(Some)
    }
}

async fn end_sessions(tx: &mut Tx<'_>, job: &JobId, now: Timestamp) -> Result<(), StoreError> {
    for row in tx.rows(&SESSION_OF_JOB, params![job]).await? {
        let (id, to) = (SessionId::from_text(row.only_text()?), SessionState::Ended);
        EndSession { id, to, reason: EndReason::ProcessEnded, now }.run(tx).await?;
    }
    Ok(())
}

impl Transition for EndTurn {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let Some(chat) = chat_of(tx, &self.lease).await? else { return Ok(()) };
        // Before the chat is released: the end of a session calls an agent where no job works for the chat.
        end_sessions(tx, &self.lease.job_id, self.now).await?;
        let is_open = chat.state == ChatState::Open;
        match &self.outcome {
            TurnOutcome::Answered { said, to, upto_seq, replied_seq, if_silent } => {
                tx.run(&ACKNOWLEDGE, params![&chat.id, *upto_seq]).await?;
                if is_open && said.is_empty() && chat.last_reply_seq <= *replied_seq {
                    system_message(tx, &chat, if_silent, self.now).await?;
                } else if is_open {
                    self.answer(tx, &chat, said, to).await?;
                }
            }
            TurnOutcome::Left => {}
            TurnOutcome::CalledOff { upto_seq, line } => {
                tx.run(&ACKNOWLEDGE, params![&chat.id, *upto_seq]).await?;
                self.system_message(tx, &chat, line).await?;
            }
            TurnOutcome::Failed { line, retry_at, conversation } => {
                if *conversation == Conversation::BeginsAnew {
                    tx.run(&FORGET, params![&chat.id]).await?;
                }
                self.system_message(tx, &chat, line).await?;
                return self.failed(tx, &chat, *retry_at).await;
            }
        }
        tx.run(&LET_GO, params![&chat.id]).await?;
        call_if_needed(tx, &chat.id, self.now).await?;
        let chat = read(tx, &chat.id).await?;
        announce(tx, &chat, ChangeKind::ChatState, self.now).await
    }
}

trait Ending {
    async fn answer(&self, tx: &mut Tx<'_>, chat: &Chat, said: &[String], to: &MessageId) -> Result<(), StoreError>;
    async fn system_message(&self, tx: &mut Tx<'_>, chat: &Chat, line: &str) -> Result<(), StoreError>;
    async fn failed(&self, tx: &mut Tx<'_>, chat: &Chat, retry_at: Option<Timestamp>) -> Result<(), StoreError>;
}

impl Ending for EndTurn {
    async fn answer(&self, tx: &mut Tx<'_>, chat: &Chat, said: &[String], to: &MessageId) -> Result<(), StoreError> {
        let sender_id = chat.kind.agent().map(ToString::to_string).unwrap_or_default();
        for content in said {
            // Read anew each time: every message takes the number after the last one's.
            let chat = read(tx, &chat.id).await?;
            let new = NewMessage {
                id: MessageId::mint(self.now),
                chat_id: chat.id.clone(),
                sender: Sender::Agent,
                sender_id: sender_id.clone(),
                content: content.clone(),
                reply_to: Some(to.clone()),
                created_at: self.now,
            };
            append(tx, &chat, &new).await?;
        }
        Ok(())
    }

    async fn system_message(&self, tx: &mut Tx<'_>, chat: &Chat, line: &str) -> Result<(), StoreError> {
        system_message(tx, chat, line, self.now).await
    }

    /// Tried again by a new job later, or given up until a person writes again.
    async fn failed(&self, tx: &mut Tx<'_>, chat: &Chat, retry_at: Option<Timestamp>) -> Result<(), StoreError> {
        let failures = called(tx, &chat.id).await?.failures.saturating_add(1);
        let agent = match chat.kind.agent() {
            Some(agent) => Some(read_agent(tx, agent).await?),
            None => None,
        };
        let chat = read(tx, &chat.id).await?;
        match (agent.and_then(|agent| agent.definition), retry_at) {
            (Some(definition), Some(run_at)) if chat.state == ChatState::Open => {
                call(tx, &chat, definition, failures, run_at, self.now).await
            }
            _ => {
                tx.run(&LET_GO, params![&chat.id]).await?;
                announce(tx, &chat, ChangeKind::ChatState, self.now).await
            }
        }
    }
}

async fn system_message(tx: &mut Tx<'_>, chat: &Chat, line: &str, now: Timestamp) -> Result<(), StoreError> {
    if chat.state == ChatState::Ended {
        return Ok(());
    }
    let new = NewMessage {
        id: MessageId::mint(now),
        chat_id: chat.id.clone(),
        sender: Sender::System,
        sender_id: "matsu".to_owned(),
        content: line.to_owned(),
        reply_to: None,
        created_at: now,
    };
    let chat = read(tx, &chat.id).await?;
    append(tx, &chat, &new).await.map(drop)
}

impl Transition for ReleaseChats {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<ChatId>, StoreError> {
        let mut released = Vec::new();
        for row in tx.rows(&OF_ENDED_JOBS, params![]).await? {
            let mut c = row.columns();
            let (id, job) = (ChatId::from_text(c.text()?), JobId::from_text(c.text()?));
            let why = c.opt_text()?;
            let chat = lock(tx, &id).await?;
            // Its last word may have come before we had the lock.
            if called(tx, &id).await?.job.as_ref() != Some(&job) {
                continue;
            }
            end_sessions(tx, &job, self.now).await?;
            let line = match why {
                Some(why) => lines::failed(self.language, &why, None),
                None => lines::called_off(self.language),
            };
            system_message(tx, &chat, &line, self.now).await?;
            tx.run(&LET_GO, params![&id]).await?;
            let chat = read(tx, &id).await?;
            announce(tx, &chat, ChangeKind::ChatState, self.now).await?;
            released.push(id);
        }
        Ok(released)
    }
}
