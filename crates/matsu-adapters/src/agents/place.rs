//! What must be the same when a conversation goes on; stored with it and opaque to everybody else.

use std::path::PathBuf;

use matsu_core::run::Changes;
use matsu_core::usage::Usage;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Place {
    pub directory: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The user's commit that changes are counted from, however often the conversation goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Where the last run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// What the conversation had cost so far, for programs that count from its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Place {
    /// A directory, and nothing that is known about it.
    #[must_use]
    pub fn plain(directory: PathBuf) -> Self {
        Self { directory, worktree: None, branch: None, base: None, head: None, usage: None }
    }

    /// What goes on from here begins where the run ended.
    pub fn ended_with(&mut self, changes: &Changes) {
        self.head = Some(changes.head.clone());
        if !changes.branch.is_empty() {
            self.branch = Some(changes.branch.clone());
        }
    }
}

/// What a run has cost, given what the conversation had cost before and costs now.
pub fn since(before: Option<Usage>, now: Usage) -> Usage {
    let before = before.unwrap_or_default();
    Usage {
        input_tokens: now.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: now.output_tokens.saturating_sub(before.output_tokens),
        cost_usd: now.cost_usd.map(|cost| (cost - before.cost_usd.unwrap_or(0.0)).max(0.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_sees_only_its_own_cost() {
        let of = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, cost_usd: None };
        assert_eq!(since(Some(of(100, 10)), of(150, 30)), of(50, 20));
        assert_eq!(since(None, of(150, 30)), of(150, 30));
    }
}
