//! A search: what it was asked, where it stands, what came of it.

use serde::{Deserialize, Serialize};

use crate::job::JobState;
use crate::words::words;

/// Pages a task may read unless it says otherwise.
pub const PAGES_DEFAULT: i64 = 120;
/// Seconds a task's searches may run unless it says otherwise.
pub const SECONDS_DEFAULT: i64 = 1_200;
/// Pages one search reads unless it says otherwise.
pub const PAGES_PER_SEARCH: u32 = 15;

words! {
    /// Where a search stands.
    pub enum SearchStatus {
        Queued = "queued",
        Running = "running",
        /// Enough independent sources.
        Satisfied = "satisfied",
        /// It ended with less than that, or was cut short.
        Partial = "partial",
        /// Further pages said nothing new.
        Exhausted = "exhausted",
        Failed = "failed",
        Cancelled = "cancelled",
        /// Nothing is left to do before a person has logged in somewhere.
        AwaitingAuth = "awaiting_auth",
    }
}

impl SearchStatus {
    /// What a job's state makes of it; a completed one says itself how it ended.
    #[must_use]
    pub fn of(state: JobState, ended_as: Option<Self>) -> Self {
        match state {
            JobState::Queued => Self::Queued,
            JobState::Running | JobState::AwaitingInput => Self::Running,
            JobState::AwaitingAuth => Self::AwaitingAuth,
            JobState::Completed => ended_as.unwrap_or(Self::Partial),
            JobState::Failed => Self::Failed,
            JobState::Cancelled => Self::Cancelled,
        }
    }
}

/// What a research task was asked, beyond its question. Stored as the task's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResearchConfig {
    /// The question in full; the task's title may be cut.
    pub question: String,
    pub priority_domains: Vec<String>,
    pub language: Option<String>,
    pub engines: Vec<String>,
    /// Folders that the engine `local` may look into: what the client gave as its roots.
    pub folders: Vec<String>,
    /// A person started it, in a terminal or on the page: the task ends with its last search, and more searches make it
    /// go on. Without this only `stop_task` ends it.
    pub ends_when_done: bool,
    /// The project folder of the client that asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_in: Option<String>,
}

/// What one search is to do. Stored as the job's input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchInput {
    pub query: String,
    /// None named: the task's, else `local` and those configured.
    pub engines: Vec<String>,
    pub pages_max: Option<u32>,
}

/// What a search has come to so far. Part of its checkpoint, and its output at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchTally {
    pub pages_fetched: u32,
    pub pages_failed: u32,
    /// Pages that were found and not opened.
    pub pages_left: u32,
    pub useful_fragments: u32,
    pub claims: u32,
    /// Passages without claims, because the model's answer about them could not be used.
    pub passages_dropped: u32,
    pub domains: Vec<String>,
    pub has_primary_source: bool,
    /// Engines that answered.
    pub engines: Vec<String>,
    /// Engines that did not, with the reason.
    pub engines_failed: Vec<EngineFailure>,
    pub ended_as: Option<SearchStatus>,
    /// Why it ended short of what was asked, as a code and in words.
    pub error_code: Option<String>,
    pub notes: Vec<String>,
    /// The task was being stopped when it ended, so that its claims were not compared with other sources.
    pub is_unverified: bool,
    /// Notes that were not kept because there were too many.
    pub notes_dropped: u32,
}

/// An engine that gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineFailure {
    pub engine: String,
    pub reason: String,
}

impl SearchTally {
    /// Useful fragments per page; may exceed one.
    #[must_use]
    pub fn harvest_rate(&self) -> f64 {
        if self.pages_fetched == 0 {
            return 0.0;
        }
        let rate = f64::from(self.useful_fragments) / f64::from(self.pages_fetched);
        (rate * 100.0).round() / 100.0
    }

    #[must_use]
    pub fn satisfaction(&self) -> f64 {
        super::satisfaction::satisfaction(self.domains.len(), self.has_primary_source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completed_job_says_itself_how_it_ended() {
        for (state, ended_as, status) in [
            (JobState::Queued, None, "queued"),
            (JobState::AwaitingAuth, None, "awaiting_auth"),
            (JobState::Completed, Some(SearchStatus::Satisfied), "satisfied"),
            (JobState::Completed, Some(SearchStatus::Exhausted), "exhausted"),
            (JobState::Completed, None, "partial"),
            (JobState::Failed, Some(SearchStatus::Satisfied), "failed"),
            (JobState::Cancelled, Some(SearchStatus::Satisfied), "cancelled"),
        ] {
            assert_eq!(SearchStatus::of(state, ended_as).as_str(), status, "{state}");
        }
    }

    #[test]
    fn harvest_is_fragments_per_page() {
        let tally = SearchTally { pages_fetched: 8, useful_fragments: 15, ..SearchTally::default() };
        assert_eq!(tally.harvest_rate(), 1.88);
        assert_eq!(SearchTally::default().harvest_rate(), 0.0);
    }
}
