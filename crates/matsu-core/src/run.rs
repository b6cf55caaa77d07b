//! Agents: other AI command lines as background work. What a run is asked to do, and what is left of it.
//!
//! These are the shapes of a job's `input_json` and `output_json`; what the run said lies beside the job, in parts.

mod question_ids;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::confinement::Confinement;
use crate::id::{AgentId, ProjectId, RunId, TaskId};
use crate::receipt::{Check, CheckCommand, Consent, Receipt};
use crate::usage::{Usage, UsageLimit};
use crate::words::words;

pub use question_ids::{QuestionIds, QuestionPlace};

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

/// One run as it was checked and accepted: everything but the definition of its agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// A program that prints nothing for so long is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_seconds: Option<u32>,
    /// The caller's name for the conversation.
    pub session: String,
    /// Goes on with what the conversation's last run left.
    #[serde(default)]
    pub resume: bool,
    /// Where an earlier run of the same work ended; this one goes on from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Continues>,
    /// Absent: it has no name of its own and sees only its own task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<RunPresence>,
    /// What must pass before the run counts as done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// How often a failed check goes back into the conversation.
    #[serde(default)]
    pub retries: u32,
    /// What its task may cost, with everything that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<UsageLimit>,
    /// How its tree is prepared, by the repository's own file.
    #[serde(default, skip_serializing_if = "TreeSetup::is_plain")]
    pub tree: TreeSetup,
    /// What an earlier run of the same conversation changed, and what conflicts with the user's files. This one begins
    /// with both merged, with conflict markers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolves: Option<Changes>,
    /// What those changes are merged with instead of the user's files: a commit of the user's repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolves_on: Option<String>,
    /// The same run with other agents, in the order in which they are tried when one cannot do it. Their message is this
    /// one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<RunInput>,
    /// What a person must have allowed before the run begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
    /// It begins after these tasks have completed, with what they came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
    /// Milliseconds since 1970: it does not begin earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<i64>,
    /// No agent runs: only the check, on the commit of an earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifies: Option<Box<RunOutput>>,
    /// It answers as a model does, and does nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_model: Option<AsModel>,
}

/// A run that is one answer of a model: without our tools, and without its own as far as its definition knows how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsModel {
    /// The JSON Schema of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

impl RunInput {
    /// The run with the agent that comes after this many have been tried.
    #[must_use]
    pub fn after(mut self, tried: usize) -> Self {
        let Some(next) = tried.checked_sub(1).and_then(|at| self.fallback.get(at)).cloned() else { return self };
        self.fallback.iter_mut().for_each(|other| other.message.clear());
        Self {
            message: self.message,
            session: self.session,
            continues: self.continues,
            resolves: self.resolves,
            resolves_on: self.resolves_on,
            presence: self.presence,
            consent: self.consent,
            depends_on: self.depends_on,
            not_before: self.not_before,
            fallback: self.fallback,
            ..next
        }
    }
}

/// How the tree of a run, and the checkout of its check, is prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeSetup {
    /// Ignored files and folders of the user's tree that are there as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
    /// Runs in the tree before anything else does, with the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<CheckCommand>,
    #[serde(default)]
    pub base: TreeBase,
}

impl TreeSetup {
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What a run begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeBase {
    /// The user's files as they are.
    #[default]
    #[serde(rename = "working-tree")]
    WorkingTree,
    /// The last commit alone.
    #[serde(rename = "HEAD")]
    Head,
}

/// An agent that could not do the work, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    pub agent: String,
    pub why: String,
    /// Milliseconds since 1970: it was out of quota until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_until: Option<i64>,
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
    /// Completed without output.
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
    /// Dollars by the user's prices, of programs that do not say what they cost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_usd: f64,
    /// It ended by itself, with a limit of what it may cost reached: which, and how far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<String>,
    /// Milliseconds since 1970: its agent is out of quota until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_until: Option<i64>,
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
    /// Agents that were tried before this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// What the check of its last commit came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Box<Receipt>>,
    /// The end of what that check printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub check_output: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(value: &f64) -> bool {
    *value <= 0.0
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
    /// Files in the user's own tree that were not committed when the run began.
    pub uncommitted_at_start: u64,
    /// The base contains them.
    #[serde(default)]
    pub has_uncommitted: bool,
    /// What was in the user's tree and not in the base: submodules, large files that git does not track.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_base: Vec<String>,
    /// Where the branch lies.
    pub repository: String,
    /// Where in the repository the run worked; empty: at its top.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
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

/// What is left of a run whose job was over before its tree was closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptWork {
    pub agent: String,
    pub changes: Option<Changes>,
    pub left_work: Option<LeftWork>,
    /// Where a run that goes on with it begins.
    pub place: Option<String>,
}

/// What the next attempt or the next job of the same run must know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCheckpoint {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_session: Option<String>,
    /// What the host needs to go on in the same place; opaque to everybody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The run whose program was begun and whose end is not known yet. What is left of it on the disk can be removed or
    /// damaged; this stays, so that it is never begun a second time and its processes are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<RunId>,
    /// Milliseconds since 1970: not before the vendor's quota returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_until: Option<i64>,
    /// How often it has waited for a quota without knowing how long.
    #[serde(default)]
    pub quota_waits: u32,
    /// Errors that may pass with time, so far.
    #[serde(default)]
    pub transient_failures: u32,
    /// How often it was resumed after a restart of its machine.
    #[serde(default)]
    pub machine_restarts: u32,
    /// It goes on after a restart of its machine; its message says so.
    #[serde(default)]
    pub is_restarted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relocated: Option<Relocated>,
    /// Programs of attempts up to this one have ended, and what they came to is in this checkpoint.
    #[serde(default)]
    pub done_attempt: i64,
    /// The agent has ended well, with this; what comes next is the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_check: Option<Box<RunOutput>>,
    /// Failed checks that went back into the conversation.
    #[serde(default)]
    pub rounds: u32,
    /// Agents that could not do it; the next of the list works now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// Checks of the agents before this one.
    #[serde(default)]
    pub rounds_before: u32,
    /// What is said to the agent next: how the last check failed, or what the agent before it has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// What earlier attempts have cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Usage>,
    /// Dollars of it by the user's prices.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_usd: f64,
    /// Checks that were begun again because their supervisor was lost.
    #[serde(default)]
    pub check_restarts: u32,
    /// Questions that it has got an answer to.
    #[serde(default, skip_serializing_if = "QuestionIds::is_empty")]
    pub questions: QuestionIds,
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
    fn usage_of_two_runs_is_added() {
        let of = |input_tokens, cost_usd| Usage { input_tokens, output_tokens: 1, cost_usd };
        assert_eq!(of(2, None).plus(of(3, None)), Usage { output_tokens: 2, ..of(5, None) });
        assert_eq!(of(2, Some(0.5)).plus(of(3, None)).cost_usd, Some(0.5));
    }

    #[test]
    fn an_output_of_an_earlier_version_can_be_read() {
        let old: RunOutput = serde_json::from_str(r#"{"agent":"echo"}"#).unwrap();
        assert_eq!(old, RunOutput { agent: "echo".to_owned(), ..RunOutput::default() });
    }
}
