//! What the runtime needs of the world to run other command lines: which there are, and starting one.
//!
//! A host decides how a program is started, confined and read. What a run means for its task is decided elsewhere.

mod apply;
mod checks;
mod events;
mod order;
mod wish;

use std::path::PathBuf;

use async_trait::async_trait;
use serde::Serialize;

use crate::confinement::Confinement;
use crate::error_code::ErrorCode;
use crate::id::{JobId, RunId};
use crate::job::Lease;
use crate::merge::{MergeOrder, MergeStep, MergeTarget};
use crate::receipt::Consent;
use crate::run::{Changes, KeptWork, Mode, RunInput};
use crate::words::words;

pub use apply::{Applied, ApplyError, Conflict, ConflictKind, conflict_words};
pub use checks::{CheckOrder, Program, StartedCheck};
pub use events::{RunEnd, RunEvent, Verdict};
pub use order::{PromptKind, Resume, RunOrder, RunTrace, TraceState};
pub use wish::{CheckWith, CheckedRun, Places, RefusedParam, RunRefusal, RunWish};

/// The command lines of this machine.
#[async_trait]
pub trait AgentHost: Send + Sync {
    /// Every agent with a readable definition, in the order of their names.
    fn agents(&self) -> Vec<Agent>;

    /// How runs are confined on this machine, whatever their agent.
    fn confinement(&self) -> MachineConfinement;

    /// Definitions that could not be read, by file.
    fn broken(&self) -> Vec<BrokenDefinition>;

    /// Checks a wish against the agent's definition and this machine's rules, and makes it complete. Changes nothing.
    ///
    /// # Errors
    /// What is refused and why, naming the parameter.
    fn check(&self, wish: RunWish) -> Result<CheckedRun, RunRefusal>;

    /// What is known of the program, or what it says itself. Bounded in time; never fails, an absent answer is one.
    async fn probe(&self, agent: &str, depth: ProbeDepth) -> Probe;

    /// Starts a run. A run that outlives its daemon goes on when what is returned is dropped; any other one is ended.
    ///
    /// # Errors
    /// It could not be started; nothing runs.
    async fn start(&self, order: RunOrder) -> Result<Box<dyn LiveRun>, StartError>;

    /// Starts the check of what a run has left.
    ///
    /// # Errors
    /// It could not be started; nothing runs.
    async fn start_check(&self, order: CheckOrder) -> Result<StartedCheck, StartError>;

    /// Follows a check that was started earlier, from the beginning of its output.
    ///
    /// # Errors
    /// Nothing is left of it that could be followed.
    async fn adopt_check(&self, lease: &Lease, run: &RunId) -> Result<StartedCheck, StartError>;

    /// Whether a person has allowed this file of a repository, as it is.
    fn is_allowed(&self, consent: &Consent) -> bool;

    /// What this machine has of the last run of a job.
    fn trace(&self, job: &JobId) -> Option<RunTrace>;

    /// Follows a run that was started earlier, from a position of its output on.
    ///
    /// # Errors
    /// Nothing is left of it that could be followed.
    async fn adopt(&self, lease: &Lease, run: &RunId, stored: u64) -> Result<Box<dyn LiveRun>, StartError>;

    /// Jobs whose runs have left something on this machine.
    fn jobs_with_runs(&self) -> Vec<JobId>;

    /// Ends what still works for a job and removes what its runs have left. Their results are stored by now.
    async fn forget(&self, job: &JobId);

    /// Ends runs whose job is over or goes on elsewhere, keeps their work as their branch, and removes the rest. With
    /// `before` only those that an earlier attempt has started. Returns what is left of the newest one that wrote.
    async fn give_up(&self, job: &JobId, before: Option<i64>) -> Option<KeptWork>;

    /// Ends what is left of a run that cannot be followed any more.
    async fn end_processes(&self, run: &RunId);

    /// Whether a run that was begun on another machine may begin again here.
    fn can_take(&self, input: &RunInput) -> bool;

    /// Takes back what a process had written into a user's tree that was killed before it had written everything.
    async fn recover(&self);

    /// The patch of a run in a worktree. Bytes: files need not be text.
    ///
    /// # Errors
    /// The branch or its repository is gone.
    async fn diff(&self, changes: &Changes) -> Result<Vec<u8>, String>;

    /// Merges the changes of a run into the tree it was branched from, and removes its branch. With `keep_conflicts`
    /// files that both have changed are written with conflict markers; without it nothing is written then.
    ///
    /// # Errors
    /// Why not; nothing was written.
    async fn apply(&self, job: &JobId, changes: &Changes, keep_conflicts: bool) -> Result<Applied, ApplyError>;

    /// Applies that have not ended, each in words: they are under way, or were interrupted and are not taken back yet.
    fn unfinished_applies(&self) -> Vec<String>;

    /// Takes back what [`AgentHost::apply`] wrote, keeps what the user has changed since, and restores the branch.
    ///
    /// # Errors
    /// Why not; nothing was written.
    async fn undo_apply(&self, job: &JobId, changes: &Changes) -> Result<(), ApplyError>;

    /// The branch that a merge goes into. Absent ones will begin at the user's last commit.
    ///
    /// # Errors
    /// It cannot be the name of a branch, is checked out, or the repository has no commit.
    async fn merge_target(&self, repository: &str, branch: &str) -> Result<MergeTarget, String>;

    /// Files of a run with conflict markers that were not in the base.
    ///
    /// # Errors
    /// The commits are gone, or git failed.
    async fn conflicts_left(&self, changes: &Changes) -> Result<Vec<String>, String>;

