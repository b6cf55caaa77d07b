//! What a run does while it is followed, and how it ends.

use crate::clock::Timestamp;
use crate::confinement::Confinement;
use crate::error_code::ErrorCode;
use crate::run::{Changes, LeftWork, Question};
use crate::usage::Usage;

/// Something that a run did.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// A part of its result.
    Output(String),
    /// A line of what it is doing.
    Log(String),
    /// The vendor's name for the conversation.
    Session(String),
    Usage(Usage),
    Question(Question),
    /// Output was read that says nothing; only the position has moved on.
    Passed,
    /// Every process is gone. The last event.
    Ended(Box<RunEnd>),
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEnd {
    pub exit_code: Option<i32>,
    pub verdict: Verdict,
    pub stdout_tail: String,
    pub stderr_tail: String,
    pub processes_ended: u32,
    pub changes: Option<Changes>,
    /// How it was confined.
    pub confinement: Option<Confinement>,
    /// Its folder stays, and why.
    pub left_work: Option<LeftWork>,
    /// When its last process was gone, by its supervisor's clock. Milliseconds since 1970.
    pub ended_at: Option<i64>,
    /// The model that it worked with, if it said so.
    pub model: Option<String>,
}

/// What the program's own words and its exit code together mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    #[default]
    Success,
    Failure {
        code: ErrorCode,
        message: String,
        retryable: bool,
    },
    /// The vendor's quota is used up, and comes back.
    Quota {
        /// Absent: the vendor does not say when.
        until: Option<Timestamp>,
        message: String,
    },
}
