//! What a host starts, and what it has of an earlier start.

use crate::id::{RunId, SessionId, TaskId};
use crate::job::Lease;
use crate::run::{Changes, RunInput};
use crate::secret::Token;

use super::Program;

/// What a machine has of a run that was started earlier.
#[derive(Clone, Debug)]
pub struct RunTrace {
    pub run_id: RunId,
    pub program: Program,
    /// The attempt that started it.
    pub attempt: i64,
    pub session_id: SessionId,
    pub token: Token,
    pub socket_key: Token,
    /// The conversation that it went on with.
    pub resumed_session: Option<String>,
    pub state: TraceState,
}

/// How a run that was started earlier is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceState {
    /// Its supervisor is at work.
    Alive,
    /// Its supervisor has recorded how it ended.
    Ended,
    /// It was prepared, and its program was never started.
    NotBegun,
    /// Its supervisor is gone and has recorded nothing.
    Lost,
    /// The same, and the machine was started again since then.
    MachineRestarted,
}

/// What to start.
#[derive(Clone, Debug)]
pub struct RunOrder {
    pub lease: Lease,
    /// The run's own id, new with every start of a program.
    pub run_id: RunId,
    pub session_id: SessionId,
    /// Whether the run goes on without its daemon.
    pub outlives: bool,
    /// Shows that a connection was forwarded by the supervisor of this run. The program never gets it.
    pub socket_key: Token,
    pub task_id: Option<TaskId>,
    pub input: RunInput,
    pub say: PromptKind,
    /// The words of [`PromptKind::Feedback`].
    pub feedback: Option<String>,
    pub resume: Option<Resume>,
    /// What earlier tasks have changed and the run's tree begins with, in this order.
    pub onto: Vec<Changes>,
    /// Opens the run's own session.
    pub token: Token,
}

/// What is said to the program this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptKind {
    /// The message of the run.
    Message,
    /// It has read the message already, and was interrupted.
    GoOn,
    /// The same, and the machine was restarted.
    GoOnAfterRestart,
    /// The message, to a new conversation on another machine than the one that it was begun on.
    BeginElsewhere,
    /// What an earlier program of the same work has left: a failed check, or an agent that could not do it.
    Feedback,
}

/// A conversation to go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    pub vendor_session: String,
    /// As the host gave it with the first run.
    pub place: Option<String>,
}
