//! Why a search stops before it is done, and what that makes of it.

use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::{JobEnd, Retry};
use matsu_core::limits::{GRACE, TICK};
use matsu_core::ports::store::StoreError;

use crate::runtime::ResearchKit;
use crate::runtime::context::{JobContext, TimeOver, count_seconds};
use crate::stop_signal::StopLevel;

/// A body that is ordered to end soon still has this long: a little less than what the engine grants, so that it can
/// write down what it has.
const LAST_MOMENT: Duration = GRACE.saturating_sub(TICK.saturating_mul(4));

/// Something that ends the work on a search.
#[derive(Debug)]
pub enum StopCause {
    /// Nothing of this attempt counts any more.
    LeaseLost,
    /// A pause or a shutdown: go on from the checkpoint another time.
    Stopped,
    /// What it has must do: with the code and the words for why.
    Enough { code: ErrorCode, why: String },
    /// The job's own error. `retry` says whether it may pass.
    Failed { code: ErrorCode, why: String, retry: Retry },
    /// The model of research does not answer. A job that cannot do without it fails.
    ModelUnavailable { code: ErrorCode, why: String, retry: Retry },
    /// Every address that is left must wait.
    NotBefore(Timestamp),
    /// Every address that is left needs a login.
    AwaitingLogin,
}

impl From<StoreError> for StopCause {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LeaseLost(_) => Self::LeaseLost,
            // The store may be back for the next attempt, which goes on from the checkpoint.
            error => Self::Failed { code: error.code(), why: error.to_string(), retry: Retry::IfAllowed },
        }
    }
}

/// What research is done with, or the end of a job in a process that does none.
pub fn kit_of(cx: &JobContext) -> Result<Arc<ResearchKit>, JobEnd> {
    cx.runtime().research().ok_or_else(|| {
        let why = "this process does no research";
        JobEnd::failed_with(ErrorCode::InternalError, why, Retry::IfAllowed, None)
    })
}

/// Does the work of a job of research, until it is done or the job must leave it.
pub async fn until_stopped<T>(
    cx: &JobContext,
    kit: &ResearchKit,
    work: impl Future<Output = Result<T, StopCause>>,
) -> Result<T, StopCause> {
    tokio::select! {
        biased;
        cause = wait_for_stop(cx) => Err(cause),
        done = work => done,
        cause = wait_for_time(cx, kit.settings.search_time_max) => Err(cause),
    }
}

/// Returns when the task's seconds are spent, or the job has had its time.
async fn wait_for_time(cx: &JobContext, time_max: Duration) -> StopCause {
    match count_seconds(cx, time_max).await {
        Ok(TimeOver::Budget) => {
            let why = "the task's time is used up".to_owned();
            StopCause::Enough { code: ErrorCode::BudgetExhausted, why }
        }
        Ok(TimeOver::Job) => {
            let why = format!("it took longer than {} s", time_max.as_secs());
            StopCause::Enough { code: ErrorCode::PipelineTimeout, why }
        }
        Err(error) => error.into(),
    }
}

/// Returns when the body must leave its work, and how.
async fn wait_for_stop(cx: &JobContext) -> StopCause {
    let word = cx.stop.stop_requested().await;
    if word == StopLevel::EndSoon {
        let more = tokio::select! {
            biased;
            word = cx.stop.at_least(StopLevel::Shutdown) => Some(word),
            () = cx.runtime().clock().sleep(LAST_MOMENT) => None,
        };
        if more.is_none() {
            let why = "the task was stopped before the search was done".to_owned();
            return StopCause::Enough { code: ErrorCode::TaskStopped, why };
        }
    }
    StopCause::Stopped
}
