//! Waits through the runtime: what they return, when, and what they cost.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use matsu_core::id::TaskId;
use matsu_core::job::JobKind;
use matsu_core::limits::{COLLECT_FOR, HOLD_MAX, WAITS_PER_PRINCIPAL_MAX};
use matsu_core::ports::store::Store;
use matsu_core::principal::Principal;
use matsu_core::task::{TaskKind, TaskStatus};
use matsu_runtime::tasks::Tasks;
use matsu_runtime::tasks::status::{ReturnedBecause, WaitFor, WaitRequest, Waits};
use matsu_runtime::worker::Service;
use matsu_runtime::{InstanceId, TaskError, WaitError};

use crate::faulty_store::FaultyStore;
use crate::fixtures::*;

#[tokio::test(start_paused = true)]
async fn ten_thousand_waiters_wake_and_share_one_read() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let id = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 60_000)]).await.id;
    let mut waiters = JoinSet::new();
    for _ in 0..10_000 {
        let (runtime, request) =
            (runtime.clone(), wait_request(std::slice::from_ref(&id), WaitFor::All, Duration::from_secs(3_600)));
        waiters.spawn(async move { Waits::of(&runtime).wait_for_tasks(request, &CancellationToken::new()).await });
    }
    clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(store.hub().sleepers(), 10_000);
    assert!(runtime.snapshots().reads() <= 2, "they came together: {} reads", runtime.snapshots().reads());
    let asleep = runtime.snapshots().reads();
    clock.sleep(Duration::from_secs(600)).await;
    assert_eq!(runtime.snapshots().reads(), asleep, "sleeping costs no query");

    let service = Service::start(&runtime);
    let mut woken = 0;
    while let Some(reply) = waiters.join_next().await {
        let reply = reply.expect("no panic").expect("a reply");
        assert_eq!(reply.returned_because, ReturnedBecause::Terminal);
        assert_eq!(reply.tasks[0].task.status, TaskStatus::Completed);
        woken += 1;
    }
    assert_eq!(woken, 10_000);
    // Started, ended, and now and then a safety read: a few reads for all of them together.
    let reads = runtime.snapshots().reads() - asleep;
    assert!(reads <= 8, "{reads} reads");
    assert!(runtime.snapshots().is_empty());
    service.stop().await;
    assert_eq!(store.hub().sleepers(), 0);
}

/// Counts how often a task that is polled by hand was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_read_that_ends_at_once_does_not_wake_its_own_task() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let id = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 60_000)]).await.id;
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut reader = runtime.snapshots().reader(id);
    let read = pin!(reader.read()).poll(&mut Context::from_waker(&waker));
    assert!(matches!(read, Poll::Ready(Ok(_))), "the memory store answers at once");
    assert_eq!(woken.0.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn waiters_share_reads_although_other_tasks_are_busy() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let quiet = submit(&runtime, TaskKind::Research, vec![job(&clock, JobKind::Noop, "{}")]).await.id;
    let mut waiters = JoinSet::new();
    for _ in 0..200 {
        let request = wait_request(std::slice::from_ref(&quiet), WaitFor::Any, Duration::from_secs(600));
        let runtime = runtime.clone();
        waiters.spawn(async move { Waits::of(&runtime).wait_for_tasks(request, &CancellationToken::new()).await });
    }
    clock.sleep(Duration::from_millis(10)).await;
    let before = runtime.snapshots().reads();
    for _ in 0..50 {
        submit(&runtime, TaskKind::Research, vec![job(&clock, JobKind::Noop, "{}")]).await;
        clock.sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(runtime.snapshots().reads(), before, "changes of others wake no wait here");
    let added = vec![job(&clock, JobKind::Noop, "{}")];
    Tasks::of(&runtime).enqueue(&me(), &quiet, added).await.expect("queued");
    while waiters.join_next().await.is_some() {
        // Between any two waiters another task changes.
        submit(&runtime, TaskKind::Research, vec![]).await;
    }
    assert_eq!(runtime.snapshots().reads(), before + 1, "one change, one read");
    assert!(runtime.snapshots().is_empty());
}

#[tokio::test(start_paused = true)]
async fn dropped_waiters_leave_nothing_behind_and_open_ones_are_bounded() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let id = submit(&runtime, TaskKind::Research, vec![job(&clock, JobKind::Noop, "{}")]).await.id;
    let mut waiters = JoinSet::new();
    for _ in 0..WAITS_PER_PRINCIPAL_MAX {
        let request = wait_request(std::slice::from_ref(&id), WaitFor::Any, Duration::from_secs(600));
        let runtime = runtime.clone();
        waiters.spawn(async move { Waits::of(&runtime).wait_for_tasks(request, &CancellationToken::new()).await });
    }
    clock.sleep(Duration::from_millis(1)).await;
    let one_more = || wait_request(std::slice::from_ref(&id), WaitFor::Any, Duration::from_secs(1));
    let caller = CancellationToken::new();
    let refused = Waits::of(&runtime).wait_for_tasks(one_more(), &caller).await;
    assert!(matches!(refused, Err(WaitError::Task(TaskError::LimitExceeded(_)))), "{refused:?}");
    waiters.shutdown().await;
    assert_eq!(store.hub().sleepers(), 0);
    assert!(runtime.snapshots().is_empty());
    let taken = Waits::of(&runtime).wait_for_tasks(one_more(), &caller).await;
    assert_eq!(taken.expect("a reply").returned_because, ReturnedBecause::Timeout);
    let bytes = std::mem::size_of_val(&Waits::of(&runtime).wait_for_tasks(one_more(), &caller));
    assert!(bytes <= 4_096, "a parked wait is {bytes} bytes");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_races_of_a_change_against_the_sleep() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let began = clock.now();
    for race in 0..1_000_u32 {
        let id = submit(&runtime, TaskKind::Research, vec![job(&clock, JobKind::Noop, "{}")]).await.id;
        let caller = CancellationToken::new();
        let request = wait_request(std::slice::from_ref(&id), WaitFor::Any, Duration::from_secs(3_600));
        let change = async {
            // Each race lands at another point of the wait.
            for _ in 0..race % 7 {
                tokio::task::yield_now().await;
            }
            Tasks::of(&runtime).enqueue(&me(), &id, vec![job(&clock, JobKind::Noop, "{}")]).await.expect("queued");
        };
        let (reply, ()) = tokio::join!(Waits::of(&runtime).wait_for_tasks(request, &caller), change);
        assert_eq!(reply.expect("a reply").returned_because, ReturnedBecause::Changed, "race {race}");
    }
    assert_eq!(clock.now(), began, "none was saved by a timeout or a safety read");
}

