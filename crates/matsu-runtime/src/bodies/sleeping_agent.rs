//! An agent's run that only sleeps: for tests of what becomes of such a run, which is never started twice.

use std::sync::Arc;

use async_trait::async_trait;

use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobEnd, JobKind, Retry};
use matsu_core::run::RunInput;

use super::sleep::Sleep;
use crate::runtime::JobBody;
use crate::runtime::context::{JobContext, Taken};

/// Takes the input of [`Sleep`]; what is a real run goes to the real body, if there is one.
#[derive(Clone, Default)]
pub struct SleepingAgent {
    real: Option<Arc<dyn JobBody>>,
}

impl SleepingAgent {
    /// One that also runs agents.
    #[must_use]
    pub fn beside(real: impl JobBody + 'static) -> Self {
        Self { real: Some(Arc::new(real)) }
    }

    fn body_of(&self, job: &Job) -> &dyn JobBody {
        match &self.real {
            Some(real) if serde_json::from_str::<RunInput>(&job.input_json).is_ok() => real.as_ref(),
            _ => &Sleep,
        }
    }
}

#[async_trait]
impl JobBody for SleepingAgent {
    fn kind(&self) -> JobKind {
        JobKind::AgentRun
    }

    fn run_seconds_max(&self, job: &Job) -> Option<u32> {
        self.body_of(job).run_seconds_max(job)
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        let job = Arc::clone(&cx.job);
        let is_real = self.real.is_some() && serde_json::from_str::<RunInput>(&job.input_json).is_ok();
        // It slept inside the process that is gone.
        if cx.taken == Taken::TakenOver && !is_real {
            let (code, message) = (ErrorCode::SupervisorLost.to_string(), "the process that slept is gone".to_owned());
            return JobEnd::Failed { code, message, retry: Retry::Never, output_json: None };
        }
        self.body_of(&job).run(cx).await
    }
}
