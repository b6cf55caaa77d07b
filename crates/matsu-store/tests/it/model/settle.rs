//! How a job ends in the model: written out, not borrowed from the core.

use std::time::Duration;

use matsu_core::clock::Timestamp;
use matsu_core::id::NodeId;
use matsu_core::job::end::Retry;
use matsu_core::job::{JobEnd, JobKind, JobState};

use super::operations::End;
use super::world::{Permit, World};

const LATER: Duration = Duration::from_millis(500);

impl End {
    pub fn as_job_end(self, now: Timestamp) -> JobEnd {
        let failed = |retry| JobEnd::Failed {
            code: "PIPELINE_ERROR".to_owned(),
            message: "no luck".to_owned(),
            retry,
            output_json: None,
        };
        match self {
            Self::Completed => JobEnd::Completed { output_json: "{}".to_owned() },
            Self::FailedForGood => failed(Retry::Never),
            Self::FailedForNow => failed(Retry::IfAllowed),
            Self::Cancelled => JobEnd::Cancelled { code: None, output_json: None },
            Self::AwaitingAuth => JobEnd::AwaitingAuth,
            Self::Requeue => JobEnd::Requeue { run_at: None },
            Self::RequeueLater => JobEnd::Requeue { run_at: Some(now.plus(LATER)) },
            Self::OwnerLost => JobEnd::OwnerLost,
            Self::OwnerDied => JobEnd::OwnerDied,
        }
    }
}

impl World {
    /// Ends a held job and returns its state.
    pub fn settle(&mut self, at: usize, end: End, now: Timestamp) -> JobState {
        let stopped = self.jobs[at].task.is_some_and(|task| {
            let task = &self.tasks[task];
            task.stop.is_some() || task.status.is_terminal()
        });
        let job = &mut self.jobs[at];
        let failures = job.failures + 1;
        let may_retry = job.kind == JobKind::Search && failures <= 3;
        let (state, run_at) = match end {
            End::Completed => (JobState::Completed, None),
            End::FailedForNow if may_retry => {
                (JobState::Queued, Some(now.plus(Duration::from_secs(1 << (failures - 1)))))
            }
            End::FailedForGood | End::FailedForNow => (JobState::Failed, None),
            End::Cancelled => (JobState::Cancelled, None),
            End::AwaitingAuth => (JobState::AwaitingAuth, None),
            End::Requeue => (JobState::Queued, Some(now)),
            End::RequeueLater => (JobState::Queued, Some(now.plus(LATER))),
            End::OwnerLost | End::OwnerDied if job.kind == JobKind::AgentRun => (JobState::Failed, None),
            End::OwnerDied if job.is_lone() => (JobState::Failed, None),
            End::OwnerLost | End::OwnerDied => (JobState::Queued, Some(now)),
        };
        let goes_back = matches!(state, JobState::Queued | JobState::AwaitingAuth);
        (job.owner, job.permit) = (None, Permit::None);
        if goes_back && stopped {
            job.state = JobState::Cancelled;
            return job.state;
        }
        if matches!(end, End::FailedForGood | End::FailedForNow) {
            job.failures = failures;
        }
        job.deaths = match end {
            End::OwnerDied if job.kind != JobKind::AgentRun => job.deaths + 1,
            End::Requeue | End::RequeueLater | End::OwnerLost => job.deaths,
            _ => 0,
        };
        job.state = state;
        job.run_at = run_at.unwrap_or(job.run_at);
        state
    }

    /// Takes everything from a node but the runs, which wait to be taken over. Returns the jobs that were settled.
    pub fn reap(&mut self, node: &NodeId, now: Timestamp) -> Vec<usize> {
        let held: Vec<usize> = (0..self.jobs.len())
            .filter(|at| self.jobs[*at].owner.as_ref() == Some(node) && self.jobs[*at].state.is_held())
            .filter(|at| !self.jobs[*at].kind.outlives_owner())
            .collect();
        for at in &held {
            self.jobs[*at].attempt += 1;
            self.settle(*at, End::OwnerDied, now);
        }
        held
    }
}
