//! An agent: a named program that works. Its definition says which command line starts it; one without a definition
//! connects by itself.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::AgentId;

#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Agent {
    pub id: AgentId,
    pub name: String,
    pub definition: Option<String>,
    pub system_prompt: Option<String>,
    /// Argon2, in its own string form. The passkey itself is never kept.
    #[serde(skip)]
    pub passkey_hash: String,
    pub created_at: Timestamp,
    /// Position in the list of all agents.
    pub seq: i64,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("id", &self.id).field("definition", &self.definition).finish_non_exhaustive()
    }
}

#[derive(Clone)]
pub struct NewAgent {
    pub id: AgentId,
    pub name: String,
    pub definition: Option<String>,
    pub system_prompt: Option<String>,
    pub passkey_hash: String,
    pub created_at: Timestamp,
}
