//! Bringing the changes of several runs together in one branch: what is asked for, and where it stands.

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::receipt::Check;
use crate::run::Changes;
use crate::words::words;

/// One merge as it was checked and accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeInput {
    pub repository: String,
    /// The branch that gets the changes.
    pub into: String,
    /// In the order in which they are merged.
    pub tasks: Vec<TaskId>,
    /// What must pass after each of them. Absent: nothing is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    /// How often each of them goes back to its agent.
    #[serde(default)]
    pub fixes: u32,
}

words! {
    /// Where the changes of one task stand.
    pub enum MergeState {
        Waiting = "waiting",
        /// The check runs on the merged commit.
        Checking = "checking",
        /// Its agent works on a conflict or a failed check.
        SentBack = "sent_back",
        /// The branch has it.
        Merged = "merged",
        Conflict = "conflict",
        CheckFailed = "check_failed",
        /// Its agent or git could not do it.
        Failed = "failed",
    }
}

/// One task of a merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeEntry {
    pub task_id: TaskId,
    pub title: String,
    pub state: MergeState,
    /// Why it is not merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How often it went back.
    #[serde(default)]
    pub sent_back: u32,
    /// Another one is with its agent, and touches the same lines; this one waits for it.
    #[serde(default)]
    pub deferred: bool,
    /// What it had changed when it went back because of a conflict: what its agent leaves must differ from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolves: Option<Changes>,
    /// The task whose changes are taken: the last one that its agent worked in.
    pub from: TaskId,
    /// The merged commit that is checked, or was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The task that checks it, or in which its agent works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<TaskId>,
}

/// Where a merge stands; its checkpoint, and its output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MergeProgress {
    pub branch: String,
    pub repository: String,
    /// The commit that the branch began with.
    pub base: String,
    /// The last commit that passed.
    pub head: String,
    /// The branch is there.
    #[serde(default)]
    pub has_branch: bool,
    /// The command that each merged commit must pass. Absent: nothing is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    pub tasks: Vec<MergeEntry>,
}

impl MergeProgress {
    /// In how many tasks the changes are merged.
    #[must_use]
    pub fn merged(&self) -> usize {
        self.tasks.iter().filter(|entry| entry.state == MergeState::Merged).count()
    }
}

/// The branch as it stands before a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeTarget {
    /// Its commit, or the one it will begin with.
    pub commit: String,
    pub exists: bool,
}

/// Three trees to be merged to a commit.
#[derive(Clone, Debug)]
pub struct MergeOrder<'a> {
    /// The merge that the commit belongs to.
    pub task_id: &'a TaskId,
    /// What is merged already.
    pub tip: &'a str,
    pub changes: &'a Changes,
    /// The run was given a conflict: these changes, merged with the commit that its own count from.
    pub resolves: Option<&'a Changes>,
    pub message: &'a str,
}

/// What came of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeStep {
    Commit(String),
    /// The tip has the changes already.
    Contained,
    /// Files that both have changed.
    Conflict(Vec<String>),
    /// Files in which the run has left the conflict that it was given; none: it changed nothing.
    Unresolved(Vec<String>),
}