    /// Merges the changes of a run with what is merged already, in the user's repository but in none of its trees.
    ///
    /// # Errors
    /// The commits are gone, or git failed.
    async fn merge(&self, order: MergeOrder<'_>) -> Result<MergeStep, String>;

    /// Moves a branch that is checked out nowhere. `from`: where it must stand; absent: it must not exist. One that
    /// stands at `to` already is left as it is.
    ///
    /// # Errors
    /// It was moved or checked out meanwhile.
    async fn move_branch(&self, repository: &str, branch: &str, from: Option<&str>, to: &str) -> Result<(), String>;

    /// Removes the branch of a run. Returns the reference of ours that still has its commits; `None`: it was removed.
    ///
    /// # Errors
    /// The branch was moved, is checked out, or its repository is gone.
    async fn discard(&self, changes: &Changes) -> Result<Option<String>, String>;
}

/// How a machine confines runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineConfinement {
    /// The level of runs in every mode but `full`.
    ///
    /// # Errors
    /// Why there is none, and the setting that allows runs without one.
    pub level: Result<Confinement, String>,
    /// What that does not cover, in plain words.
    pub not_covered: Vec<String>,
    /// Why a stronger level cannot be had here.
    pub weaker_because: Option<String>,
}

/// An agent as its definition describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Agent {
    pub name: String,
    pub command: String,
    /// The mode of a run that names none.
    pub mode: Mode,
    /// The modes that are allowed here, safest first.
    pub modes: Vec<Mode>,
    /// How its runs are confined in that mode. Absent: they cannot be, and none is started.
    pub confinement: Option<Confinement>,
    /// Why they cannot be, and the setting that allows them without.
    pub confinement_error: Option<String>,
    /// What that does not cover, in plain words.
    pub not_covered: Vec<String>,
    pub login: Login,
    pub supports: Supports,
    /// How often an error that may pass with time is tried again.
    #[serde(skip)]
    pub retries: u32,
    /// What becomes of a run whose machine was restarted.
    #[serde(skip)]
    pub on_machine_restart: OnRestart,
    /// A run whose machine stays away begins again on another one.
    #[serde(skip)]
    pub relocatable: bool,
    /// How a session's messages reach it.
    #[serde(skip)]
    pub delivery: Delivery,
    /// What a run of it may do here, and what is expected of it.
    #[serde(skip)]
    pub connect_back: ConnectBack,
}

/// What a run's own session is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectBack {
    /// Its program gets the address. One that does not may still find it.
    pub is_enabled: bool,
    /// Toolsets and tools beyond `sessions`.
    pub grants: String,
    pub report: ReportRule,
}

words! {
    /// Whether a run says itself how its task went.
    pub enum ReportRule {
        /// If it does, that decides; else its program's own end.
        Optional = "optional",
        /// A run that ends without a report has failed.
        Required = "required",
    }
}

words! {
    /// What becomes of a run whose machine was restarted.
    pub enum OnRestart {
        /// Its conversation is resumed, where that is possible and no process of it can be left.
        Resume = "resume",
        /// It fails with what it had.
        Fail = "fail",
    }
}

words! {
    /// How messages of a chat reach an agent.
    pub enum Delivery {
        /// A new message starts the program again, in the same conversation.
        Resume = "resume",
        /// The program itself waits for the next message.
        Wait = "wait",
    }
}

/// Which login a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Login {
    /// The one the user has made with the program itself.
    User,
    /// A key from the environment, with a private configuration of the program.
    Key,
    /// It needs none, or its definition says nothing about it.
    None,
}

/// What can be asked of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Supports {
    pub resume: bool,
    pub system_prompt: bool,
    pub stream: bool,
    pub input: bool,
    pub model: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BrokenDefinition {
    pub file: String,
    pub error: String,
}

/// How far a probe goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeDepth {
    /// Only what is known already; nothing is started.
    Known,
    /// The program may be asked for its version.
    Version,
    /// And whether it is logged in.
    Login,
}

/// What a program says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Probe {
    pub installed: bool,
    pub version: Option<String>,
    /// `None`: not asked, or the program cannot tell without a model call.
    pub authenticated: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StartError {
    pub code: ErrorCode,
    pub message: String,
}

/// A run under way.
#[async_trait]
pub trait LiveRun: Send {
    /// What happens next. Nothing is lost if this is dropped. After `Ended` it must not be called again.
    async fn next(&mut self) -> RunEvent;

    /// Ends every process of the run, kindly at first. `Ended` follows. Repeating it changes nothing.
    fn end(&mut self);

    /// Passes an answer to the program.
    async fn answer(&mut self, answer: &crate::run::Answer);

    /// Where the run is, for the daemon that resumes it.
    fn place(&self) -> Option<String>;

    /// Where the program works. In a tree of its own that is not the directory that was asked for.
    fn directory(&self) -> Option<PathBuf>;

    /// The position in the program's output up to which every event was returned by [`LiveRun::next`].
    fn position(&self) -> u64 {
        0
    }

    /// Everything up to this position is stored; it need not be kept any longer.
    fn stored(&mut self, _position: u64) {}

    /// Whether a person is asked: the program's time stands still then, also while no daemon counts it.
    fn set_parked(&mut self, _is_parked: bool) {}

    /// How long the program had run when it was adopted.
    fn ran_seconds(&self) -> u32 {
        0
    }
}
