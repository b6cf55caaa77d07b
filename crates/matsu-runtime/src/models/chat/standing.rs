//! Approvals that a person gave for good, for one tool in one project.

use std::sync::Arc;

use async_trait::async_trait;
use matsu_core::ports::provider::ToolSpec;

use crate::models::agentic_loop::{Approver, Decision, PendingCall, Policy};

/// Where such approvals are kept.
pub trait StandingApprovals: Send + Sync {
    /// Whether calls of this tool run without a question.
    fn allows(&self, tool: &str) -> bool;

    /// Remembers an approval, or takes it back.
    ///
    /// # Errors
    /// In words: it could not be written.
    fn remember(&self, tool: &str, allow: bool) -> Result<(), String>;

    /// The tools that are allowed.
    fn all(&self) -> Vec<String>;
}

/// Asks nothing about what was approved for good; the rest is decided by another approver.
pub struct WithStanding {
    pub inner: Arc<dyn Approver>,
    pub standing: Arc<dyn StandingApprovals>,
}

#[async_trait]
impl Approver for WithStanding {
    fn policy(&self, tool: &ToolSpec) -> Policy {
        match self.inner.policy(tool) {
            Policy::Ask if self.standing.allows(&tool.name) => Policy::Allow,
            policy => policy,
        }
    }

    async fn ask(&self, call: PendingCall) -> Decision {
        self.inner.ask(call).await
    }
}
