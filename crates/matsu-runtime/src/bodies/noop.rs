//! A job that ends at once. It measures the queue and nothing else.

use async_trait::async_trait;

use matsu_core::job::{Job, JobEnd, JobKind};

use crate::runtime::JobBody;
use crate::runtime::context::JobContext;

#[derive(Clone, Copy, Debug, Default)]
pub struct Noop;

#[async_trait]
impl JobBody for Noop {
    fn kind(&self) -> JobKind {
        JobKind::Noop
    }

    fn run_seconds_max(&self, _job: &Job) -> Option<u32> {
        None
    }

    async fn run(&self, _cx: JobContext) -> JobEnd {
        JobEnd::Completed { output_json: "{}".to_owned() }
    }
}
