//! Modes, checks and budgets as callers name them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::job::Priority;
use matsu_core::limits::CHECK_SECONDS;
use matsu_core::ports::agent::CheckWith;
use matsu_core::receipt::{Check, CheckCommand};
use matsu_core::run::{Isolation, Mode};
use matsu_core::usage::UsageLimit;

use crate::tool::ToolError;

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModeWord {
    ReadOnly,
    WorkspaceWrite,
    Full,
}

impl From<ModeWord> for Mode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::ReadOnly => Self::ReadOnly,
            ModeWord::WorkspaceWrite => Self::WorkspaceWrite,
            ModeWord::Full => Self::Full,
        }
    }
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IsolationWord {
    None,
    Worktree,
}

impl From<IsolationWord> for Isolation {
    fn from(word: IsolationWord) -> Self {
        match word {
            IsolationWord::None => Self::None,
            IsolationWord::Worktree => Self::Worktree,
        }
    }
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PriorityWord {
    High,
    Medium,
    Low,
}

impl PriorityWord {
    /// The priority of work whose caller may leave it out.
    pub fn or_medium(word: Option<Self>) -> Priority {
        match word {
            Some(Self::High) => Priority::High,
            Some(Self::Medium) | None => Priority::Medium,
            Some(Self::Low) => Priority::Low,
        }
    }
}

/// The check as a caller names it.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CheckWish {
    Line(String),
    Words(Vec<String>),
    Full(FullCheck),
}

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FullCheck {
    /// Without it: the check of the repository's .matsu.toml.
    command: Option<String>,
    /// Seconds (default 1800).
    timeout: Option<u32>,
    network: Option<bool>,
}

impl CheckWish {
    /// The check that is named, and how it is run if none is.
    ///
    /// # Errors
    /// It says nothing at all.
    pub fn read(wish: Option<Self>) -> Result<(Option<Check>, CheckWith), ToolError> {
        let (command, timeout_seconds, network) = match wish {
            None => return Ok((None, CheckWith::default())),
            Some(Self::Line(line)) => (Some(CheckCommand::Line(line)), None, None),
            Some(Self::Words(words)) => (Some(CheckCommand::Words(words)), None, None),
            Some(Self::Full(full)) => (full.command.map(CheckCommand::Line), full.timeout, full.network),
        };
        if (&command, timeout_seconds, network) == (&None, None, None) {
            let message = "check is empty; give check.command, or leave check out to use that of .matsu.toml";
            return Err(ToolError::param("check", "a command", "{}", message));
        }
        let of = |command| Check {
            command,
            timeout_seconds: timeout_seconds.unwrap_or(CHECK_SECONDS),
            network: network.unwrap_or(false),
            protect: Vec::new(),
        };
        Ok((command.map(of), CheckWith { timeout_seconds, network }))
    }
}

/// What a task may cost, as a caller names it.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetWish {
    /// Input and output together.
    #[schemars(range(min = 1))]
    tokens: Option<u64>,
    /// Dollars.
    cost: Option<f64>,
}

impl From<BudgetWish> for UsageLimit {
    fn from(wish: BudgetWish) -> Self {
        Self { tokens: wish.tokens, cost_usd: wish.cost }
    }
}
