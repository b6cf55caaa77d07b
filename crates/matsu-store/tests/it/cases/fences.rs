//! The fence: a write for a job counts only while that attempt is the one that runs.

use matsu_core::budget::{BudgetLine, BudgetUnit};
use matsu_core::job::{Job, JobEnd, JobKind, JobState, Lease};
use matsu_core::ports::store::{
    Finish, FinishAndClaim, JobUpdate, MovePermit, ParkForInput, PermitStep, ReadBudget, Reserve, ResumeFromInput,
    StopTask, StoreError, UpdateJob,
};
use matsu_core::slot::Slot;
use matsu_core::task::{StopMode, StopReason, Task, TaskKind, TaskStatus};

use crate::harness::{TestStore, assert_lease_lost, completed, lease};

/// A job that was claimed by a node which then died; and the same job claimed by another.
async fn taken_over(t: &TestStore) -> (Task, Job, Job) {
    let mut new = t.new_task(TaskKind::Research);
    new.budget = vec![BudgetLine { unit: BudgetUnit::Pages, limit: 10, used: 0 }];
    let task = t.insert(new).await;
    t.enqueue(&task.id, JobKind::Search).await;
    let dead = t.second_node().await;
    let first = t.store.run(t.claim_request(&dead, 1, 5)).await.unwrap().claimed.pop().unwrap();
    t.store.reap_node(&dead, t.now()).await.unwrap();
    let second = t.claim_one().await;
    assert_eq!(first.id, second.id);
    assert!(second.attempt > first.attempt);
    (task, first, second)
}

async fn stop(t: &TestStore, task: &Task, mode: StopMode) {
    let reason = StopReason::UserCancelled;
    t.store.run(StopTask { task_id: task.id.clone(), mode, reason, now: t.now() }).await.unwrap();
}

pub async fn a_late_completion_is_refused(t: TestStore) {
    let (_, first, second) = taken_over(&t).await;
    assert_lease_lost(t.complete(&first).await);
    assert_eq!(t.job(&second.id).await.state, JobState::Running);
    assert_eq!(t.complete(&second).await.unwrap(), JobState::Completed);
    assert_lease_lost(t.complete(&first).await);
}

pub async fn a_second_completion_is_refused(t: TestStore) {
    let task = t.agent(1).await;
    let job = t.claim_one().await;
    t.complete(&job).await.unwrap();
    let once = t.task(&task.id).await;
    assert_lease_lost(t.complete(&job).await);
    assert_eq!(t.task(&task.id).await, once, "nothing moved");
}

pub async fn a_write_after_cancel_is_refused(t: TestStore) {
    let task = t.agent(1).await;
    let job = t.claim_one().await;
    stop(&t, &task, StopMode::Immediate).await;
    assert_lease_lost(t.complete(&job).await);
    let update = JobUpdate::PartialOutput("late".to_owned());
    assert_lease_lost(t.store.run(UpdateJob { lease: lease(&job), update, now: t.now() }).await);
    assert_eq!(t.job(&job.id).await.output_json, None);
}

pub async fn a_late_progress_or_checkpoint_is_refused(t: TestStore) {
    let (task, first, second) = taken_over(&t).await;
    let before = t.task(&task.id).await;
    let updates = [
        JobUpdate::Progress("late".to_owned()),
        JobUpdate::Checkpoint("late".to_owned()),
        JobUpdate::PartialOutput("late".to_owned()),
    ];
    for update in updates {
        assert_lease_lost(t.store.run(UpdateJob { lease: lease(&first), update, now: t.now() }).await);
    }
    assert_lease_lost(
        t.store.run(ParkForInput { lease: lease(&first), question_json: "{}".to_owned(), now: t.now() }).await,
    );
    assert_lease_lost(t.store.run(ResumeFromInput { lease: lease(&first), permits_max: 5, now: t.now() }).await);
    assert_eq!(t.task(&task.id).await, before);
    let job = t.job(&second.id).await;
    assert_eq!((job.progress_json, job.checkpoint_json, job.output_json), (None, None, None));
}

