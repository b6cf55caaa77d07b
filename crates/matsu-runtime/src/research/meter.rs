//! The meter: seconds of a task's budget, set aside before they pass, and the time one job may take.
//!
//! It counts its own ticks, so that neither suspend nor a clock jump adds to them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use matsu_core::budget::BudgetUnit;
use matsu_core::error_code::ErrorCode;
use matsu_core::limits::{BUDGET_CHUNK, TICK};
use matsu_core::ports::store::{Reservation, StoreError};

use crate::runtime::context::JobContext;

use super::halt::Halt;

/// Runs beside the work of a job.
pub struct Meter {
    cx: JobContext,
    time_max: Duration,
    /// Seconds that were set aside, and how many of them have passed.
    open: Mutex<Option<(Reservation, i64)>>,
}

impl Meter {
    pub fn new(cx: &JobContext, time_max: Duration) -> Self {
        Self { cx: cx.clone(), time_max, open: Mutex::new(None) }
    }

    /// Returns only when the job must stop.
    pub async fn run(&self) -> Halt {
        match self.count().await {
            Ok(halt) => halt,
            Err(error) => error.into(),
        }
    }

    async fn count(&self) -> Result<Halt, StoreError> {
        let whole = i64::try_from(BUDGET_CHUNK.as_secs()).unwrap_or(5);
        let ticks_max = self.time_max.as_secs();
        let mut ticks = 0;
        loop {
            // Single seconds at first, so that searches share a small budget instead of the first one taking it all.
            let chunk = if ticks < BUDGET_CHUNK.as_secs() { 1 } else { whole };
            let reserved = match self.cx.set_aside(BudgetUnit::Seconds, chunk).await {
                Ok(reserved) => reserved,
                Err(StoreError::Closed { code: code @ ErrorCode::BudgetExhausted, .. }) => {
                    let why = "the task's time is used up".to_owned();
                    return Ok(Halt::Enough { code, why });
                }
                Err(error) => return Err(error),
            };
            let amount = reserved.amount;
            *self.lock() = Some((reserved, 0));
            for _ in 0..amount {
                self.cx.runtime().clock().sleep(TICK).await;
                if let Some((_, passed)) = &mut *self.lock() {
                    *passed += 1;
                }
                ticks += 1;
                if ticks >= ticks_max {
                    let why = format!("it took longer than {ticks_max} s");
                    return Ok(Halt::Enough { code: ErrorCode::PipelineTimeout, why });
                }
            }
            self.close().await?;
        }
    }

    /// Reports how many of the seconds have passed; the rest returns.
    pub async fn close(&self) -> Result<(), StoreError> {
        let open = self.lock().take();
        match open {
            Some((reserved, passed)) => self.cx.settle(&reserved, passed).await,
            None => Ok(()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Reservation, i64)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
