//! The wait alone, on paused time.

use super::*;

fn topic() -> Topic {
    Topic::from_text("task/a")
}

fn topics() -> Vec<Topic> {
    vec![topic()]
}

fn soon(clock: &Clock, secs: u64) -> Option<Instant> {
    Some(clock.instant() + Duration::from_secs(secs))
}

#[tokio::test(start_paused = true)]
async fn a_thousand_changes_between_read_and_sleep_are_all_seen() {
    let (hub, clock, caller, topics) = (Hub::new(), Clock::system(), CancellationToken::new(), topics());
    let start = clock.instant();
    for race in 0..1_000 {
        let (hub, mut looks) = (&hub, 0);
        let mut check = || {
            looks += 1;
            let is_second = looks == 2;
            async move {
                if is_second {
                    return Check::Ready(race);
                }
                // The change comes after this read and before the sleep.
                hub.publish([&topic()]);
                Check::NotYet
            }
        };
        let waited = wait_until(hub, &clock, &topics, soon(&clock, 3_600), &caller, &mut check);
        assert_eq!(waited.await, Waited::Ready(race));
    }
    assert_eq!(clock.instant(), start, "no race may cost the safety interval");
    assert_eq!(hub.sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_past_deadline_still_looks_once_and_an_hour_costs_nothing() {
    let (hub, clock, caller, topics) = (Hub::new(), Clock::system(), CancellationToken::new(), topics());
    let now = Some(clock.instant());
    let ready = wait_until(&hub, &clock, &topics, now, &caller, &mut || async { Check::Ready(7) }).await;
    assert_eq!(ready, Waited::Ready(7));
    let start = clock.instant();
    let never =
        wait_until(&hub, &clock, &topics, soon(&clock, 3_600), &caller, &mut || async { Check::<()>::NotYet }).await;
    assert_eq!((never, clock.instant() - start), (Waited::Timeout, Duration::from_secs(3_600)));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_ends_the_wait_even_during_a_read() {
    let (hub, clock, caller, topics) = (Hub::new(), Clock::system(), CancellationToken::new(), topics());
    let leave = async {
        clock.sleep(Duration::from_secs(1)).await;
        caller.cancel();
    };
    let mut check = pending::<Check<()>>;
    let wait = wait_until(&hub, &clock, &topics, None, &caller, &mut check);
    let (waited, ()) = tokio::join!(wait, leave);
    assert_eq!(waited, Waited::CallerDisconnected);
    assert_eq!(hub.sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_leaves_nothing_behind() {
    let (hub, clock, caller, topics) = (Hub::new(), Clock::system(), CancellationToken::new(), topics());
    let mut check = || async { Check::<()>::NotYet };
    let wait = wait_until(&hub, &clock, &topics, None, &caller, &mut check);
    assert!(clock.within(Duration::from_secs(5), wait).await.is_none());
    assert_eq!(hub.sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_check_may_ask_to_be_asked_again() {
    let (hub, clock, caller, topics) = (Hub::new(), Clock::system(), CancellationToken::new(), topics());
    let start = clock.instant();
    let again = start + Duration::from_secs(3);
    let mut check = || async { if clock.instant() >= again { Check::Ready(()) } else { Check::NotBefore(again) } };
    let waited = wait_until(&hub, &clock, &topics, None, &caller, &mut check);
    assert_eq!((waited.await, clock.instant() - start), (Waited::Ready(()), Duration::from_secs(3)));
}
