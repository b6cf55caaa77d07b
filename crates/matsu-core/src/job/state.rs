//! The states of a job and which of them may follow each other.

use crate::words::words;

words! {
    /// Where a job stands.
    pub enum JobState {
        Queued = "queued",
        Running = "running",
        /// The body ended and freed its permit; a person must log in somewhere before it can go on.
        AwaitingAuth = "awaiting_auth",
        /// The process lives, its permit is free and its clock stopped; it asked a question.
        AwaitingInput = "awaiting_input",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl JobState {
    /// A live worker holds it, and its lease may still write.
    #[must_use]
    pub fn is_held(self) -> bool {
        matches!(self, Self::Running | Self::AwaitingInput)
    }

    #[must_use]
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The one table of legal moves.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        use JobState::{AwaitingAuth, AwaitingInput, Cancelled, Completed, Failed, Queued, Running};
        match self {
            Queued => matches!(next, Running | Cancelled),
            Running => matches!(next, Completed | Failed | Cancelled | AwaitingAuth | AwaitingInput | Queued),
            AwaitingAuth => matches!(next, Queued | Cancelled | Failed),
            AwaitingInput => matches!(next, Running | Queued | Completed | Failed | Cancelled),
            Completed | Failed | Cancelled => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_states_are_final_and_every_other_can_be_cancelled() {
        for from in JobState::ALL {
            for to in JobState::ALL {
                if from.is_finished() {
                    assert!(!from.may_become(*to), "{from} -> {to}");
                }
            }
            assert_eq!(from.may_become(JobState::Cancelled), !from.is_finished(), "{from}");
        }
    }

    #[test]
    fn only_a_queued_job_or_an_answered_one_starts_running() {
        let sources: Vec<_> = JobState::ALL.iter().filter(|from| from.may_become(JobState::Running)).collect();
        assert_eq!(sources, [&JobState::Queued, &JobState::AwaitingInput]);
    }
}
