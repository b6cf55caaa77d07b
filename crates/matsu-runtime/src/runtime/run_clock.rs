//! The clock of one running body, in ticks of this process. Pure: it returns what to do and does nothing itself.
//!
//! A tick is a tick however long the gap before it was, so a process that was suspended counts one and not
//! sixty: neither a sleeping laptop nor SIGSTOP can time a job out.

use matsu_core::limits::{ABORT_GRACE, GRACE, TICK};
use matsu_core::ports::store::OrderKind;

use crate::stop_signal::StopLevel;

const GRACE_TICKS: u64 = GRACE.as_secs() / TICK.as_secs();
const ABORT_TICKS: u64 = ABORT_GRACE.as_secs() / TICK.as_secs();

/// Why a body was ordered to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its task is being stopped.
    Stop,
    /// Its task was paused or blocked.
    Pause,
    /// It ran longer than it may.
    Timeout { seconds_max: u64 },
    /// Its task has spent the seconds it may run.
    Budget,
    /// Another node holds the job now, or none does: nothing more can be written.
    LeaseLost,
    /// This process ends.
    Shutdown,
}

/// What to do to the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Stop(StopLevel),
    /// It had its time to clean up: drop it.
    Kill,
}

#[derive(Debug)]
pub struct RunClock {
    ran_ticks: u64,
    ran_ticks_max: Option<u64>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Running,
    Ending { cause: Cause, left: u64 },
    Aborting { cause: Cause, left: u64 },
    Killed { cause: Cause },
}

/// Whether the body's time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    Runs,
    /// It waits for a person's answer.
    StandsStill,
}

impl RunClock {
    #[must_use]
    pub fn new(run_seconds_max: Option<u32>) -> Self {
        let ran_ticks_max = run_seconds_max.map(|seconds| u64::from(seconds) / TICK.as_secs());
        Self { ran_ticks: 0, ran_ticks_max, phase: Phase::Running }
    }

    /// It has run for this long already.
    pub fn set_ran(&mut self, seconds: u32) {
        self.ran_ticks = self.ran_ticks.max(u64::from(seconds) / TICK.as_secs());
    }

