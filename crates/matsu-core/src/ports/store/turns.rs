//! Turns of a chat whose agent Matsu starts: called by a person's message, begun and ended under the lease of a job.
//!
//! A chat has at most one such job. It is named in the chat's row, so whatever becomes of the job, one look at both
//! says whether a job still works for the chat.

use crate::agent::Agent;
use crate::chat::Chat;
use crate::clock::Timestamp;
use crate::id::{ChatId, JobId, MessageId};
use crate::job::Lease;
use crate::language::Language;
use crate::project::Project;
use crate::run::Question;

use super::{SessionNote, TakenMessage, request};

/// What the job was called for, if it still is its chat's: the messages that the agent has not acknowledged, noted
/// as handed out. `None`: another session of the agent is in the chat, or there is nothing to answer; the chat is
/// released.
#[derive(Clone, Debug)]
pub struct BeginTurn {
    pub lease: Lease,
    pub rows_max: u32,
    pub now: Timestamp,
}
request!(BeginTurn => Option<Turn>);

/// What another process was called for and has handed out, for the one that takes its job over. Changes nothing.
#[derive(Clone, Debug)]
pub struct TurnUnderWay {
    pub lease: Lease,
    pub rows_max: u32,
}
request!(TurnUnderWay => Option<Turn>);

request! {
    /// What came of it, in one transaction with the end of the job's session: answers and what they acknowledge, or a
    /// system message. Messages that came meanwhile call the agent again. A job that is no longer its chat's changes nothing.
    EndTurn => ()
}

/// What the job that works for this chat asks at the moment.
#[derive(Clone, Debug)]
pub struct ReadQuestion(pub ChatId);
request!(ReadQuestion => Option<(JobId, Question)>);

/// Releases chats whose job has ended without an answer, with a line that says why.
#[derive(Clone, Debug)]
pub struct ReleaseChats {
    pub language: Language,
    pub now: Timestamp,
}
request!(ReleaseChats => Vec<ChatId>);

/// What a job that was called for a chat needs to know.
#[derive(Clone, Debug)]
pub struct Turn {
    pub chat: Chat,
    pub agent: Agent,
    pub project: Project,
    pub messages: Vec<TakenMessage>,
    /// Where the agent's own conversation goes on.
    pub conversation: Option<SessionNote>,
    /// Starts that failed since the agent last answered.
    pub failures: u32,
}

#[derive(Clone, Debug)]
pub struct EndTurn {
    pub lease: Lease,
    pub outcome: TurnOutcome,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub enum TurnOutcome {
    /// The agent's final words, in order, as answer to everything up to this message. If there are none, and the agent
    /// has not replied since this number either, the line is shown instead.
    Answered { said: Vec<String>, to: MessageId, upto_seq: i64, replied_seq: i64, if_silent: String },
    /// The agent has left by itself.
    Left,
    /// A person called it off; what it was answering counts as read.
    CalledOff { upto_seq: i64, line: String },
    /// Why, for people, and when it is tried again.
    Failed { line: String, retry_at: Option<Timestamp>, conversation: Conversation },
}

/// Whether the next start goes on where this one was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversation {
    GoesOn,
    BeginsAnew,
}

/// The input of a job that is called for a chat.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ChatCall {
    pub chat_id: ChatId,
    /// The definition that starts the agent.
    pub definition: String,
}
