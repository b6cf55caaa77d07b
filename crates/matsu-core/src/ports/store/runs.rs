//! Agent runs: their output in parts, their conversations, and answers to their questions.

use crate::clock::Timestamp;
use crate::id::{JobId, TaskId};
use crate::job::Lease;
use crate::principal::Principal;
use crate::run::{Answer, KeptWork};
use crate::task::NewTask;
use crate::usage::Spent;
use crate::words::words;

use super::{InsertedTask, request};

/// As `insert_task`; in the same transaction the task takes the conversation it belongs to. A name that another
/// agent or directory uses, that has nothing to resume, or whose last run is unfinished is `Refused`, and nothing
/// is stored. A repeated idempotency key takes nothing.
#[derive(Clone, Debug)]
pub struct InsertRun {
    pub task: NewTask,
    pub session: Option<SessionClaim>,
}
request!(InsertRun => InsertedTask);

/// The conversation of that name, if its owner has one.
#[derive(Clone, Debug)]
pub struct ReadAgentSession {
    pub owner: Principal,
    pub name: String,
}
request!(ReadAgentSession => Option<AgentSession>);

/// Notes, under the fence, what the vendor calls the conversation that the job's task has taken. A task without
/// one is left alone.
#[derive(Clone, Debug)]
pub struct NoteSession {
    pub lease: Lease,
    pub note: SessionNote,
    pub now: Timestamp,
}
request!(NoteSession => ());

/// Appends under the fence, in order. Of a stream that gets too long the middle is removed. What an earlier attempt wrote to the same stream goes with the first part
/// of a later one.
/// `read_to` says up to where the program's own output is contained in all parts so far.
#[derive(Clone, Debug)]
pub struct AppendOutput {
    pub lease: Lease,
    pub parts: Vec<OutputPart>,
    pub read_to: u64,
}
request!(AppendOutput => ());

/// How much is stored of a job's output by this attempt and later ones.
#[derive(Clone, Debug)]
pub struct ReadOutputPosition {
    pub job: JobId,
    pub from_attempt: i64,
}
request!(ReadOutputPosition => OutputPosition);

/// Some of a job's output. A job without any, or without that stream, has none: an empty slice.
#[derive(Clone, Debug)]
pub struct ReadOutput {
    pub job: JobId,
    pub wish: OutputRange,
}
request!(ReadOutput => OutputSlice);

/// Answers the question that the job is parked for; wakes those who wait for it. No such question, or one that was
/// answered before with other words, is `Refused`.
#[derive(Clone, Debug)]
pub struct AnswerQuestion {
    pub job: JobId,
    pub answer: Answer,
    /// What is kept of both in the chat that the job works for, if it works for one.
    pub chat_line: Option<String>,
    pub now: Timestamp,
}
request!(AnswerQuestion => ());

/// Adds to the output of a job that is over what its run has changed, and to its checkpoint where that is. `false`:
/// the job is not over, or has its changes already; nothing was written.
#[derive(Clone, Debug)]
pub struct KeepWork {
    pub job: JobId,
    pub work: KeptWork,
    pub now: Timestamp,
}
request!(KeepWork => bool);

/// Remembers what a run has cost, for the sums. A later note about the same run replaces it.
#[derive(Clone, Debug)]
pub struct NoteSpent(pub Spent);
request!(NoteSpent => ());

/// What the runs of an owner that ended in this span have cost, oldest first.
#[derive(Clone, Debug)]
pub struct ReadSpent {
    pub owner: Principal,
    pub from: Timestamp,
    pub until: Timestamp,
    pub rows_max: u32,
}
request!(ReadSpent => Vec<Spent>);

/// The answer, if it has come.
#[derive(Clone, Debug)]
pub struct ReadAnswer {
    pub job: JobId,
    pub question: String,
}
request!(ReadAnswer => Option<Answer>);

words! {
    /// What a part of the output belongs to.
    pub enum OutputStream {
        /// The result itself.
        Result = "result",
        /// What the run was doing, line by line.
        Log = "log",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPart {
    pub stream: OutputStream,
    /// Bytes of the stream before this part.
    pub start: u64,
    pub text: String,
}

/// How far the output of a run is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputPosition {
    /// Bytes of the result and of the log.
    pub result: u64,
    pub log: u64,
    /// Up to where the program's own output was read with them.
    pub read_to: u64,
}

/// Which bytes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputRange {
    pub stream: OutputStream,
    pub from: OutputFrom,
    pub bytes_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFrom {
    /// From this byte on, moved to the next character border.
    Byte(u64),
    /// The last bytes.
    End,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputSlice {
    pub text: String,
    /// Where `text` begins and ends in the stream.
    pub start: u64,
    pub end: u64,
    /// Bytes of the whole stream so far.
    pub total: u64,
    /// Bytes before `end` that were not kept, because the stream is too long. They belong after `text`.
    pub cut: u64,
}

impl OutputSlice {
    /// The text for a reader, with a mark where something was cut.
    #[must_use]
    pub fn marked(&self) -> String {
        match self.cut {
            0 => self.text.clone(),
            cut => format!("{}\n[… {cut} bytes in the middle were not kept …]\n", self.text),
        }
    }
}

/// A conversation that a new task wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionClaim {
    pub name: String,
    pub agent: String,
    pub directory: String,
    pub resume: bool,
}

/// A conversation as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSession {
    pub name: String,
    pub agent: String,
    pub directory: String,
    pub vendor_session: Option<String>,
    /// What the host needs to go on in the same place.
    pub place: Option<String>,
    /// The task that used it last.
    pub task_id: TaskId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionNote {
    pub vendor_session: String,
    pub place: Option<String>,
}
