//! The running bodies of one dispatcher. Each is awaited, and dropping the crew ends them.

use std::any::Any;
use std::collections::HashMap;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::task::{Id, JoinError, JoinSet};

use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobEnd, JobKind, Lease, Retry};

use crate::runtime::Runtime;
use crate::runtime::context::{JobContext, Notes, Taken, open_meter};
use crate::stop_signal::StopSender;

use super::ending::BodyEnd;
use crate::runtime::run_clock::RunClock;
use crate::runtime::running::RunningJob;

/// The running bodies of one dispatcher.
#[derive(Default)]
pub struct Crew {
    bodies: JoinSet<JobEnd>,
    leases: HashMap<Id, Lease>,
}

impl Crew {
    /// Starts a claimed job and puts it among the running ones.
    pub fn start(&mut self, runtime: &Runtime, job: Job, taken: Taken) {
        let lease = Lease { job_id: job.id.clone(), attempt: job.attempt };
        let (sender, stop) = StopSender::new();
        let notes = Arc::new(Notes::default());
        let (kind, slot, task_id) = (job.kind, job.slot, job.task_id.clone());
        let body = runtime.bodies().of(kind);
        // A body that panics here would take its dispatcher along, and after that the next one.
        let bound = body.as_ref().map(|body| catch_unwind(AssertUnwindSafe(|| body.run_seconds_max(&job))));
        let clock = RunClock::new(bound.and_then(|bound| bound.ok().flatten()));
        let context = JobContext::new(runtime.clone(), job, lease.clone(), stop, Arc::clone(&notes), taken);
        let task = self.bodies.spawn(async move {
            let Some(body) = body else { return no_body(kind) };
            match open_meter(&context).await {
                Some(end) => end,
                None => body.run(context).await,
            }
        });
        self.leases.insert(task.id(), lease.clone());
        runtime.running().insert(RunningJob { lease, task_id, kind, slot, clock, stop: sender, task, notes });
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// The next body that ends. Waits for ever if none runs. Nothing is lost if this is dropped.
    pub async fn ended(&mut self) -> (Lease, BodyEnd) {
        loop {
            match self.bodies.join_next_with_id().await {
                Some(joined) => {
                    if let Some(ended) = self.settle(joined) {
                        return ended;
                    }
                }
                None => pending().await,
            }
        }
    }

    /// One that has already ended, if there is one.
    pub fn try_ended(&mut self) -> Option<(Lease, BodyEnd)> {
        loop {
            let joined = self.bodies.try_join_next_with_id()?;
            if let Some(ended) = self.settle(joined) {
                return Some(ended);
            }
        }
    }

    fn settle(&mut self, joined: Result<(Id, JobEnd), JoinError>) -> Option<(Lease, BodyEnd)> {
        let (id, end) = match joined {
            Ok((id, end)) => (id, BodyEnd::Returned(end)),
            Err(error) => (error.id(), broken(error)),
        };
        self.leases.remove(&id).map(|lease| (lease, end))
    }
}

fn broken(error: JoinError) -> BodyEnd {
    match error.try_into_panic() {
        Ok(payload) => BodyEnd::Panicked(panic_message(payload.as_ref())),
        Err(_) => BodyEnd::Killed,
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "the job panicked".to_owned())
}

/// Only kinds that have a body are claimed, so this is a defect.
fn no_body(kind: JobKind) -> JobEnd {
    let message = format!("this process cannot run jobs of the kind {kind}");
    JobEnd::failed_with(ErrorCode::InternalError, message, Retry::Never, None)
}
