//! Who may run what: each call is allowed, refused, or a person is asked.

use async_trait::async_trait;
use matsu_core::ports::provider::{Danger, ToolSpec};
use serde_json::Value;

/// What is to be done with calls of one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Allow,
    Ask,
    Deny,
}

/// A call that waits for the decision of a person.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCall {
    /// The model that made it.
    pub model: String,
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Granted,
    /// With a word for the model.
    Denied(String),
}

#[async_trait]
pub trait Approver: Send + Sync {
    fn policy(&self, tool: &ToolSpec) -> Policy;

    /// Several may be asked at once. The loop's clock stands still meanwhile.
    async fn ask(&self, call: PendingCall) -> Decision;
}

/// Destructive calls need an approval and all others are allowed. No person can be asked here, so those that need an
/// approval are refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByDanger;

impl ByDanger {
    #[must_use]
    pub fn of(danger: Danger) -> Policy {
        match danger {
            Danger::ReadOnly | Danger::Writes => Policy::Allow,
            Danger::Destructive => Policy::Ask,
        }
    }
}

#[async_trait]
impl Approver for ByDanger {
    fn policy(&self, tool: &ToolSpec) -> Policy {
        Self::of(tool.danger)
    }

    async fn ask(&self, call: PendingCall) -> Decision {
        Decision::Denied(format!("{} needs a person's approval, which cannot be given here", call.name))
    }
}
