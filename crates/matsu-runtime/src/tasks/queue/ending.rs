//! What the end of a body means for its job, given the orders that the body had. Pure.

use matsu_core::error_code::ErrorCode;
use matsu_core::job::{JobEnd, JobKind, Retry};
use matsu_core::limits::JOB_OUTPUT_BYTES_MAX;

use crate::runtime::context::budget_spent;
use crate::runtime::run_clock::Cause;

/// How a body's task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    Returned(JobEnd),
    Panicked(String),
    /// It was dropped in mid-work.
    Killed,
}

/// The end to be written down. `partial` is what the body had produced so far, and is kept wherever it has nothing
/// better.
#[must_use]
pub fn final_end(kind: JobKind, cause: Option<Cause>, ended: BodyEnd, partial: Option<String>) -> JobEnd {
    bounded(match ended {
        BodyEnd::Killed => stopped(kind, cause.unwrap_or(Cause::Shutdown), partial),
        BodyEnd::Panicked(message) => JobEnd::failed_with(ErrorCode::JobPanicked, message, Retry::IfAllowed, partial),
        BodyEnd::Returned(end) => returned(kind, cause, end, partial),
    })
}

fn returned(kind: JobKind, cause: Option<Cause>, end: JobEnd, partial: Option<String>) -> JobEnd {
    match (cause, end) {
        // Whatever its orders were, it has a result.
        (_, end @ JobEnd::Completed { .. }) => end,
        (Some(cause @ (Cause::Timeout { .. } | Cause::Budget)), JobEnd::Failed { output_json, .. }) => {
            stopped(kind, cause, output_json.or(partial))
        }
        // It was ordered to stop and did: the cause of the order decides.
        (Some(cause), JobEnd::Cancelled { code: None, output_json }) => stopped(kind, cause, output_json.or(partial)),
        (Some(cause), JobEnd::Requeue { run_at: None }) => stopped(kind, cause, partial),
        (_, JobEnd::Failed { code, message, retry, output_json }) => {
            JobEnd::Failed { code, message, retry, output_json: output_json.or(partial) }
        }
        (_, JobEnd::Cancelled { code, output_json }) => {
            JobEnd::Cancelled { code, output_json: output_json.or(partial) }
        }
        (
            _,
            end @ (JobEnd::AwaitingAuth
            | JobEnd::Requeue { .. }
            | JobEnd::StillRuns
            | JobEnd::OwnerLost
            | JobEnd::OwnerDied),
        ) => end,
    }
}

fn stopped(kind: JobKind, cause: Cause, output_json: Option<String>) -> JobEnd {
    match cause {
        Cause::Stop => JobEnd::Cancelled { code: None, output_json },
        // Its vendor's session is resumed by a new job, not by running this one again.
        Cause::Pause if kind == JobKind::AgentRun => {
            JobEnd::Cancelled { code: Some(ErrorCode::TaskPaused.to_string()), output_json }
        }
        Cause::Pause => JobEnd::Requeue { run_at: None },
        Cause::Timeout { seconds_max } => {
            let message = format!("timeout: the job ran longer than its limit of {seconds_max} s");
            JobEnd::failed_with(ErrorCode::JobTimeout, message, Retry::Never, output_json)
        }
        Cause::Budget => budget_spent(output_json),
        // The next owner takes it over.
        Cause::Shutdown | Cause::LeaseLost if kind.outlives_owner() => JobEnd::StillRuns,
        // The kind decides, as it does for an owner that crashed; nothing is counted against the job. A lease that is
        // really lost refuses this, one that only seemed so gives its job back.
        Cause::Shutdown | Cause::LeaseLost => JobEnd::OwnerLost,
    }
}

