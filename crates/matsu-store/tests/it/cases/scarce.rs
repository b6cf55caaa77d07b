//! What is scarce: permits, budgets, turns.

use std::sync::Arc;

use matsu_core::budget::{BudgetLine, BudgetUnit};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::NodeId;
use matsu_core::job::{Job, JobKind, JobState};
use matsu_core::ports::store::{
    Finish, HoldTurns, MovePermit, ParkForInput, PermitStep, ReadBudget, ReadSlots, Reserve, ResumeFromInput, Settle,
    StoreError, TakeTurn,
};
use matsu_core::slot::{Slot, SlotLimits};
use matsu_core::task::{Task, TaskKind};

use crate::harness::{TestStore, completed, lease};

async fn claim(t: &TestStore, permits_max: u32) -> Vec<Job> {
    t.store.run(t.claim_request(&t.node, 50, permits_max)).await.unwrap().claimed
}

pub async fn permits_bound_what_runs_at_once(t: TestStore) {
    t.agent(5).await;
    let first = claim(&t, 2).await;
    assert_eq!(first.len(), 2);
    let other = t.second_node().await;
    let elsewhere = t.store.run(t.claim_request(&other, 5, 2)).await.unwrap();
    assert_eq!(elsewhere.claimed, [], "the limit holds over all nodes");
    assert!(elsewhere.next_run_at.is_some(), "and the other node knows to look again");
    t.complete(&first[0]).await.unwrap();
    assert_eq!(t.store.run(t.claim_request(&other, 5, 2)).await.unwrap().claimed.len(), 1);
    t.store.reap_node(&other, t.now()).await.unwrap();
    assert_eq!(claim(&t, 2).await.len(), 1, "a dead node's permits are free");
}

pub async fn a_wider_slot_gets_more_permits(t: TestStore) {
    t.agent(9).await;
    assert_eq!(claim(&t, 2).await.len(), 2);
    assert_eq!(claim(&t, 5).await.len(), 3);
    assert_eq!(claim(&t, 1).await.len(), 0, "a narrower limit takes nothing away, and gives nothing");
}

pub async fn a_lent_permit_serves_a_descendant_and_comes_back(t: TestStore) {
    let parent = t.agent(1).await;
    let outer = claim(&t, 1).await.pop().unwrap();
    let mut child = t.new_task(TaskKind::Agent);
    child.parent_id = Some(parent.id);
    child.jobs = vec![t.new_job(JobKind::Noop), t.new_job(JobKind::Noop)];
    t.insert(child).await;
    assert_eq!(claim(&t, 1).await, []);
    t.store.run(MovePermit { lease: lease(&outer), step: PermitStep::Lend }).await.unwrap();
    t.store.run(MovePermit { lease: lease(&outer), step: PermitStep::Lend }).await.unwrap();
    let inner = claim(&t, 1).await.pop().unwrap();
    t.store.run(MovePermit { lease: lease(&outer), step: PermitStep::Regain { permits_max: 1 } }).await.unwrap();
    t.store.run(MovePermit { lease: lease(&outer), step: PermitStep::Regain { permits_max: 1 } }).await.unwrap();
    assert_eq!(claim(&t, 1).await, [], "one permit is taken, and one more by the one that came back");
    t.complete(&outer).await.unwrap();
    assert_eq!(claim(&t, 1).await, [], "an extra permit ends with its job");
    t.complete(&inner).await.unwrap();
    assert_eq!(claim(&t, 1).await.len(), 1);
}

pub async fn a_parked_job_regains_no_second_permit(t: TestStore) {
    t.agent(3).await;
    let asking = claim(&t, 2).await.swap_remove(0);
    t.store.run(MovePermit { lease: lease(&asking), step: PermitStep::Lend }).await.unwrap();
    t.store.run(ParkForInput { lease: lease(&asking), question_json: "{}".to_owned(), now: t.now() }).await.unwrap();
    t.store.run(MovePermit { lease: lease(&asking), step: PermitStep::Regain { permits_max: 2 } }).await.unwrap();
    assert!(
        t.store.run(ResumeFromInput { lease: lease(&asking), permits_max: 2, now: t.now() }).await.unwrap(),
        "one permit is free"
    );
    t.complete(&asking).await.unwrap();
    assert_eq!(claim(&t, 2).await.len(), 1);
}