pub async fn a_late_reservation_is_refused(t: TestStore) {
    let (task, first, second) = taken_over(&t).await;
    assert_lease_lost(t.store.run(Reserve { lease: lease(&first), unit: BudgetUnit::Pages, amount: 3 }).await);
    assert_lease_lost(
        t.store
            .run(MovePermit {
                lease: lease(&first),
                step: PermitStep::TakeInner { slot: Slot::Browser, permits_max: 1 },
            })
            .await,
    );
    assert_lease_lost(t.store.run(MovePermit { lease: lease(&first), step: PermitStep::Lend }).await);
    assert_eq!(t.store.run(ReadBudget(task.id.clone())).await.unwrap()[0].used, 0);
    assert!(
        t.store
            .run(MovePermit {
                lease: lease(&second),
                step: PermitStep::TakeInner { slot: Slot::Browser, permits_max: 1 }
            })
            .await
            .unwrap()
    );
}

pub async fn a_renewal_after_reaping_is_refused(t: TestStore) {
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    let dead = t.second_node().await;
    let job = t.store.run(t.claim_request(&dead, 1, 5)).await.unwrap().claimed.pop().unwrap();
    t.store.reap_node(&dead, t.now()).await.unwrap();
    // No node has claimed it yet, and the old owner has lost its lease all the same.
    assert_lease_lost(
        t.store
            .run(UpdateJob { lease: lease(&job), update: JobUpdate::Checkpoint("x".to_owned()), now: t.now() })
            .await,
    );
    assert_lease_lost(t.complete(&job).await);
    assert_eq!(t.job(&job.id).await.state, JobState::Queued);
}

pub async fn a_new_node_cannot_use_an_old_lease(t: TestStore) {
    let (_, first, second) = taken_over(&t).await;
    // A node id that is used again by mistake gives no rights: the attempt is what counts.
    let reused = second.owner_node.clone().unwrap();
    let request = FinishAndClaim {
        finishes: vec![Finish { lease: lease(&first), end: completed() }],
        ..t.claim_request(&reused, 1, 5)
    };
    let outcome = t.store.run(request).await.unwrap();
    assert!(outcome.finished[0].is_err());
    let invented = Lease { job_id: second.id.clone(), attempt: second.attempt + 1 };
    assert_lease_lost(t.finish(&invented, completed()).await);
}

pub async fn a_cancel_that_comes_first_wins(t: TestStore) {
    let task = t.agent(1).await;
    let job = t.claim_one().await;
    stop(&t, &task, StopMode::Immediate).await;
    assert_lease_lost(t.complete(&job).await);
    assert_eq!(t.job(&job.id).await.state, JobState::Cancelled);
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Cancelled);
}

pub async fn a_completion_that_comes_first_wins(t: TestStore) {
    let task = t.agent(1).await;
    let job = t.claim_one().await;
    t.complete(&job).await.unwrap();
    let reason = StopReason::UserCancelled;
    let request = StopTask { task_id: task.id.clone(), mode: StopMode::Immediate, reason, now: t.now() };
    let stopped = t.store.run(request).await.unwrap();
    assert!(stopped.was_terminal);
    assert_eq!(stopped.task.status, TaskStatus::Completed);
    assert_eq!(t.job(&job.id).await.state, JobState::Completed);
}

pub async fn an_old_lease_beside_a_live_one_is_refused(t: TestStore) {
    t.agent(1).await;
    let old = t.claim_one().await;
    t.finish(&lease(&old), JobEnd::Requeue { run_at: None }).await.unwrap();
    let live = t.claim_one().await;
    let finishes = [&old, &live].map(|job| Finish { lease: lease(job), end: completed() });
    // With a claim: there all ends travel in one statement where that is cheaper.
    let request = FinishAndClaim { finishes: finishes.to_vec(), ..t.claim_request(&t.node, 1, 5) };
    let answers = t.store.run(request).await.unwrap().finished;
    assert!(matches!(&answers[..], [Err(StoreError::LeaseLost(_)), Ok(JobState::Completed)]), "{answers:?}");
}

pub async fn one_refused_finish_does_not_harm_its_neighbours(t: TestStore) {
    let task = t.agent(3).await;
    let jobs = t.claim(3).await;
    t.complete(&jobs[1]).await.unwrap();
    let finishes = jobs.iter().map(|job| Finish { lease: lease(job), end: completed() }).collect();
    let outcome = t.store.run(FinishAndClaim { finishes, claim: None, now: t.now() }).await.unwrap();
    let ok: Vec<bool> = outcome.finished.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, false, true]);
    assert_eq!(t.task(&task.id).await.counts.completed, 3);
    let gone = JobEnd::Cancelled { code: None, output_json: None };
    assert_lease_lost(t.finish(&lease(&jobs[0]), gone).await);
}
