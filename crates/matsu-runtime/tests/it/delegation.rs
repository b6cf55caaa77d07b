//! Jobs that wait for tasks of their own, at a limit of one; inner permits; questions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use matsu_core::job::{JobEnd, JobKind, JobState};
use matsu_core::ports::store::StoreError;
use matsu_core::slot::{Slot, SlotLimits};
use matsu_core::task::{TaskKind, TaskStatus};
use matsu_runtime::JobContext;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::tasks::status::{WaitFor, Waits};
use matsu_runtime::worker::Service;

use crate::fixtures::*;

fn one_of_each() -> SlotLimits {
    SlotLimits { network_client: 1, agent_cli: 1, agent_chat: 1, cpu: 1, browser: 1, llm: 1 }
}

/// The input says how much deeper it goes. Each level starts two children and waits for both.
async fn delegate(cx: JobContext) -> JobEnd {
    let depth: u32 = cx.job.input_json.parse().unwrap_or(0);
    if depth == 0 {
        cx.runtime().clock().sleep(Duration::from_secs(5)).await;
        return done();
    }
    let mut children = Vec::new();
    for _ in 0..2 {
        let mut child = task(
            cx.runtime().clock(),
            TaskKind::Agent,
            vec![job(cx.runtime().clock(), JobKind::AgentRun, &(depth - 1).to_string())],
        );
        child.parent_id.clone_from(&cx.job.task_id);
        children.push(Tasks::of(cx.runtime()).submit(child).await.expect("a child").task.id);
    }
    let request = wait_request(&children, WaitFor::All, Duration::from_secs(3_600));
    let no_job_ends = CancellationToken::new();
    let wait = Waits::of(cx.runtime()).wait_for_tasks(request, &no_job_ends);
    let reply = cx.waiting_for_descendants(wait).await.expect("a permit again").expect("a reply");
    assert!(reply.tasks.iter().all(|view| view.task.status == TaskStatus::Completed));
    done()
}