pub async fn inner_permits_are_bounded_and_end_with_the_job(t: TestStore) {
    t.agent(2).await;
    let jobs = claim(&t, 5).await;
    let (a, b) = (lease(&jobs[0]), lease(&jobs[1]));
    assert!(
        t.store
            .run(MovePermit { lease: a.clone(), step: PermitStep::TakeInner { slot: Slot::Browser, permits_max: 1 } })
            .await
            .unwrap()
    );
    assert!(
        t.store
            .run(MovePermit { lease: a.clone(), step: PermitStep::TakeInner { slot: Slot::Browser, permits_max: 1 } })
            .await
            .unwrap(),
        "already held"
    );
    assert!(
        !t.store
            .run(MovePermit { lease: b.clone(), step: PermitStep::TakeInner { slot: Slot::Browser, permits_max: 1 } })
            .await
            .unwrap()
    );
    t.store.run(MovePermit { lease: a.clone(), step: PermitStep::FreeInner { slot: Slot::Browser } }).await.unwrap();
    t.store.run(MovePermit { lease: a.clone(), step: PermitStep::FreeInner { slot: Slot::Browser } }).await.unwrap();
    assert!(
        t.store
            .run(MovePermit { lease: b.clone(), step: PermitStep::TakeInner { slot: Slot::Browser, permits_max: 1 } })
            .await
            .unwrap()
    );
    t.complete(&jobs[1]).await.unwrap();
    assert!(
        t.store
            .run(MovePermit { lease: a.clone(), step: PermitStep::TakeInner { slot: Slot::Browser, permits_max: 1 } })
            .await
            .unwrap()
    );
}

pub async fn a_job_holds_one_inner_permit_at_a_time(t: TestStore) {
    t.agent(1).await;
    let job = lease(&claim(&t, 5).await[0]);
    assert!(
        t.store
            .run(MovePermit { lease: job.clone(), step: PermitStep::TakeInner { slot: Slot::Browser, permits_max: 1 } })
            .await
            .unwrap()
    );
    let second = t
        .store
        .run(MovePermit { lease: job.clone(), step: PermitStep::TakeInner { slot: Slot::Llm, permits_max: 4 } })
        .await;
    assert!(matches!(second, Err(StoreError::LimitExceeded(_))), "{second:?}");
    t.store.run(MovePermit { lease: job.clone(), step: PermitStep::FreeInner { slot: Slot::Browser } }).await.unwrap();
    assert!(
        t.store
            .run(MovePermit { lease: job.clone(), step: PermitStep::TakeInner { slot: Slot::Llm, permits_max: 4 } })
            .await
            .unwrap()
    );
}

pub async fn the_smallest_limit_of_all_live_nodes_counts(t: TestStore) {
    t.agent(9).await;
    let careful = NodeId::mint(t.now());
    let limits = SlotLimits { network_client: 2, browser: 1, ..SlotLimits::for_cores(1) };
    t.register_with(&careful, Some(limits)).await;
    assert_eq!(claim(&t, 5).await.len(), 2, "one node allows five, another two");
    let slots = t.store.run(ReadSlots).await.unwrap();
    assert_eq!(slots.iter().map(|slot| slot.slot).collect::<Vec<_>>(), Slot::ALL);
    assert_eq!((slots[0].permits_max, slots[0].taken, slots[0].running), (Some(2), 2, 2));
    t.store.reap_node(&careful, t.now()).await.unwrap();
    assert_eq!(claim(&t, 5).await.len(), 3, "its promise went with it");
    assert_eq!(t.store.run(ReadSlots).await.unwrap()[0].permits_max, None);
}

