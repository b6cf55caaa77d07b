//! How a body ends, and what that makes of its job.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::error_code::ErrorCode;
use crate::limits::{DEATHS_MAX, DELAY_MAX, ERROR_MESSAGE_CHARS_MAX, RETRY_FIRST, RETRY_MAX};

use super::{JobKind, JobState, Recovery};

/// How a body has ended, as reported by the body itself or by a node on its behalf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd {
    Completed {
        output_json: String,
    },
    /// An error of the job's own. Retried while the kind allows it, if it may pass with time.
    Failed {
        code: String,
        message: String,
        retry: Retry,
        output_json: Option<String>,
    },
    /// It was ordered to stop and did.
    Cancelled {
        code: Option<String>,
        output_json: Option<String>,
    },
    /// It can go no further before a person has logged in somewhere.
    AwaitingAuth,
    /// Not its own fault, and nothing is counted: a clean shutdown, a pause, a quota that returns at `run_at`.
    Requeue {
        run_at: Option<Timestamp>,
    },
    /// It still works, and its owner leaves: nothing is written, and the next owner takes it over.
    StillRuns,
    /// Its owner gave it up without an end of its own: a shutdown, a broken dispatcher. The kind decides.
    OwnerLost,
    /// The process of its owner is gone. The kind decides; and a job that was there each time is suspected.
    OwnerDied,
}

impl JobEnd {
    /// An error that is not retried, without an output.
    #[must_use]
    pub fn failed(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::failed_with(code, message, Retry::Never, None)
    }

    /// An error, with what the job has so far.
    #[must_use]
    pub fn failed_with(code: ErrorCode, message: impl Into<String>, retry: Retry, output_json: Option<String>) -> Self {
        Self::Failed { code: code.to_string(), message: message.into(), retry, output_json }
    }
}

/// Whether an error may pass with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    Never,
    IfAllowed,
}

/// The change that an end makes to the job's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub state: JobState,
    pub output_json: Option<String>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub failures: u32,
    /// Owners that died in a row while this job ran, without a new checkpoint between them.
    pub deaths: u32,
    /// Only for a job that is queued again.
    pub run_at: Option<Timestamp>,
}

impl Settled {
    /// As [`Past::must_run_alone`], for what comes next.
    #[must_use]
    pub fn must_run_alone(&self) -> bool {
        Past { failures: self.failures, deaths: self.deaths }.must_run_alone()
    }
}

/// What is counted of a job's attempts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Past {
    pub failures: u32,
    pub deaths: u32,
}

impl Past {
    /// Whether it may only run with no other job beside it, so that a crash can be attributed to it.
    #[must_use]
    pub fn must_run_alone(self) -> bool {
        self.deaths >= DEATHS_MAX
    }
}

/// Decides what an end makes of a job. Pure: the stores only write it down.
#[must_use]
pub fn settle(kind: JobKind, past: Past, end: &JobEnd, now: Timestamp) -> Settled {
    let failures = past.failures;
    let plain = |state| Settled {
        state,
        output_json: None,
        error_code: None,
        error_message: None,
        failures,
        deaths: 0,
        run_at: None,
    };
    match end {
        JobEnd::Completed { output_json } => {
            Settled { output_json: Some(output_json.clone()), ..plain(JobState::Completed) }
        }
        JobEnd::Failed { code, message, retry, output_json } => {
            let failures = failures.saturating_add(1);
            let error_code = Some(code.clone());
            let error_message = Some(clip(message, ERROR_MESSAGE_CHARS_MAX));
            if *retry == Retry::IfAllowed && failures <= kind.failures_max() {
                let run_at = Some(now.plus(pause_before_retry(failures)));
                Settled { error_code, error_message, failures, run_at, ..plain(JobState::Queued) }
            } else {
                let output_json = output_json.clone();
                Settled { error_code, error_message, failures, output_json, ..plain(JobState::Failed) }
            }
        }
        JobEnd::Cancelled { code, output_json } => {
            Settled { error_code: code.clone(), output_json: output_json.clone(), ..plain(JobState::Cancelled) }
        }
        JobEnd::AwaitingAuth => plain(JobState::AwaitingAuth),
        JobEnd::Requeue { run_at } => {
            let run_at = run_at.unwrap_or(now).min(now.plus(DELAY_MAX));
            Settled { run_at: Some(run_at), deaths: past.deaths, ..plain(JobState::Queued) }
        }
        JobEnd::StillRuns => plain(JobState::Running),
        JobEnd::OwnerDied if kind.runs_inside() && past.must_run_alone() => Settled {
            error_code: Some(ErrorCode::JobKilledItsWorker.as_str().to_owned()),
            error_message: Some(format!(
                "the server process ended {} times while this job ran, the last time with no other job beside it",
                past.deaths.saturating_add(1)
            )),
            deaths: past.deaths.saturating_add(1),
            ..plain(JobState::Failed)
        },
        JobEnd::OwnerLost | JobEnd::OwnerDied => match kind.recovery() {
            Recovery::Requeue => {
                let is_death = *end == JobEnd::OwnerDied && kind.runs_inside();
                let deaths = past.deaths.saturating_add(u32::from(is_death));
                Settled { run_at: Some(now), deaths, ..plain(JobState::Queued) }
            }
            Recovery::Fail => Settled {
                error_code: Some("SERVER_RESTARTED".to_owned()),
                error_message: Some("Server restarted".to_owned()),
                ..plain(JobState::Failed)
            },
        },
    }
}

