//! The seconds that a task may run, over all its workers, as one body spends them.
//!
//! Seconds are set aside a few at a time before they are spent, counted in ticks of this process, and what a body did
//! not spend returns when it ends. So all bodies together never run longer than the task may, and no wall clock is
//! compared.
//!
//! Of most kinds of jobs the runtime counts, and orders the body to end. There a store that is away refuses nothing: the
//! body goes on, and what it spent is set aside afterwards. The jobs of research count their own ([`count_seconds`]),
//! because they end with what they have.

use std::collections::VecDeque;
use std::time::Duration;

use matsu_core::budget::BudgetUnit;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::{JobEnd, Lease, Retry};
use matsu_core::limits::{SECONDS_SET_ASIDE, TICK};
use matsu_core::ports::store::{ReadBudget, Reservation, Reserve, Settle, StoreError};

use crate::runtime::Runtime;

use super::{JobContext, Notes};

/// With no more than this left, more is asked for; if there is no more, the body is ordered to come to its end.
const LOW: i64 = 2;

#[derive(Debug)]
pub struct Meter {
    counted_by: CountedBy,
    /// Not settled yet, oldest first.
    set_aside: VecDeque<Reservation>,
    /// Of what is set aside.
    used: i64,
    /// The last wish for more was refused.
    is_dry: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CountedBy {
    Runtime,
    Body,
}

/// What a tick makes of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spend {
    Enough,
    /// The last seconds.
    Low,
    /// All is spent.
    Over,
}

impl Meter {
    fn new(counted_by: CountedBy) -> Self {
        Self { counted_by, set_aside: VecDeque::new(), used: 0, is_dry: false }
    }

    pub(super) fn is_counted_by_runtime(&self) -> bool {
        self.counted_by == CountedBy::Runtime
    }

    fn left(&self) -> i64 {
        self.set_aside.iter().map(|reservation| reservation.amount).sum::<i64>() - self.used
    }

    /// One second was spent.
    pub fn tick(&mut self) -> Spend {
        self.used += 1;
        match self.left() {
            left if left <= 0 && self.is_dry => Spend::Over,
            left if left <= LOW && self.is_dry => Spend::Low,
            _ => Spend::Enough,
        }
    }

    fn add(&mut self, reservation: Reservation) {
        self.set_aside.push_back(reservation);
        self.is_dry = false;
    }

    /// The oldest reservation, if it is wholly spent.
    fn take_spent(&mut self) -> Option<Reservation> {
        let oldest = self.set_aside.front()?;
        if oldest.amount > self.used {
            return None;
        }
        self.used -= oldest.amount;
        self.set_aside.pop_front()
    }
}

/// Before a body begins. `Some`: its task has no second left, and this is its end.
pub(crate) async fn open(cx: &JobContext) -> Option<JobEnd> {
    let task_id = cx.job.task_id.as_ref().filter(|_| cx.job.kind.is_metered())?;
    let has_limit = match cx.runtime.store().run(ReadBudget(task_id.clone())).await {
        Ok(lines) => lines.iter().any(|line| line.unit == BudgetUnit::Seconds),
        Err(_) => true,
    };
    if !has_limit {
        return None;
    }
    cx.notes.with_meter(|meter| *meter = Some(Meter::new(CountedBy::Runtime)));
    fill(&cx.runtime, &cx.lease, &cx.notes).await;
    let is_dry = cx.notes.with_meter(|meter| meter.as_ref().is_some_and(|meter| meter.is_dry));
    is_dry.then(|| budget_spent(None))
}

/// Sets more aside where little is left, and settles what is spent.
pub(crate) async fn fill(runtime: &Runtime, lease: &Lease, notes: &Notes) {
    let is_low = notes.with_meter(|meter| meter.as_ref().is_some_and(|meter| meter.left() <= LOW));
    if !is_low {
        return;
    }
    // One that is away is asked again at the next look.
    let _is_away = ask_for_more(runtime, lease, notes, SECONDS_SET_ASIDE.into()).await;
    settle_spent(runtime, lease, notes).await;
}

async fn ask_for_more(runtime: &Runtime, lease: &Lease, notes: &Notes, amount: i64) -> Result<(), StoreError> {
    let wish = Reserve { lease: lease.clone(), unit: BudgetUnit::Seconds, amount };
    let granted = match runtime.store().run(wish).await {
        Ok(reservation) => Some(reservation),
        Err(StoreError::Closed { code: ErrorCode::BudgetExhausted, .. }) => None,
        Err(error) => return Err(error),
    };
    notes.with_meter(|meter| match (meter, granted) {
        (Some(meter), Some(reservation)) => meter.add(reservation),
        (Some(meter), None) => meter.is_dry = true,
        (None, _) => {}
    });
    Ok(())
}

