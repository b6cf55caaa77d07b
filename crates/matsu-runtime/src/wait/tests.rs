//! The wait alone, on paused time.

use std::cell::Cell;

use super::*;

fn topic() -> Topic {
    Topic::from_text("task/a")
}

fn soon(clock: &Clock, secs: u64) -> Option<Instant> {
    Some(clock.instant() + Duration::from_secs(secs))
}

#[tokio::test(start_paused = true)]
async fn a_thousand_changes_between_read_and_sleep_are_all_seen() {
    let (hub, clock, caller) = (Hub::new(), Clock::system(), CancellationToken::new());
    let start = clock.instant();
    for race in 0..1_000 {
        let looks = Cell::new(0);
        let waited = wait_until(&hub, &clock, &[topic()], soon(&clock, 3_600), &caller, async || {
            looks.set(looks.get() + 1);
            if looks.get() == 2 {
                return Check::Ready(race);
            }
            // The change comes after this read and before the sleep.
            hub.publish([&topic()]);
            Check::NotYet
        });
        assert_eq!(waited.await, Waited::Ready(race));
    }
    assert_eq!(clock.instant(), start, "no race may cost the safety interval");
    assert_eq!(hub.sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_past_deadline_still_looks_once_and_an_hour_costs_nothing() {
    let (hub, clock, caller) = (Hub::new(), Clock::system(), CancellationToken::new());
    let now = Some(clock.instant());
    let ready = wait_until(&hub, &clock, &[topic()], now, &caller, async || Check::Ready(7)).await;
    assert_eq!(ready, Waited::Ready(7));
    let start = clock.instant();
    let never = wait_until(&hub, &clock, &[topic()], soon(&clock, 3_600), &caller, async || Check::<()>::NotYet).await;
    assert_eq!((never, clock.instant() - start), (Waited::Timeout, Duration::from_secs(3_600)));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_ends_the_wait_even_during_a_read() {
    let (hub, clock, caller) = (Hub::new(), Clock::system(), CancellationToken::new());
    let leave = async {
        clock.sleep(Duration::from_secs(1)).await;
        caller.cancel();
    };
    let wait = wait_until(&hub, &clock, &[topic()], None, &caller, async || pending::<Check<()>>().await);
    let (waited, ()) = tokio::join!(wait, leave);
    assert_eq!(waited, Waited::CallerGone);
    assert_eq!(hub.sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_leaves_nothing_behind() {
    let (hub, clock, caller) = (Hub::new(), Clock::system(), CancellationToken::new());
    let wait = wait_until(&hub, &clock, &[topic()], None, &caller, async || Check::<()>::NotYet);
    assert!(clock.within(Duration::from_secs(5), wait).await.is_none());
    assert_eq!(hub.sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_check_may_ask_to_be_asked_again() {
    let (hub, clock, caller) = (Hub::new(), Clock::system(), CancellationToken::new());
    let start = clock.instant();
    let again = start + Duration::from_secs(3);
    let waited = wait_until(&hub, &clock, &[topic()], None, &caller, async || {
        if clock.instant() >= again { Check::Ready(()) } else { Check::NotBefore(again) }
    });
    assert_eq!((waited.await, clock.instant() - start), (Waited::Ready(()), Duration::from_secs(3)));
}