/// Doubles from the first pause up to the longest.
#[must_use]
pub fn pause_before_retry(failures: u32) -> Duration {
    RETRY_FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(RETRY_MAX)
}

/// At most `chars_max` characters, cut on a character border.
#[must_use]
pub fn clip(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Past = Past { failures: 0, deaths: 0 };
    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn failed(retry: Retry) -> JobEnd {
        JobEnd::Failed { code: "X".to_owned(), message: "broke".to_owned(), retry, output_json: None }
    }

    #[test]
    fn own_errors_are_retried_three_times_and_then_fail() {
        let mut failures = 0;
        let mut states = Vec::new();
        for _ in 0..4 {
            let settled = settle(JobKind::Search, Past { failures, deaths: 0 }, &failed(Retry::IfAllowed), NOW);
            failures = settled.failures;
            states.push((settled.state, settled.run_at.map(|at| at.since(NOW).as_secs())));
        }
        let queued = JobState::Queued;
        assert_eq!(states, [(queued, Some(1)), (queued, Some(2)), (queued, Some(4)), (JobState::Failed, None)]);
    }

    #[test]
    fn agents_and_hopeless_errors_are_not_retried() {
        assert_eq!(settle(JobKind::AgentRun, NEW, &failed(Retry::IfAllowed), NOW).state, JobState::Failed);
        assert_eq!(settle(JobKind::Search, NEW, &failed(Retry::Never), NOW).state, JobState::Failed);
    }

    #[test]
    fn a_lost_owner_is_no_failure_of_the_job() {
        for end in [JobEnd::OwnerLost, JobEnd::OwnerDied] {
            let search = settle(JobKind::Search, Past { failures: 2, deaths: 0 }, &end, NOW);
            assert_eq!((search.state, search.failures), (JobState::Queued, 2));
            let agent = settle(JobKind::AgentRun, NEW, &end, NOW);
            assert_eq!(agent.state, JobState::Failed);
            assert_eq!(agent.error_message.as_deref(), Some("Server restarted"));
        }
    }

    #[test]
    fn a_job_that_was_there_at_every_death_runs_alone_and_then_fails() {
        let mut past = NEW;
        let mut seen = Vec::new();
        for _ in 0..=DEATHS_MAX {
            let settled = settle(JobKind::Search, past, &JobEnd::OwnerDied, NOW);
            past.deaths = settled.deaths;
            seen.push((settled.state, past.must_run_alone()));
        }
        let queued = JobState::Queued;
        assert_eq!(seen, [(queued, false), (queued, false), (queued, true), (JobState::Failed, true)]);
        let killer = settle(JobKind::Search, Past { failures: 0, deaths: 3 }, &JobEnd::OwnerDied, NOW);
        assert_eq!(killer.error_code.as_deref(), Some("JOB_KILLED_ITS_WORKER"));
    }

    #[test]
    fn only_deaths_of_the_process_that_a_job_runs_in_are_counted() {
        let suspected = Past { failures: 0, deaths: 3 };
        for end in [JobEnd::OwnerLost, JobEnd::Requeue { run_at: None }] {
            let settled = settle(JobKind::Search, suspected, &end, NOW);
            assert_eq!(
                (settled.state, settled.deaths),
                (JobState::Queued, 3),
                "{end:?}: nothing is counted or forgiven"
            );
        }
        for end in [failed(Retry::IfAllowed), JobEnd::AwaitingAuth] {
            assert_eq!(settle(JobKind::Search, suspected, &end, NOW).deaths, 0, "{end:?}: it lived to say so");
        }
        let chat = settle(JobKind::AgentChat, suspected, &JobEnd::OwnerDied, NOW);
        assert_eq!((chat.state, chat.deaths), (JobState::Queued, 3), "its program is a process of its own");
    }

    #[test]
    fn every_end_is_a_legal_move_of_a_running_job() {
        let ends = [
            JobEnd::Completed { output_json: "{}".to_owned() },
            failed(Retry::IfAllowed),
            failed(Retry::Never),
            JobEnd::Cancelled { code: None, output_json: None },
            JobEnd::AwaitingAuth,
            JobEnd::Requeue { run_at: None },
            JobEnd::OwnerLost,
            JobEnd::OwnerDied,
        ];
        for kind in JobKind::ALL {
            for end in &ends {
                assert!(JobState::Running.may_become(settle(*kind, NEW, end, NOW).state), "{kind}: {end:?}");
            }
        }
    }

    #[test]
    fn messages_are_clipped_on_a_character_border() {
        assert_eq!(clip("待つ待つ", 3), "待つ待");
        assert_eq!(clip("abc", 3), "abc");
    }

    #[test]
    fn the_pause_never_passes_its_bound() {
        assert_eq!(pause_before_retry(1), RETRY_FIRST);
        assert_eq!(pause_before_retry(u32::MAX), RETRY_MAX);
    }
}