async fn settle_spent(runtime: &Runtime, lease: &Lease, notes: &Notes) {
    while let Some(spent) = notes.with_meter(|meter| meter.as_mut().and_then(Meter::take_spent)) {
        settle(runtime, lease, &spent, spent.amount).await;
    }
}

/// Why a body that counts its own seconds must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOver {
    /// Its task has no second left.
    Budget,
    /// It has run for as long as one job may.
    Job,
}

/// Counts the seconds of a body beside its work. Returns only when the body must end.
///
/// # Errors
/// The store's: without it no second can be set aside.
pub async fn count_seconds(cx: &JobContext, time_max: Duration) -> Result<TimeOver, StoreError> {
    cx.notes.with_meter(|meter| *meter = Some(Meter::new(CountedBy::Body)));
    let whole = i64::from(SECONDS_SET_ASIDE);
    let ticks_max = i64::try_from(time_max.as_secs()).unwrap_or(i64::MAX);
    let mut ticks = 0;
    loop {
        // Single seconds at first, so that searches share a small budget instead of the first one taking it all.
        ask_for_more(&cx.runtime, &cx.lease, &cx.notes, if ticks < whole { 1 } else { whole }).await?;
        let left = cx.notes.with_meter(|meter| meter.as_ref().map_or(0, Meter::left));
        if left <= 0 {
            return Ok(TimeOver::Budget);
        }
        for _ in 0..left {
            cx.runtime.clock().sleep(TICK).await;
            cx.notes.with_meter(|meter| meter.as_mut().map(Meter::tick));
            ticks += 1;
            if ticks >= ticks_max {
                return Ok(TimeOver::Job);
            }
        }
        settle_spent(&cx.runtime, &cx.lease, &cx.notes).await;
    }
}

/// The body has ended: what it spent stays spent, the rest returns.
pub(crate) async fn close(runtime: &Runtime, lease: &Lease, notes: &Notes) {
    let Some(mut meter) = notes.with_meter(Option::take) else { return };
    for reservation in std::mem::take(&mut meter.set_aside) {
        let spent = reservation.amount.min(meter.used);
        meter.used -= spent;
        settle(runtime, lease, &reservation, spent).await;
    }
}

async fn settle(runtime: &Runtime, lease: &Lease, reservation: &Reservation, spent: i64) {
    if let Err(error) =
        runtime.store().run(Settle { lease: lease.clone(), reservation: reservation.clone(), spent }).await
    {
        // It returns with the end of the job, and counts as not spent.
        tracing::debug!(job.id = %lease.job_id, %error, "the seconds that a job used could not be stored");
    }
}

/// The end of a job whose task has no second left to run.
pub(crate) fn budget_spent(output_json: Option<String>) -> JobEnd {
    let message = "the task has used up its budget of seconds".to_owned();
    JobEnd::Failed { code: ErrorCode::BudgetExhausted.to_string(), message, retry: Retry::Never, output_json }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(amount: i64) -> Reservation {
        Reservation { id: amount, unit: BudgetUnit::Seconds, amount }
    }

    #[test]
    fn a_dry_meter_warns_before_it_is_over() {
        let mut meter = Meter::new(CountedBy::Runtime);
        meter.add(seconds(5));
        let mut ticks = |dry_at: i64| -> Vec<Spend> {
            (0..5)
                .map(|tick| {
                    meter.is_dry |= tick >= dry_at;
                    meter.tick()
                })
                .collect()
        };
        use Spend::{Enough, Low, Over};
        assert_eq!(ticks(0), [Enough, Enough, Low, Low, Over]);
    }

    #[test]
    fn what_is_wholly_spent_is_settled_first_and_more_makes_it_last() {
        let mut meter = Meter::new(CountedBy::Runtime);
        meter.add(seconds(5));
        meter.is_dry = true;
        for _ in 0..4 {
            meter.tick();
        }
        assert_eq!(meter.take_spent(), None);
        meter.add(seconds(3));
        assert_eq!(meter.tick(), Spend::Enough, "there is more");
        assert_eq!(meter.take_spent(), Some(seconds(5)));
        assert_eq!((meter.used, meter.left()), (0, 3));
    }
}
