//! Schedules: each time is one node's, and a node that dies loses none.

use std::time::Duration;

use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    AddSchedule, DueSchedules, FireSchedule, ListFirings, ListSchedules, NextScheduleAt, ReadSchedule, RemoveSchedule,
    SetSchedule, SettleFiring, TakeFirings,
};
use matsu_core::principal::Principal;
use matsu_core::schedule::{FiringOutcome, FiringState, NewSchedule, Overlap, Plan, Rule, Schedule};

use crate::harness::TestStore;

const MINUTE: Duration = Duration::from_secs(60);

async fn added(t: &TestStore, name: &str, next_at: Timestamp) -> Schedule {
    let new = NewSchedule {
        owner: Principal::local_user(),
        name: name.to_owned(),
        rule: Rule::Every { seconds: 60 },
        plan: Plan::Run(serde_json::Map::new()),
        directory: Some("/work".to_owned()),
        overlap: Overlap::Queue,
        catch_up: true,
        next_at,
    };
    t.store.run(AddSchedule { new: new.clone(), now: t.now() }).await.unwrap()
}

pub async fn a_time_fires_once_over_all_nodes(t: TestStore) {
    let (now, later) = (t.now(), t.now().plus(MINUTE));
    let schedule = added(&t, "news", now).await;
    assert_eq!(t.store.run(NextScheduleAt).await.unwrap(), Some(now));
    assert_eq!(t.store.run(DueSchedules { now, rows_max: 10 }).await.unwrap(), [schedule.clone()]);
    assert!(
        t.store
            .run(FireSchedule { schedule: schedule.clone(), state: FiringState::Waiting, next_at: Some(later), now })
            .await
            .unwrap()
    );
    assert!(
        !t.store
            .run(FireSchedule { schedule: schedule.clone(), state: FiringState::Waiting, next_at: Some(later), now })
            .await
            .unwrap(),
        "the other node"
    );
    assert_eq!(t.store.run(DueSchedules { now, rows_max: 10 }).await.unwrap(), []);
    let firings = t.store.run(ListFirings(schedule.id.clone(), PageRequest::default())).await.unwrap().items;
    assert_eq!(firings.len(), 1);
    assert_eq!((firings[0].due_at, firings[0].state), (now, FiringState::Waiting));
}

pub async fn a_firing_of_a_node_that_died_is_taken_again_and_settled_once(t: TestStore) {
    let (now, later) = (t.now(), t.now().plus(MINUTE));
    let schedule = added(&t, "news", now).await;
    t.store
        .run(FireSchedule { schedule: schedule.clone(), state: FiringState::Waiting, next_at: None, now })
        .await
        .unwrap();
    let taken = t.store.run(TakeFirings { now, again_at: later, rows_max: 10 }).await.unwrap();
    assert_eq!((taken.len(), &taken[0].1.id), (1, &schedule.id));
    assert_eq!(t.store.run(TakeFirings { now, again_at: later, rows_max: 10 }).await.unwrap(), [], "it is taken");
    assert_eq!(t.store.run(NextScheduleAt).await.unwrap(), Some(later));
    let again = t.store.run(TakeFirings { now: later, again_at: later.plus(MINUTE), rows_max: 10 }).await.unwrap();
    assert_eq!(again[0].0.id, taken[0].0.id);
    let task = TaskId::from_text("task_1");
    t.store
        .run(SettleFiring { id: again[0].0.id.clone(), outcome: FiringOutcome::Started(task.clone()) })
        .await
        .unwrap();
    t.store
        .run(SettleFiring { id: again[0].0.id.clone(), outcome: FiringOutcome::Failed("late".to_owned()) })
        .await
        .unwrap();
    let firings = t.store.run(ListFirings(schedule.id.clone(), PageRequest::default())).await.unwrap().items;
    assert_eq!((firings[0].state, &firings[0].task_id), (FiringState::Started, &Some(task)));
    assert_eq!(t.store.run(NextScheduleAt).await.unwrap(), None);
}

pub async fn schedules_are_their_owners_and_found_by_name(t: TestStore) {
    let now = t.now();
    let schedule = added(&t, "news", now).await;
    let owner = Principal::local_user();
    let same = NewSchedule {
        owner: owner.clone(),
        name: "news".to_owned(),
        rule: Rule::At { at: now },
        plan: Plan::Run(serde_json::Map::new()),
        directory: None,
        overlap: Overlap::Skip,
        catch_up: false,
        next_at: now,
    };
    let refused = t.store.run(AddSchedule { new: same.clone(), now }).await.unwrap_err();
    assert!(refused.to_string().contains("news"), "the name is taken: {refused}");
    assert_eq!(t.store.run(ReadSchedule(owner.clone(), "news".to_owned())).await.unwrap(), schedule);
    assert_eq!(t.store.run(ReadSchedule(owner.clone(), schedule.id.as_str().to_owned())).await.unwrap(), schedule);
    let other = Principal::user("eve");
    assert!(t.store.run(ReadSchedule(other.clone(), "news".to_owned())).await.is_err());
    assert!(t.store.run(RemoveSchedule(other.clone(), "news".to_owned())).await.is_err());
    t.store
        .run(SetSchedule {
            id: schedule.id.clone(),
            paused: Some("paused by its owner".to_owned()),
            next_at: Some(now),
        })
        .await
        .unwrap();
    assert_eq!(t.store.run(DueSchedules { now, rows_max: 10 }).await.unwrap(), [], "it is paused");
    assert_eq!(t.store.run(NextScheduleAt).await.unwrap(), None);
    t.store.run(RemoveSchedule(owner.clone(), "news".to_owned())).await.unwrap();
    assert_eq!(t.store.run(ListSchedules(owner.clone(), PageRequest::default())).await.unwrap().items, []);
}
