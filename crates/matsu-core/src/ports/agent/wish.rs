//! A run as its caller wishes it, and what a host makes of the wish.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::confinement::Confinement;
use crate::error_code::ErrorCode;
use crate::receipt::Check;
use crate::run::{AsModel, Isolation, Mode, RunInput, RunPresence};
use crate::usage::UsageLimit;

/// Where a caller works: what it may name, and what it means by a relative name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub roots: Vec<PathBuf>,
    pub cwd: Option<PathBuf>,
}

/// What a wish says about a check that it does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckWith {
    pub timeout_seconds: Option<u32>,
    pub network: Option<bool>,
}

/// A run as its caller wishes it.
#[derive(Clone, Debug, Default)]
pub struct RunWish {
    pub agent: String,
    pub message: String,
    pub system_prompt: Option<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub working_directory: Option<String>,
    pub mode: Option<Mode>,
    pub isolation: Option<Isolation>,
    pub timeout_seconds: Option<u32>,
    /// A program that prints nothing for so many seconds is ended.
    pub stall_seconds: Option<u32>,
    pub session: Option<String>,
    pub resume: bool,
    pub places: Places,
    /// The hardest mode the caller itself has; absent: a person.
    pub mode_max: Option<Mode>,
    /// Several agents write at once: each needs a tree of its own.
    pub must_isolate: bool,
    /// What must pass before the run counts as done.
    pub check: Option<Check>,
    /// How the check of the repository's own file is run, where the wish names no other.
    pub check_with: CheckWith,
    /// How often a failed check goes back into the conversation.
    pub retries: Option<u32>,
    /// Agents to try when one cannot do it, in this order.
    pub fallback: Option<Vec<String>>,
    /// What the task may cost.
    pub budget: Option<UsageLimit>,
    pub presence: Option<RunPresence>,
    /// It shall answer as a model does, and do nothing else.
    pub as_model: Option<AsModel>,
}

/// A run that can be queued.
#[derive(Clone, Debug)]
pub struct CheckedRun {
    pub input: RunInput,
    /// The directory in the caller's own words.
    pub shown_directory: String,
    /// What the caller should know about where it runs.
    pub note: Option<String>,
    /// How the run will be confined.
    pub confinement: Option<Confinement>,
    /// What that does not cover, in plain words.
    pub not_covered: Vec<String>,
}

/// A wish that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRefusal {
    pub code: ErrorCode,
    pub message: String,
    /// The parameter that will not do, what was expected, what came.
    pub param: Option<RefusedParam>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedParam {
    pub name: String,
    pub expected: String,
    pub received: String,
}
