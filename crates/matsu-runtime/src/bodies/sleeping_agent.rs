//! An agent's run that only sleeps: for tests of what becomes of such a run, which is never started twice.

use async_trait::async_trait;

use matsu_core::job::{Job, JobEnd, JobKind};

use super::sleep::Sleep;
use crate::body::JobBody;
use crate::context::JobContext;

/// Takes the input of [`Sleep`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SleepingAgent;

#[async_trait]
impl JobBody for SleepingAgent {
    fn kind(&self) -> JobKind {
        JobKind::AgentRun
    }

    fn run_seconds_max(&self, job: &Job) -> Option<u32> {
        Sleep.run_seconds_max(job)
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        Sleep.run(cx).await
    }
}
