//! Stopping: graceful, immediate, durable, down to the children.

use matsu_core::job::{JobEnd, JobKind, JobState};
use matsu_core::ports::store::{OrderKind, ParkForInput, ReadOrders, SetStatus, Steer, StopTask, StoppedTask};
use matsu_core::principal::Principal;
use matsu_core::task::{StopMode, StopReason, Task, TaskKind, TaskStatus};

use crate::harness::{TestStore, assert_lease_lost, lease};

async fn stop(t: &TestStore, task: &Task, mode: StopMode, reason: StopReason) -> StoppedTask {
    t.store.run(StopTask { task_id: task.id.clone(), mode, reason, now: t.now() }).await.unwrap()
}

pub async fn graceful_cancels_the_queue_and_lets_running_jobs_end(t: TestStore) {
    let task = t.research().await;
    for _ in 0..3 {
        t.enqueue(&task.id, JobKind::Search).await;
    }
    let running = t.claim_one().await;
    let stopped = stop(&t, &task, StopMode::Graceful, StopReason::Completed).await;
    assert_eq!((stopped.cancelled_queued, stopped.cancelled_running), (2, 0));
    assert_eq!(stopped.task.status, TaskStatus::Running, "not before its last job");
    assert_eq!(t.claim(5).await, []);
    assert_eq!(t.complete(&running).await.unwrap(), JobState::Completed);
    assert_eq!(t.job(&running.id).await.output_json.as_deref(), Some(r#"{"done":true}"#));
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Completed);
}

pub async fn a_graceful_stop_that_cancels_jobs_is_news(t: TestStore) {
    let task = t.research().await;
    for _ in 0..2 {
        t.enqueue(&task.id, JobKind::Search).await;
    }
    t.claim_one().await;
    let stopped = stop(&t, &task, StopMode::Graceful, StopReason::Completed).await.task;
    assert_eq!((stopped.status, stopped.finished_revision), (TaskStatus::Running, stopped.revision));
}

pub async fn immediate_cancels_everything(t: TestStore) {
    let task = t.research().await;
    for _ in 0..3 {
        t.enqueue(&task.id, JobKind::Search).await;
    }
    let running = t.claim_one().await;
    let parked = t.claim_one().await;
    t.store.run(ParkForInput { lease: lease(&parked), question_json: "{}".to_owned(), now: t.now() }).await.unwrap();
    let stopped = stop(&t, &task, StopMode::Immediate, StopReason::UserCancelled).await;
    assert_eq!((stopped.cancelled_queued, stopped.cancelled_running), (2, 1));
    assert_eq!(stopped.task.status, TaskStatus::Cancelled);
    assert_eq!(stopped.task.counts.cancelled, 3);
    assert_lease_lost(t.complete(&running).await);
    let fresh = t.research().await;
    t.enqueue(&fresh.id, JobKind::Search).await;
    let claim = t.store.run(t.claim_request(&t.node, 1, 1)).await.unwrap();
    assert_eq!(claim.claimed.len(), 1, "the permits of cancelled jobs are free");
}

pub async fn a_stop_is_idempotent_and_only_hardens(t: TestStore) {
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    let running = t.claim_one().await;
    stop(&t, &task, StopMode::Graceful, StopReason::Completed).await;
    let harder = stop(&t, &task, StopMode::Immediate, StopReason::UserCancelled).await;
    assert_eq!(harder.cancelled_running, 1);
    assert_eq!(harder.task.status, TaskStatus::Completed, "the first reason stands");
    let again = stop(&t, &task, StopMode::Graceful, StopReason::UserCancelled).await;
    assert!(again.was_terminal);
    assert_eq!(again.task, harder.task);
    assert_lease_lost(t.complete(&running).await);
    let idle = t.research().await;
    let ended = stop(&t, &idle, StopMode::Graceful, StopReason::UserCancelled).await;
    assert_eq!(ended.task.status, TaskStatus::Cancelled, "with nothing left to do it ends at once");
}

pub async fn a_stopped_task_takes_nothing_back(t: TestStore) {
    let ends = [JobEnd::Requeue { run_at: None }, JobEnd::AwaitingAuth, JobEnd::OwnerLost];
    for end in ends {
        let task = t.research().await;
        t.enqueue(&task.id, JobKind::Search).await;
        let running = t.claim_one().await;
        stop(&t, &task, StopMode::Graceful, StopReason::Completed).await;
        assert_eq!(t.finish(&lease(&running), end.clone()).await.unwrap(), JobState::Cancelled, "{end:?}");
        assert_eq!(t.task(&task.id).await.status, TaskStatus::Completed);
    }
}

pub async fn a_stop_reaches_the_children(t: TestStore) {
    let parent = t.agent(1).await;
    let mut child = t.new_task(TaskKind::Agent);
    child.parent_id = Some(parent.id.clone());
    child.jobs = vec![t.new_job(JobKind::Noop)];
    let child = t.insert(child).await;
    let mut grandchild = t.new_task(TaskKind::Agent);
    grandchild.parent_id = Some(child.id.clone());
    grandchild.jobs = vec![t.new_job(JobKind::Noop)];
    let grandchild = t.insert(grandchild).await;
    let stopped = stop(&t, &parent, StopMode::Immediate, StopReason::UserCancelled).await;
    assert_eq!(stopped.cancelled_queued, 3);
    for task in [parent, child, grandchild] {
        assert_eq!(t.task(&task.id).await.status, TaskStatus::Cancelled);
    }
}

pub async fn a_stop_reaches_below_an_ended_child(t: TestStore) {
    let parent = t.research().await;
    let below = |parent: &Task| {
        let mut task = t.new_task(TaskKind::Agent);
        task.parent_id = Some(parent.id.clone());
        task.jobs = vec![t.new_job(JobKind::Noop)];
        task
    };
    let child = t.insert(below(&parent)).await;
    let running = t.claim_one().await;
    let grandchild = t.insert(below(&child)).await;
    t.complete(&running).await.unwrap();
    assert_eq!(t.task(&child.id).await.status, TaskStatus::Completed);
    let stopped = stop(&t, &parent, StopMode::Immediate, StopReason::UserCancelled).await;
    assert_eq!(stopped.cancelled_queued, 1);
    assert_eq!(t.task(&grandchild.id).await.status, TaskStatus::Cancelled);
    assert_eq!(t.task(&child.id).await.status, TaskStatus::Completed, "what has ended stays as it ended");
}

pub async fn repeating_a_stop_changes_nothing(t: TestStore) {
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    t.claim_one().await;
    let first = stop(&t, &task, StopMode::Graceful, StopReason::Completed).await;
    let again = stop(&t, &task, StopMode::Graceful, StopReason::UserCancelled).await;
    assert_eq!((again.task, again.was_terminal), (first.task, false));
}

pub async fn orders_tell_a_node_what_to_do(t: TestStore) {
    let mut leases = Vec::new();
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let task = t.research().await;
        t.enqueue(&task.id, JobKind::Search).await;
        leases.push(lease(&t.claim_one().await));
        tasks.push(task);
    }
    stop(&t, &tasks[0], StopMode::Graceful, StopReason::Completed).await;
    stop(&t, &tasks[1], StopMode::Immediate, StopReason::UserCancelled).await;
    let (to, by) = (Steer::Pause, Principal::local_user());
    let pause = SetStatus { task_id: tasks[2].id.clone(), to, by, message: None, now: t.now() };
    t.store.run(pause).await.unwrap();
    let orders = t.store.run(ReadOrders(leases.clone())).await.unwrap();
    let kinds: Vec<_> = leases.iter().map(|lease| orders.iter().find(|o| o.lease == *lease).map(|o| o.kind)).collect();
    assert_eq!(kinds, [Some(OrderKind::EndSoon), Some(OrderKind::Abort), Some(OrderKind::Yield), None]);
    assert_eq!(t.finish(&leases[2], JobEnd::Requeue { run_at: None }).await.unwrap(), JobState::Queued);
    assert_eq!(t.claim(5).await, [], "what goes back into a paused task stays there");
}
