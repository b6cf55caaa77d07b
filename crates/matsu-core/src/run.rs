//! Agents: other AI command lines as background work. What a run is asked to do, and what is left of it.
//!
//! These are the shapes of a job's `input_json` and `output_json`; what the run said lies beside the job, in parts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, ProjectId};
use crate::words::words;

words! {
    /// What a run may touch, safest first.
    pub enum Mode {
        /// Looks and answers; changes nothing.
        ReadOnly = "read-only",
        /// Writes inside its directory.
        WorkspaceWrite = "workspace-write",
        /// Whatever the user may.
        Full = "full",
    }
}

impl Mode {
    /// Whether a run of this mode can change the user's files.
    #[must_use]
    pub fn writes(self) -> bool {
        self > Self::ReadOnly
    }
}

words! {
    /// Where a run that writes does so.
    pub enum Isolation {
        /// In its directory itself.
        None = "none",
        /// In a git repository of its own that borrows the user's objects, on a branch of its own.
        Worktree = "worktree",
    }
}

words! {
    /// How a run is kept from reaching what it was not given.
    pub enum Confinement {
        /// In namespaces, with a view of the machine that holds only what it needs.
        Sealed = "sealed",
        /// By Landlock.
        Fenced = "fenced",
        /// Not at all.
        Open = "open",
    }
}

/// A level and what it does not cover, in the words that every report uses.
#[must_use]
pub fn show_confinement(level: &str, not_covered: &[String]) -> String {
    format!("{level}; not covered: {}", not_covered.join("; "))
}

/// One run as it was checked and accepted: everything but the definition of its agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInput {
    pub agent: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Absolute, links resolved. Absent: an empty scratch directory of the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    pub mode: Mode,
    pub isolation: Isolation,
    pub timeout_seconds: u32,
    /// The caller's name for the conversation.
    pub session: String,
    /// Goes on with what the conversation's last run left.
    #[serde(default)]
    pub resume: bool,
    /// Where an earlier run of the same work ended; this one goes on from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continues>,
    /// Absent: it works as nobody in particular, and only its own task is its business.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<RunPresence>,
}

/// What an earlier run has left for the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continues {
    /// The vendor's name for the conversation. Absent: it begins anew, in the same files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_session: Option<String>,
    /// What the host needs to find the files; opaque to everybody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// The named agent that a run works as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPresence {
    pub agent_id: AgentId,
    pub project_id: ProjectId,
}

/// What is known of a run besides what it said. Written while it runs and at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOutput {
    pub agent: String,
    /// The caller's name for the conversation; set once there is something to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The vendor's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// It ended well and said nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub empty: bool,
    /// It said more than is kept.
    #[serde(default, skip_serializing_if = "is_false")]
    pub output_truncated: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout_tail: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// How it was confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<Confinement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_work: Option<LeftWork>,
    /// Processes that had to be ended, or ended with it.
    #[serde(default)]
    pub processes_ended: u32,
    /// A later try may succeed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub retryable: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// What a run has cost by its own account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// What a run in a repository of its own has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The commit it began at.
    pub base: String,
    /// The commit it ended with.
    pub head: String,
    pub branch: String,
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
    /// Files in the user's own tree that were not committed when the run began; the run did not see them.
    pub uncommitted_at_start: u64,
    /// Where the branch lies.
    pub repository: String,
    /// Submodules and repositories inside the tree that the run changed; they are not part of the branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Ignored files that the run wrote; they are not part of the branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// The folder of a run that stays, because not everything in it could be taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftWork {
    pub folder: String,
    pub why: String,
}

/// What the next attempt or the next job of the same run must know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCheckpoint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_session: Option<String>,
    /// What the host needs to go on in the same place; opaque to everybody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Milliseconds since 1970: not before the vendor's quota returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_until: Option<i64>,
    /// Errors that may pass with time, so far.
    #[serde(default)]
    pub transient_failures: u32,
    /// How often it was resumed after a restart of its machine.
    #[serde(default)]
    pub machine_restarts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relocated: Option<Relocated>,
}

/// A run that begins again because its machine has not come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relocated {
    /// The machine that has not come back.
    pub from: String,
    /// What an earlier attempt has started is of no use any more, wherever it is found.
    pub attempt: i64,
    /// How often this happened.
    pub times: u32,
}

/// A run's question to a person, as it is stored with the parked job and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub id: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// What was answered: one of the options, or words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_ordered_by_what_they_may_touch() {
        assert!(Mode::ReadOnly < Mode::WorkspaceWrite && Mode::WorkspaceWrite < Mode::Full);
        assert!(!Mode::ReadOnly.writes() && Mode::WorkspaceWrite.writes());
    }

    #[test]
    fn an_output_of_an_earlier_version_can_be_read() {
        let old: RunOutput = serde_json::from_str(r#"{"agent":"echo"}"#).unwrap();
        assert_eq!(old, RunOutput { agent: "echo".to_owned(), ..RunOutput::default() });
    }
}