async fn with_budget(t: &TestStore, limit: i64, jobs: usize) -> (Task, Vec<Job>) {
    let mut new = t.new_task(TaskKind::Research);
    new.budget = vec![BudgetLine { unit: BudgetUnit::Pages, limit, used: 0 }];
    new.jobs = (0..jobs).map(|_| t.new_job(JobKind::Search)).collect();
    let task = t.insert(new).await;
    (task, t.claim(50).await)
}

pub async fn a_budget_is_never_exceeded(t: TestStore) {
    let t = Arc::new(t);
    let (task, jobs) = with_budget(&t, 20, 4).await;
    let reserving = (0..40).map(|n| {
        let (t, lease) = (Arc::clone(&t), lease(&jobs[n % 4]));
        async move {
            t.store
                .run(Reserve { lease: lease.clone(), unit: BudgetUnit::Pages, amount: 3 })
                .await
                .map_or(0, |reserved| reserved.amount)
        }
    });
    let granted: i64 = futures_util::future::join_all(reserving).await.into_iter().sum();
    assert_eq!(granted, 20);
    assert_eq!(t.store.run(ReadBudget(task.id.clone())).await.unwrap()[0].used, 20);
    let other = t.store.run(Reserve { lease: lease(&jobs[0]), unit: BudgetUnit::Tokens, amount: 1_000 }).await.unwrap();
    assert_eq!(other.amount, 1_000, "what has no limit is granted in full");
}

pub async fn a_spent_budget_is_a_refusal(t: TestStore) {
    let (task, jobs) = with_budget(&t, 5, 2).await;
    assert_eq!(
        t.store.run(Reserve { lease: lease(&jobs[0]), unit: BudgetUnit::Pages, amount: 9 }).await.unwrap().amount,
        5
    );
    let refused = t.store.run(Reserve { lease: lease(&jobs[1]), unit: BudgetUnit::Pages, amount: 1 }).await;
    assert!(matches!(&refused, Err(error) if error.code() == ErrorCode::BudgetExhausted), "{refused:?}");
    t.complete(&jobs[0]).await.unwrap();
    assert_eq!(
        t.store.run(Reserve { lease: lease(&jobs[1]), unit: BudgetUnit::Pages, amount: 1 }).await.unwrap().amount,
        1,
        "it came back"
    );
    assert_eq!(t.store.run(ReadBudget(task.id.clone())).await.unwrap()[0].used, 1);
}

pub async fn what_was_not_spent_comes_back(t: TestStore) {
    let (task, jobs) = with_budget(&t, 20, 3).await;
    let used = async || t.store.run(ReadBudget(task.id.clone())).await.unwrap()[0].used;
    let settled = t.store.run(Reserve { lease: lease(&jobs[0]), unit: BudgetUnit::Pages, amount: 8 }).await.unwrap();
    t.store.run(Settle { lease: lease(&jobs[0]), reservation: settled.clone(), spent: 5 }).await.unwrap();
    assert_eq!(used().await, 5);
    assert!(
        t.store.run(Settle { lease: lease(&jobs[0]), reservation: settled.clone(), spent: 5 }).await.is_err(),
        "settled once"
    );
    t.store.run(Reserve { lease: lease(&jobs[1]), unit: BudgetUnit::Pages, amount: 8 }).await.unwrap();
    assert_eq!(used().await, 13);
    t.complete(&jobs[1]).await.unwrap();
    assert_eq!(used().await, 5, "the job ended without settling");
    t.store.run(Reserve { lease: lease(&jobs[2]), unit: BudgetUnit::Pages, amount: 8 }).await.unwrap();
    t.store.reap_node(&t.node, t.now()).await.unwrap();
    assert_eq!(used().await, 5, "the owner died");
}