/// An output that cannot be stored must not keep its job from ending.
fn bounded(end: JobEnd) -> JobEnd {
    let output = match &end {
        JobEnd::Completed { output_json } => Some(output_json),
        JobEnd::Failed { output_json, .. } | JobEnd::Cancelled { output_json, .. } => output_json.as_ref(),
        JobEnd::AwaitingAuth | JobEnd::Requeue { .. } | JobEnd::StillRuns | JobEnd::OwnerLost | JobEnd::OwnerDied => {
            None
        }
    };
    match output.map(String::len) {
        Some(bytes) if bytes > JOB_OUTPUT_BYTES_MAX => {
            let message = format!("the output of {bytes} bytes is larger than {JOB_OUTPUT_BYTES_MAX}");
            JobEnd::failed_with(ErrorCode::LimitExceeded, message, Retry::Never, None)
        }
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done() -> JobEnd {
        JobEnd::Completed { output_json: "{}".to_owned() }
    }

    fn cancelled(code: Option<ErrorCode>) -> JobEnd {
        JobEnd::Cancelled { code: code.map(|code| code.to_string()), output_json: Some("half".to_owned()) }
    }

    fn timeout() -> JobEnd {
        let message = "timeout: the job ran longer than its limit of 60 s".to_owned();
        JobEnd::failed_with(ErrorCode::JobTimeout, message, Retry::Never, Some("half".to_owned()))
    }

    #[test]
    fn the_cause_decides_what_a_stop_means() {
        use BodyEnd::{Killed, Panicked, Returned};
        let stop = || Returned(JobEnd::Cancelled { code: None, output_json: None });
        let requeue = || JobEnd::Requeue { run_at: None };
        let panicked =
            || JobEnd::failed_with(ErrorCode::JobPanicked, "oh".to_owned(), Retry::IfAllowed, Some("half".to_owned()));
        let table = [
            (JobKind::Search, None, Returned(done()), done()),
            (JobKind::Search, Some(Cause::Timeout { seconds_max: 60 }), Returned(done()), done()),
            (JobKind::Search, Some(Cause::Stop), Returned(done()), done()),
            (JobKind::Search, None, stop(), cancelled(None)),
            (JobKind::Search, Some(Cause::Stop), stop(), cancelled(None)),
            (JobKind::Search, Some(Cause::Stop), Killed, cancelled(None)),
            (JobKind::Search, Some(Cause::Pause), stop(), requeue()),
            (JobKind::Search, Some(Cause::Pause), Killed, requeue()),
            (JobKind::AgentRun, Some(Cause::Pause), Returned(requeue()), cancelled(Some(ErrorCode::TaskPaused))),
            (JobKind::AgentRun, Some(Cause::Pause), Killed, cancelled(Some(ErrorCode::TaskPaused))),
            (JobKind::Search, Some(Cause::Timeout { seconds_max: 60 }), stop(), timeout()),
            (JobKind::Search, Some(Cause::Timeout { seconds_max: 60 }), Killed, timeout()),
            (JobKind::Search, Some(Cause::Shutdown), Returned(requeue()), JobEnd::OwnerLost),
            (JobKind::AgentRun, Some(Cause::Shutdown), Killed, JobEnd::StillRuns),
            (JobKind::AgentRun, Some(Cause::Shutdown), Returned(requeue()), JobEnd::StillRuns),
            (JobKind::AgentRun, Some(Cause::Shutdown), Returned(done()), done()),
            (JobKind::Search, None, Killed, JobEnd::OwnerLost),
            (JobKind::Search, Some(Cause::LeaseLost), Killed, JobEnd::OwnerLost),
            (JobKind::Search, Some(Cause::Budget), Returned(done()), done()),
            (JobKind::Search, Some(Cause::Budget), stop(), budget_spent(Some("half".to_owned()))),
            (JobKind::AgentRun, Some(Cause::Budget), Killed, budget_spent(Some("half".to_owned()))),
            (JobKind::Search, None, Panicked("oh".to_owned()), panicked()),
            (JobKind::Search, None, Returned(JobEnd::AwaitingAuth), JobEnd::AwaitingAuth),
        ];
        for (kind, cause, ended, end) in table {
            let what = format!("{kind}, {cause:?}, {ended:?}");
            assert_eq!(final_end(kind, cause, ended, Some("half".to_owned())), end, "{what}");
        }
    }

    #[test]
    fn an_output_beyond_the_bound_fails_the_job() {
        let output_json = "x".repeat(JOB_OUTPUT_BYTES_MAX + 1);
        let end = final_end(JobKind::Search, None, BodyEnd::Returned(JobEnd::Completed { output_json }), None);
        assert!(matches!(end, JobEnd::Failed { code, output_json: None, .. } if code == "LIMIT_EXCEEDED"));
    }
}
