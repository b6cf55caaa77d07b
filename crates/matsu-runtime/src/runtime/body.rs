//! What a job does, by kind. Adding a kind is one file in `bodies/` (or wherever it belongs) and one line that
//! registers it.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use matsu_core::job::{Job, JobEnd, JobKind};

use super::context::JobContext;

/// The work of one kind of job. Returns how it ended; a panic is an error of the job's own, never of the worker.
#[async_trait]
pub trait JobBody: Send + Sync {
    fn kind(&self) -> JobKind;

    /// Longer than this, in ticks of this process, and the job is failed with `JOB_TIMEOUT`. `None`: no bound.
    fn run_seconds_max(&self, job: &Job) -> Option<u32>;

    /// Should end soon after `cx.stop` asks for it; [`JobContext::stopped`] says how. May be dropped at any await once
    /// it has been ordered to abort. Must not block its thread: what never awaits cannot be dropped.
    async fn run(&self, cx: JobContext) -> JobEnd;
}

/// The bodies this process has, one per kind.
#[derive(Clone, Default)]
pub struct Bodies {
    by_kind: HashMap<JobKind, Arc<dyn JobBody>>,
}

impl Bodies {
    /// With this body too; it replaces an earlier one of its kind.
    #[must_use]
    pub fn with(mut self, body: impl JobBody + 'static) -> Self {
        self.by_kind.insert(body.kind(), Arc::new(body));
        self
    }

    /// What this process can run.
    #[must_use]
    pub fn kinds(&self) -> Vec<JobKind> {
        let mut kinds: Vec<JobKind> = self.by_kind.keys().copied().collect();
        kinds.sort();
        kinds
    }

    #[must_use]
    pub fn of(&self, kind: JobKind) -> Option<Arc<dyn JobBody>> {
        self.by_kind.get(&kind).cloned()
    }
}