#[tokio::test(start_paused = true)]
async fn two_levels_at_a_limit_of_one_finish() {
    let (store, clock) = memory().await;
    let body = scripted(JobKind::AgentRun, delegate);
    let runtime = runtime_with(&store, clock, one_of_each(), bodies().with(body));
    let service = Service::start(&runtime);
    let began = clock.now();
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::AgentRun, "2")]).await.id;
    assert_eq!(finished(&runtime, &id).await.status, TaskStatus::Completed);
    let took = clock.now().since(began);
    assert!(took >= Duration::from_secs(20), "four leaves of five seconds, one at a time: {took:?}");
    assert!(took < Duration::from_secs(40), "nothing waited for a safety interval again and again: {took:?}");
    // All permits are back: the slot still runs one, and only one.
    let id = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 100), sleep_job(&clock, 100)]).await.id;
    let began = clock.now();
    finished(&runtime, &id).await;
    assert_eq!(clock.now().since(began), Duration::from_millis(200));
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_for_descendants_takes_its_permit_back() {
    let (store, clock) = memory().await;
    let body = scripted(JobKind::Search, |cx| async move {
        let clock = *cx.runtime().clock();
        let wait = cx.waiting_for_descendants(std::future::pending::<()>());
        assert!(clock.within(Duration::from_secs(5), wait).await.is_none());
        clock.sleep(Duration::from_secs(10)).await;
        done()
    });
    let runtime = runtime_with(&store, clock, one_of_each(), bodies().with(body));
    let service = Service::start(&runtime);
    let waiting = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Search, "{}")]).await.id;
    clock.sleep(Duration::from_secs(7)).await;
    let other = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 1)]).await.id;
    clock.sleep(Duration::from_secs(7)).await;
    assert_eq!(only_job(&store, &other).await.state, JobState::Queued, "the slot is taken again");
    finished(&runtime, &waiting).await;
    assert_eq!(finished(&runtime, &other).await.status, TaskStatus::Completed);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_inner_permit_is_held_by_one_at_a_time_and_a_dropped_holder_gives_it_back() {
    let (store, clock) = memory().await;
    let inside = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&inside);
    let body = scripted(JobKind::Search, move |cx| {
        let inside = Arc::clone(&counter);
        async move {
            let clock = *cx.runtime().clock();
            // Dropped in the middle: the body goes on without it.
            let dropped = cx.with_permit(Slot::Browser, clock.sleep(Duration::from_secs(3_600)));
            assert!(clock.within(Duration::from_millis(100), dropped).await.is_none());
            let used = cx.with_permit(Slot::Browser, async {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "no other job is inside");
                clock.sleep(Duration::from_secs(1)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
            });
            used.await.expect("a permit");
            done()
        }
    });
    let limits = SlotLimits { network_client: 4, ..one_of_each() };
    let runtime = runtime_with(&store, clock, limits, bodies().with(body));
    let service = Service::start(&runtime);
    let jobs = (0..8).map(|_| job(&clock, JobKind::Search, "{}")).collect();
    let id = submit(&runtime, TaskKind::Agent, jobs).await.id;
    let began = clock.now();
    let task = finished(&runtime, &id).await;
    assert_eq!(task.counts.completed, 8, "{:?}", jobs_of(&store, &id).await);
    assert!(clock.now().since(began) >= Duration::from_secs(8));
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_frees_the_permit_and_stops_the_clock() {
    let (store, clock) = memory().await;
    let answered = CancellationToken::new();
    let answer = answered.clone();
    let body = scripted(JobKind::AgentRun, move |cx| {
        let answer = answer.clone();
        async move {
            let answer = async {
                answer.cancelled().await;
                "yes"
            };
            match cx.ask(r#"{"question":"go on?"}"#, answer).await {
                Ok("yes") => done(),
                other => panic!("{other:?}"),
            }
        }
    });
    let runtime = runtime_with(&store, clock, one_of_each(), bodies().with(body));
    let service = Service::start(&runtime);
    let asking = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::AgentRun, "{}")]).await.id;
    let job = until(&store, &clock, &asking, JobState::AwaitingInput).await;
    assert_eq!(Tasks::of(&runtime).read(&me(), &asking).await.expect("a task").status, TaskStatus::InputRequired);
    let other = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 1_000)]).await.id;
    assert_eq!(finished(&runtime, &other).await.status, TaskStatus::Completed, "its permit was free");
    answered.cancel();
    until(&store, &clock, &asking, JobState::Completed).await;
    assert_eq!(only_job(&store, &asking).await.attempt, job.attempt);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn inner_permits_of_one_job_take_turns_and_never_nest() {
    let (store, clock) = memory().await;
    let body = scripted(JobKind::Search, |cx| async move {
        let clock = *cx.runtime().clock();
        let inside = AtomicUsize::new(0);
        let part = async |slot| {
            let work = async {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "the other part waits for its turn");
                clock.sleep(Duration::from_secs(1)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
            };
            cx.with_permit(slot, work).await.expect("a permit");
        };
        tokio::join!(part(Slot::Browser), part(Slot::Llm), part(Slot::Browser));
        let nested = cx.with_permit(Slot::Browser, cx.with_permit(Slot::Llm, async {})).await.expect("the outer one");
        assert!(matches!(nested, Err(StoreError::LimitExceeded(_))), "{nested:?}");
        // A part that was dropped has freed what it held before another takes something else.
        let dropped = cx.with_permit(Slot::Browser, clock.sleep(Duration::from_secs(3_600)));
        assert!(clock.within(Duration::from_millis(100), dropped).await.is_none());
        part(Slot::Llm).await;
        done()
    });
    let runtime = runtime_with(&store, clock, one_of_each(), bodies().with(body));
    let service = Service::start(&runtime);
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Search, "{}")]).await.id;
    let task = finished(&runtime, &id).await;
    assert_eq!(task.counts.completed, 1, "{:?}", jobs_of(&store, &id).await);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nested_waits_lend_the_permit_until_the_last_has_ended() {
    let (store, clock) = memory().await;
    let body = scripted(JobKind::Search, |cx| async move {
        let clock = *cx.runtime().clock();
        let outer = async {
            let inner = cx.waiting_for_descendants(clock.sleep(Duration::from_secs(5)));
            inner.await.expect("no permit is needed yet");
            clock.sleep(Duration::from_secs(15)).await;
        };
        cx.waiting_for_descendants(outer).await.expect("a permit again");
        clock.sleep(Duration::from_secs(10)).await;
        done()
    });
    let runtime = runtime_with(&store, clock, one_of_each(), bodies().with(body));
    let service = Service::start(&runtime);
    let waiting = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Search, "{}")]).await.id;
    clock.sleep(Duration::from_secs(7)).await;
    let during = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 1_000)]).await.id;
    assert_eq!(finished(&runtime, &during).await.status, TaskStatus::Completed);
    assert!(clock.now().since(START) < Duration::from_secs(10), "the inner wait has ended, the outer one has not");
    clock.sleep(Duration::from_secs(14)).await;
    let after = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 1)]).await.id;
    clock.sleep(Duration::from_secs(3)).await;
    assert_eq!(only_job(&store, &after).await.state, JobState::Queued, "now the permit is taken again");
    finished(&runtime, &waiting).await;
    assert_eq!(finished(&runtime, &after).await.status, TaskStatus::Completed);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_question_lets_its_job_run_on_and_ask_again() {
    let (store, clock) = memory().await;
    let body = scripted(JobKind::AgentRun, |cx| async move {
        let clock = *cx.runtime().clock();
        let unanswered = cx.ask(r#"{"question":1}"#, std::future::pending::<()>());
        assert!(clock.within(Duration::from_secs(5), unanswered).await.is_none());
        clock.sleep(Duration::from_secs(10)).await;
        // Asked, dropped and asked again at once: there was no time to clean up after the dropped question.
        let dropped = cx.ask(r#"{"question":2}"#, std::future::pending::<()>());
        assert!(clock.within(Duration::from_millis(1), dropped).await.is_none());
        cx.ask(r#"{"question":3}"#, clock.sleep(Duration::from_secs(5))).await.expect("an answer");
        done()
    });
    let runtime = runtime_with(&store, clock, one_of_each(), bodies().with(body));
    let service = Service::start(&runtime);
    let asking = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::AgentRun, "{}")]).await.id;
    until(&store, &clock, &asking, JobState::AwaitingInput).await;
    clock.sleep(Duration::from_secs(7)).await;
    assert_eq!(only_job(&store, &asking).await.state, JobState::Running, "the question is withdrawn");
    let other = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 1)]).await.id;
    clock.sleep(Duration::from_secs(3)).await;
    assert_eq!(only_job(&store, &other).await.state, JobState::Queued, "and the permit is its own again");
    until(&store, &clock, &asking, JobState::AwaitingInput).await;
    assert_eq!(finished(&runtime, &other).await.status, TaskStatus::Completed);
    let job = until(&store, &clock, &asking, JobState::Completed).await;
    assert_eq!(job.attempt, 1);
    service.stop().await;
}