#[tokio::test(start_paused = true)]
async fn the_hold_is_cut_and_the_cut_is_reported() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let id = submit(&runtime, TaskKind::Research, vec![sleep_job(&clock, 1)]).await.id;
    let wait = |hold, hold_max| {
        let request = wait_request(std::slice::from_ref(&id), WaitFor::All, Duration::from_secs(hold));
        let request = WaitRequest { hold_max, ..request };
        let runtime = runtime.clone();
        async move { Waits::of(&runtime).wait_for_tasks(request, &CancellationToken::new()).await.expect("a reply") }
    };
    let cut = wait(3_600, None).await;
    assert_eq!((cut.returned_because, cut.hold_max, cut.waited_ms), (ReturnedBecause::Timeout, Some(HOLD_MAX), 50_000));
    let whole = wait(20, None).await;
    assert_eq!((whole.hold_max, whole.waited_ms), (None, 20_000));
    let raised = wait(3_600, Some(Duration::from_secs(1_800))).await;
    assert_eq!(raised.waited_ms, 1_800_000);
    let none = wait(0, None).await;
    assert_eq!((none.returned_because, none.waited_ms), (ReturnedBecause::Timeout, 0));
    assert_eq!(store.hub().sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn finished_jobs_are_collected_for_a_moment() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let jobs = [1_000, 1_400, 60_000].map(|ms| sleep_job(&clock, ms)).into();
    let id = submit(&runtime, TaskKind::Research, jobs).await.id;
    let caller = CancellationToken::new();
    let request = wait_request(std::slice::from_ref(&id), WaitFor::Finished, Duration::from_secs(50));
    let reply = Waits::of(&runtime).wait_for_tasks(request.clone(), &caller).await.expect("a reply");
    assert_eq!(reply.tasks[0].task.counts.completed, 2, "the second came along");
    assert_eq!(reply.waited_ms, 1_000 + u64::try_from(COLLECT_FOR.as_millis()).expect("small"));
    assert_eq!(reply.changed, std::slice::from_ref(&id));
    let next = WaitRequest { since: Some(reply.next_since), hold: Duration::from_secs(600), ..request };
    let reply = Waits::of(&runtime).wait_for_tasks(next, &caller).await.expect("a reply");
    assert_eq!(reply.returned_because, ReturnedBecause::Idle, "the last job is not collected for");
    assert_eq!(reply.tasks[0].task.counts.completed, 3);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unknown_and_foreign_ids_fail_at_once() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let mine = submit(&runtime, TaskKind::Research, vec![sleep_job(&clock, 1)]).await.id;
    let began = clock.now();
    let caller = CancellationToken::new();
    for (owner, ids) in
        [(me(), vec![mine.clone(), TaskId::from_text("task_unknown")]), (Principal::user("other"), vec![mine.clone()])]
    {
        let request = WaitRequest { owner, ..wait_request(&ids, WaitFor::All, Duration::from_secs(50)) };
        let failed = Waits::of(&runtime).wait_for_tasks(request, &caller).await;
        assert!(matches!(failed, Err(WaitError::Task(TaskError::NotFound(_)))), "{failed:?}");
    }
    for ids in [vec![], vec![mine.clone(), mine.clone()]] {
        let failed =
            Waits::of(&runtime).wait_for_tasks(wait_request(&ids, WaitFor::All, Duration::ZERO), &caller).await;
        assert!(matches!(failed, Err(WaitError::Task(TaskError::Invalid(_)))), "{failed:?}");
    }
    assert_eq!(clock.now(), began);
}

