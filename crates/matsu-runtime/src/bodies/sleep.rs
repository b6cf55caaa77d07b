//! A job that sleeps as its input says, and can misbehave in every way a body can. For tests and benches.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobEnd, JobKind, Retry};

use crate::runtime::JobBody;
use crate::runtime::context::JobContext;
use crate::stop_signal::StopLevel;

#[derive(Clone, Copy, Debug, Default)]
pub struct Sleep;

/// The input of a sleeping job.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SleepInput {
    /// How long it sleeps.
    #[serde(default)]
    pub ms: u64,
    /// Fails with this message after its sleep, on every attempt whose number is at most `fail_attempts`.
    pub fail: Option<String>,
    /// Absent: every attempt fails.
    pub fail_attempts: Option<i64>,
    /// Panics after its sleep.
    #[serde(default)]
    pub panic: bool,
    /// Sleeps on whatever the order.
    #[serde(default)]
    pub ignore_stop: bool,
    /// Reports progress this often, and leaves a partial output.
    pub progress_every_ms: Option<u64>,
    /// Longer than this and it is timed out.
    pub run_seconds_max: Option<u32>,
    /// Writes into its output when it ended, in nanoseconds since 1970.
    #[serde(default)]
    pub stamp: bool,
}

#[async_trait]
impl JobBody for Sleep {
    fn kind(&self) -> JobKind {
        JobKind::Sleep
    }

    fn run_seconds_max(&self, job: &Job) -> Option<u32> {
        serde_json::from_str::<SleepInput>(&job.input_json).ok()?.run_seconds_max
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        let input: SleepInput = match serde_json::from_str(&cx.job.input_json) {
            Ok(input) => input,
            Err(error) => return JobEnd::failed(ErrorCode::InvalidParams, error.to_string()),
        };
        tokio::select! {
           biased;
            _ = cx.stop.stop_requested(), if !input.ignore_stop => return cx.stopped(),
            () = sleep(&cx, &input) => {}
        }
        if input.panic {
            // A panic that is asked for: it shows that one body's panic is that body's alone.
            std::panic::panic_any("the input asked for a panic");
        }
        match input.fail {
            Some(message) if input.fail_attempts.is_none_or(|attempts| cx.job.attempt <= attempts) => {
                JobEnd::failed_with(ErrorCode::InternalError, message, Retry::IfAllowed, None)
            }
            _ if input.stamp => {
                let ended_ns = cx.runtime().clock().nanos();
                JobEnd::Completed { output_json: json!({ "ended_ns": ended_ns }).to_string() }
            }
            _ => JobEnd::Completed { output_json: json!({ "slept_ms": input.ms }).to_string() },
        }
    }
}

async fn sleep(cx: &JobContext, input: &SleepInput) {
    let clock = *cx.runtime().clock();
    let until = clock.instant() + Duration::from_millis(input.ms);
    let Some(every_ms) = input.progress_every_ms else { return clock.sleep_until(until).await };
    let mut slept_ms = 0;
    while slept_ms < input.ms && cx.stop.level() < StopLevel::Abort {
        clock.sleep(Duration::from_millis(every_ms.clamp(1, input.ms - slept_ms))).await;
        slept_ms += every_ms.max(1);
        let so_far = json!({ "slept_ms": slept_ms.min(input.ms) });
        cx.progress_value(&so_far).await;
        if cx.partial_output(&so_far).await.is_err() {
            return;
        }
    }
}
