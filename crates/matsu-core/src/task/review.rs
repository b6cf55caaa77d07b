//! What a person has decided about the changes of a run.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{JobId, TaskId};
use crate::words::words;

words! {
    /// The decision.
    pub enum ReviewState {
        /// The changes were written into the user's tree.
        Applied = "applied",
        /// The branch was removed.
        Discarded = "discarded",
        /// A comment went back to the agent, which works on in another task.
        SentBack = "sent_back",
    }
}

/// One decision. A later one about the same run replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub job_id: JobId,
    pub agent: String,
    pub state: ReviewState,
    pub at: Timestamp,
    /// The task in which the agent works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_task: Option<TaskId>,
}