#[tokio::test(start_paused = true)]
async fn a_first_wait_waits_and_a_lost_reply_is_sent_again_where_since_says_so() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let id = submit(&runtime, TaskKind::Research, vec![sleep_job(&clock, 1)]).await.id;
    let (instance, caller) = (InstanceId::from_text("relay-1"), CancellationToken::new());
    let request = WaitRequest {
        since: None,
        instance: Some(instance.clone()),
        ..wait_request(std::slice::from_ref(&id), WaitFor::Finished, Duration::from_secs(10))
    };
    let reply = Waits::of(&runtime).wait_for_tasks(request.clone(), &caller).await.expect("a reply");
    assert_eq!((reply.returned_because, reply.waited_ms), (ReturnedBecause::Timeout, 10_000));
    assert_eq!((reply.tasks[0].since, reply.tasks[0].waits_from), (0, reply.next_since[&id]));
    assert_eq!(reply.changed, vec![id.clone()], "the caller has seen nothing of it yet");
    for (task_id, revision) in &reply.next_since {
        runtime.cursors().delivered(&instance, task_id, *revision);
    }
    let reply = Waits::of(&runtime).wait_for_tasks(request.clone(), &caller).await.expect("a reply");
    assert_eq!((reply.returned_because, reply.waited_ms), (ReturnedBecause::Timeout, 10_000));
    assert_eq!((reply.changed, reply.tasks[0].since), (vec![], reply.next_since[&id]));
    let explicit = WaitRequest { since: Some(BTreeMap::from([(id.clone(), 0)])), ..request };
    assert_eq!(Waits::of(&runtime).wait_for_tasks(explicit, &caller).await.expect("a reply").waited_ms, 0);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_and_a_caller_that_leaves_end_the_wait() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let id = submit(&runtime, TaskKind::Research, vec![sleep_job(&clock, 1)]).await.id;
    let (interrupt, caller) = (CancellationToken::new(), CancellationToken::new());
    let request = wait_request(std::slice::from_ref(&id), WaitFor::All, Duration::from_secs(600));
    let request = WaitRequest { interrupt: Some(interrupt.clone()), ..request };
    let later = |token: CancellationToken| async move {
        clock.sleep(Duration::from_secs(3)).await;
        token.cancel();
    };
    let (reply, ()) = tokio::join!(Waits::of(&runtime).wait_for_tasks(request.clone(), &caller), later(interrupt));
    assert_eq!(reply.expect("a reply").returned_because, ReturnedBecause::Interrupt);
    let request = WaitRequest { interrupt: None, ..request };
    let (reply, ()) = tokio::join!(Waits::of(&runtime).wait_for_tasks(request, &caller), later(caller.clone()));
    assert!(matches!(reply, Err(WaitError::CallerDisconnected)));
    assert_eq!(store.hub().sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn notices_of_other_nodes_do_not_put_the_safety_read_off() {
    let (inner, clock) = memory().await;
    let faulty = FaultyStore::new(inner);
    let store: Arc<dyn Store> = faulty.clone();
    faulty.chatter();
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    clock.sleep(Duration::from_secs(1)).await;
    let before = faulty.calls_of("ChangesSince");
    clock.sleep(Duration::from_secs(60)).await;
    let reads = faulty.calls_of("ChangesSince") - before;
    assert!((11..=13).contains(&reads), "one every five seconds, neither more nor less: {reads}");
    service.stop().await;
}
