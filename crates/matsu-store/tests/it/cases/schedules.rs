//! Schedules: each time is one node's, and a node that dies loses none.

use std::time::Duration;

use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, TaskId};
use matsu_core::notify::{ChannelRow, NoticeEvent};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    AddSchedule, DueSchedules, FailedStarts, FireSchedule, JobFilter, ListFirings, ListJobs, ListSchedules,
    NextScheduleAt, PutChannels, ReadSchedule, ReadTasks, RemoveSchedule, SetSchedule, SettleFiring, TakeFirings,
    TakeNotices,
};
use matsu_core::principal::Principal;
use matsu_core::schedule::{Firing, FiringOutcome, FiringState, NewSchedule, Overlap, Plan, Rule, Schedule};
use matsu_core::task::TaskStatus;
use matsu_core::unstarted::Unstarted;

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

/// At its time.
fn fire(schedule: &Schedule, next_at: Option<Timestamp>, now: Timestamp) -> FireSchedule {
    FireSchedule {
        schedule: schedule.clone(),
        due_at: schedule.next_at.unwrap(),
        state: FiringState::Waiting,
        note: None,
        left_out: Some("too late".to_owned()),
        next_at,
        now,
    }
}

pub async fn times_that_are_left_out_stand_in_the_history_with_the_reason(t: TestStore) {
    let (first, now) = (t.now(), t.now().plus(MINUTE * 10));
    let schedule = added(&t, "news", first).await;
    let due_at = first.plus(MINUTE * 9);
    assert!(t.store.run(FireSchedule { due_at, ..fire(&schedule, Some(now.plus(MINUTE)), now) }).await.unwrap());
    let history = async || t.store.run(ListFirings(schedule.id.clone(), PageRequest::default())).await.unwrap().items;
    let said = |firings: &[Firing]| {
        firings.iter().map(|one| (one.due_at, one.state, one.note.clone().unwrap_or_default())).collect::<Vec<_>>()
    };
    let both = [(due_at, FiringState::Waiting, String::new()), (first, FiringState::Missed, "too late".to_owned())];
    assert_eq!(said(&history().await), both);
    let taken = t.store.run(TakeFirings { now, again_at: now.plus(MINUTE), rows_max: 10 }).await.unwrap();
    assert_eq!(
        taken.iter().map(|(firing, _)| firing.due_at).collect::<Vec<_>>(),
        [due_at],
        "the newest alone is begun"
    );
    // One that is missed itself is begun by no node.
    let schedule = added(&t, "late", first).await;
    let missed = (FiringState::Missed, Some("does not catch up".to_owned()));
    let fired = FireSchedule { state: missed.0, note: missed.1.clone(), left_out: None, ..fire(&schedule, None, now) };
    assert!(t.store.run(fired).await.unwrap());
    let firings = t.store.run(ListFirings(schedule.id.clone(), PageRequest::default())).await.unwrap().items;
    assert_eq!(said(&firings), [(first, missed.0, missed.1.unwrap())]);
    assert_eq!(t.store.run(TakeFirings { now, again_at: now, rows_max: 10 }).await.unwrap(), []);
}

pub async fn a_time_fires_once_over_all_nodes(t: TestStore) {
    let (now, later) = (t.now(), t.now().plus(MINUTE));
    let schedule = added(&t, "news", now).await;
    assert_eq!(t.store.run(NextScheduleAt).await.unwrap(), Some(now));
    assert_eq!(t.store.run(DueSchedules { now, rows_max: 10 }).await.unwrap(), [schedule.clone()]);
    assert!(t.store.run(fire(&schedule, Some(later), now)).await.unwrap());
    assert!(!t.store.run(fire(&schedule, Some(later), now)).await.unwrap(), "the other node");
    assert_eq!(t.store.run(DueSchedules { now, rows_max: 10 }).await.unwrap(), []);
    let firings = t.store.run(ListFirings(schedule.id.clone(), PageRequest::default())).await.unwrap().items;
    assert_eq!(firings.len(), 1);
    assert_eq!((firings[0].due_at, firings[0].state), (now, FiringState::Waiting));
}