pub async fn turns_keep_their_distance(t: TestStore) {
    let now = t.now();
    let mut turns = Vec::new();
    for _ in 0..3 {
        turns.push(
            t.store.run(TakeTurn { key: "example.org".to_owned(), step_ms: 500, now }).await.unwrap().as_millis()
                - now.as_millis(),
        );
    }
    assert_eq!(turns, [0, 500, 1_000]);
    assert_eq!(
        t.store.run(TakeTurn { key: "example.com".to_owned(), step_ms: 500, now }).await.unwrap(),
        now,
        "each key has its own line"
    );
    let later = now.plus(std::time::Duration::from_secs(60));
    assert_eq!(t.store.run(TakeTurn { key: "example.org".to_owned(), step_ms: 500, now: later }).await.unwrap(), later);
}

pub async fn turns_can_be_held_and_are_never_brought_forward(t: TestStore) {
    let (now, second) = (t.now(), std::time::Duration::from_secs(1));
    t.store.run(HoldTurns { key: "example.org".to_owned(), until: now.plus(second * 3) }).await.unwrap();
    assert_eq!(
        t.store.run(TakeTurn { key: "example.org".to_owned(), step_ms: 500, now }).await.unwrap(),
        now.plus(second * 3)
    );
    t.store.run(HoldTurns { key: "example.org".to_owned(), until: now.plus(second) }).await.unwrap();
    let next = now.plus(second * 3 + second / 2);
    assert_eq!(t.store.run(TakeTurn { key: "example.org".to_owned(), step_ms: 500, now }).await.unwrap(), next);
    assert_eq!(
        t.store.run(TakeTurn { key: "example.com".to_owned(), step_ms: 500, now }).await.unwrap(),
        now,
        "each key has its own line"
    );
}

pub async fn a_clock_set_back_does_not_put_turns_off(t: TestStore) {
    let now = t.now();
    t.store.run(TakeTurn { key: "example.org".to_owned(), step_ms: 500, now }).await.unwrap();
    let earlier = now.minus(std::time::Duration::from_secs(3_600));
    assert_eq!(
        t.store.run(TakeTurn { key: "example.org".to_owned(), step_ms: 500, now: earlier }).await.unwrap(),
        earlier
    );
}

pub async fn pages_beyond_what_was_set_aside_cannot_be_spent(t: TestStore) {
    let (task, jobs) = with_budget(&t, 2, 1).await;
    let page = t.store.run(Reserve { lease: lease(&jobs[0]), unit: BudgetUnit::Pages, amount: 1 }).await.unwrap();
    t.store.run(Settle { lease: lease(&jobs[0]), reservation: page.clone(), spent: 5 }).await.unwrap();
    assert_eq!(t.store.run(ReadBudget(task.id.clone())).await.unwrap()[0].used, 1);
    let page = t.store.run(Reserve { lease: lease(&jobs[0]), unit: BudgetUnit::Pages, amount: 1 }).await.unwrap();
    t.store.run(Settle { lease: lease(&jobs[0]), reservation: page.clone(), spent: -7 }).await.unwrap();
    assert_eq!(t.store.run(ReadBudget(task.id.clone())).await.unwrap()[0].used, 1);
}

/// In one round with a claim, as a dispatcher settles it.
pub async fn what_a_job_that_asks_had_set_aside_comes_back(t: TestStore) {
    let (task, jobs) = with_budget(&t, 20, 1).await;
    t.store.run(Reserve { lease: lease(&jobs[0]), unit: BudgetUnit::Pages, amount: 8 }).await.unwrap();
    t.store.run(ParkForInput { lease: lease(&jobs[0]), question_json: "{}".to_owned(), now: t.now() }).await.unwrap();
    let mut round = t.claim_request(&t.node, 1, 50);
    round.finishes.push(Finish { lease: lease(&jobs[0]), end: completed() });
    let outcome = t.store.run(round).await.unwrap();
    assert_eq!(outcome.finished[0].as_ref().unwrap(), &JobState::Completed);
    assert_eq!(t.store.run(ReadBudget(task.id.clone())).await.unwrap()[0].used, 0);
}