    /// Why it was ordered to stop, if it was.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        match self.phase {
            Phase::Running => None,
            Phase::Ending { cause, .. } | Phase::Aborting { cause, .. } | Phase::Killed { cause } => Some(cause),
        }
    }

    /// One second of this process's life has passed.
    pub fn tick(&mut self, counting: Counting) -> Option<Act> {
        match &mut self.phase {
            Phase::Running if counting == Counting::Runs => {
                self.ran_ticks += 1;
                // The first tick came less than a second after the start, so one more than the bound.
                let over = self.ran_ticks_max.filter(|max| self.ran_ticks > *max)?;
                Some(self.abort(Cause::Timeout { seconds_max: over * TICK.as_secs() }))
            }
            Phase::Ending { left, .. } | Phase::Aborting { left, .. } if *left > 0 => {
                *left -= 1;
                None
            }
            Phase::Ending { cause, .. } => {
                let cause = *cause;
                Some(self.abort(cause))
            }
            Phase::Aborting { cause, .. } => {
                let cause = *cause;
                self.phase = Phase::Killed { cause };
                Some(Act::Kill)
            }
            Phase::Running | Phase::Killed { .. } => None,
        }
    }

    /// An order from the store. Repeating an order changes nothing.
    pub fn order(&mut self, order: OrderKind) -> Option<Act> {
        match (order, self.phase) {
            (OrderKind::EndSoon, Phase::Running | Phase::Ending { cause: Cause::Pause, .. }) => {
                Some(self.end(Cause::Stop, StopLevel::EndSoon))
            }
            (OrderKind::Yield, Phase::Running) => Some(self.end(Cause::Pause, StopLevel::Yield)),
            (OrderKind::Abort, Phase::Running | Phase::Ending { .. }) => Some(self.abort(Cause::LeaseLost)),
            (OrderKind::Abort, Phase::Aborting { left, .. }) => {
                self.phase = Phase::Aborting { cause: Cause::LeaseLost, left };
                None
            }
            (OrderKind::EndSoon | OrderKind::Yield | OrderKind::Abort, _) => None,
        }
    }

    /// The task's last seconds: a result that comes soon still counts.
    pub fn budget_low(&mut self) -> Option<Act> {
        matches!(self.phase, Phase::Running).then(|| self.end(Cause::Budget, StopLevel::EndSoon))
    }

    /// The task's seconds are spent. A stop that is under way is only made harder.
    pub fn budget_over(&mut self) -> Option<Act> {
        match self.phase {
            Phase::Running => Some(self.abort(Cause::Budget)),
            Phase::Ending { cause, .. } => Some(self.abort(cause)),
            Phase::Aborting { .. } | Phase::Killed { .. } => None,
        }
    }

    /// This process ends. A stop that is under way goes on as it was.
    pub fn shut_down(&mut self) -> Option<Act> {
        match self.phase {
            Phase::Running => Some(self.end(Cause::Shutdown, StopLevel::Shutdown)),
            _ => Some(Act::Stop(StopLevel::Shutdown)),
        }
    }

    /// The shutdown takes too long for kindness.
    pub fn abort_now(&mut self) -> Option<Act> {
        match self.phase {
            Phase::Running => Some(self.abort(Cause::Shutdown)),
            Phase::Ending { cause, .. } => Some(self.abort(cause)),
            Phase::Aborting { .. } | Phase::Killed { .. } => None,
        }
    }

    fn end(&mut self, cause: Cause, level: StopLevel) -> Act {
        self.phase = Phase::Ending { cause, left: GRACE_TICKS };
        Act::Stop(level)
    }

    fn abort(&mut self, cause: Cause) -> Act {
        self.phase = Phase::Aborting { cause, left: ABORT_TICKS };
        Act::Stop(StopLevel::Abort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks until something happens, and what.
    fn next(clock: &mut RunClock) -> Option<(u32, Act)> {
        (1..200).find_map(|tick| clock.tick(Counting::Runs).map(|act| (tick, act)))
    }

    #[test]
    fn a_body_over_its_time_is_aborted_and_then_dropped() {
        let mut clock = RunClock::new(Some(10));
        assert_eq!(next(&mut clock), Some((11, Act::Stop(StopLevel::Abort))));
        assert_eq!(clock.cause(), Some(Cause::Timeout { seconds_max: 10 }));
        assert_eq!(next(&mut clock), Some((6, Act::Kill)));
        assert_eq!(next(&mut clock), None);
    }

    #[test]
    fn time_stands_still_while_a_person_is_asked_and_without_a_bound_never_ends() {
        let mut clock = RunClock::new(Some(10));
        for _ in 0..1_000 {
            assert_eq!(clock.tick(Counting::StandsStill), None);
        }
        assert_eq!(next(&mut clock), Some((11, Act::Stop(StopLevel::Abort))));
        assert_eq!(next(&mut RunClock::new(None)), None);
    }

    #[test]
    fn a_graceful_stop_has_its_grace_and_repeating_it_does_not_prolong_it() {
        let mut clock = RunClock::new(None);
        assert_eq!(clock.order(OrderKind::EndSoon), Some(Act::Stop(StopLevel::EndSoon)));
        for _ in 0..10 {
            assert_eq!(clock.tick(Counting::Runs), None);
            assert_eq!(clock.order(OrderKind::EndSoon), None);
        }
        assert_eq!(next(&mut clock), Some((21, Act::Stop(StopLevel::Abort))));
        assert_eq!(clock.cause(), Some(Cause::Stop));
        assert_eq!(next(&mut clock), Some((6, Act::Kill)));
    }

    #[test]
    fn a_harder_order_replaces_a_softer_one() {
        let mut clock = RunClock::new(None);
        assert_eq!(clock.order(OrderKind::Yield), Some(Act::Stop(StopLevel::Yield)));
        assert_eq!(clock.order(OrderKind::EndSoon), Some(Act::Stop(StopLevel::EndSoon)));
        assert_eq!(clock.cause(), Some(Cause::Stop));
        assert_eq!(clock.order(OrderKind::Yield), None);
        assert_eq!(clock.order(OrderKind::Abort), Some(Act::Stop(StopLevel::Abort)));
        assert_eq!(clock.order(OrderKind::Abort), None);
        assert_eq!(clock.cause(), Some(Cause::LeaseLost));
        assert_eq!(clock.order(OrderKind::EndSoon), None);
    }

    #[test]
    fn a_shutdown_keeps_the_cause_of_a_stop_that_was_under_way() {
        let mut clock = RunClock::new(None);
        assert_eq!(clock.order(OrderKind::EndSoon), Some(Act::Stop(StopLevel::EndSoon)));
        assert_eq!(clock.shut_down(), Some(Act::Stop(StopLevel::Shutdown)));
        assert_eq!(clock.cause(), Some(Cause::Stop));
        assert_eq!(clock.abort_now(), Some(Act::Stop(StopLevel::Abort)));
        assert_eq!(clock.abort_now(), None);
        let mut clock = RunClock::new(None);
        assert_eq!(clock.shut_down(), Some(Act::Stop(StopLevel::Shutdown)));
        assert_eq!(clock.cause(), Some(Cause::Shutdown));
    }
}