/// Work that could not start.
pub fn unstarted(t: &TestStore, why: &str) -> Box<Unstarted> {
    Box::new(Unstarted {
        task_id: TaskId::from_text(format!("task_{why}")),
        job_id: JobId::from_text(format!("j_{why}")),
        owner: Principal::local_user(),
        title: "could not start".to_owned(),
        started_in: None,
        agents: vec!["nope".to_owned()],
        code: "AGENT_NOT_FOUND".to_owned(),
        why: why.to_owned(),
        message: format!("it could not start: {why}"),
        at: t.now(),
    })
}

pub async fn a_start_that_failed_is_a_failed_task_with_a_notice(t: TestStore) {
    let (now, later) = (t.now(), t.now().plus(MINUTE));
    let owner = Principal::local_user();
    let events = vec![NoticeEvent::Failed];
    let phone = ChannelRow { name: "phone".to_owned(), owner, events, reply_topic: "replies".to_owned() };
    t.store.run(PutChannels { channels: vec![phone], now }).await.unwrap();
    let schedule = added(&t, "news", now).await;
    t.store.run(fire(&schedule, Some(later), now)).await.unwrap();
    let taken = t.store.run(TakeFirings { now, again_at: later, rows_max: 10 }).await.unwrap();
    assert_eq!(t.store.run(FailedStarts).await.unwrap(), [], "nothing has failed yet");
    let settle = SettleFiring { id: taken[0].0.id.clone(), outcome: FiringOutcome::Failed(unstarted(&t, "gone")) };
    for _ in 0..2 {
        t.store.run(settle.clone()).await.unwrap();
    }
    let task = t.store.run(ReadTasks(vec![unstarted(&t, "gone").task_id])).await.unwrap().remove(0);
    assert_eq!((task.status, task.counts.failed, task.counts.total()), (TaskStatus::Failed, 1, 1));
    assert!(task.is_unstarted() && task.finished_at.is_some() && task.agents() == ["nope"], "{task:?}");
    let filter = JobFilter { task_id: Some(task.id.clone()), ..JobFilter::default() };
    let jobs = t.store.run(ListJobs { filter, page: PageRequest::default() }).await.unwrap().items;
    assert_eq!(jobs[0].error_message.as_deref(), Some("it could not start: gone"));
    assert_eq!(t.claim(1).await, [], "there is nothing to run");
    let phone = vec!["phone".to_owned()];
    let due = t.store.run(TakeNotices { channels: phone, now: later, again_at: later, rows_max: 10 }).await.unwrap();
    assert_eq!(due.iter().map(|one| (&one.task_id, one.event)).collect::<Vec<_>>(), [(&task.id, NoticeEvent::Failed)]);
    let firings = t.store.run(ListFirings(schedule.id.clone(), PageRequest::default())).await.unwrap().items;
    assert_eq!((firings[0].task_id.as_ref(), firings[0].note.as_deref()), (Some(&task.id), Some("gone")));
    let failed = t.store.run(FailedStarts).await.unwrap();
    let said = failed.iter().map(|one| (one.kind.as_str(), one.name.as_str(), one.why.as_str())).collect::<Vec<_>>();
    assert_eq!(said, [("schedule", "news", "gone")]);
    // The next time starts.
    let schedule = t.store.run(ReadSchedule(Principal::local_user(), "news".to_owned())).await.unwrap();
    t.store.run(fire(&schedule, None, later)).await.unwrap();
    let taken = t.store.run(TakeFirings { now: later, again_at: later, rows_max: 10 }).await.unwrap();
    let outcome = FiringOutcome::Started(TaskId::from_text("task_2"));
    t.store.run(SettleFiring { id: taken[0].0.id.clone(), outcome }).await.unwrap();
    assert_eq!(t.store.run(FailedStarts).await.unwrap(), [], "the last start did not fail");
}

pub async fn a_firing_of_a_node_that_died_is_taken_again_and_settled_once(t: TestStore) {
    let (now, later) = (t.now(), t.now().plus(MINUTE));
    let schedule = added(&t, "news", now).await;
    t.store.run(fire(&schedule, None, now)).await.unwrap();
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
        .run(SettleFiring { id: again[0].0.id.clone(), outcome: FiringOutcome::Failed(unstarted(&t, "late")) })
        .await
        .unwrap();
    let lookup = t.store.run(ReadTasks(vec![unstarted(&t, "late").task_id])).await.unwrap();
    assert_eq!(lookup, [], "what came too late makes no task");
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
