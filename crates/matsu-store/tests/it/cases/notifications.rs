//! Notifications: one interrupt with each order to stop, given, acknowledged, voided, and the guard on every write.

use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::{NotificationId, TaskId};
use matsu_core::job::JobKind;
use matsu_core::notification::{NewNotice, Notification, NotificationAction, NotificationKind};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    AcknowledgeGiven, EndSession, Enqueue, Give, InsertNotice, ListNotifications, MarkRead, Marking, ParkForInput,
    PendingInterrupts, ReadStanding, ReadTask, Reassign, SessionKey, SetStatus, Steer, StopTask, StoreError,
    SweepNotifications, TakeBackNotifications, UnreadResult, UnreadResults,
};
use matsu_core::principal::Principal;
use matsu_core::session::{EndReason, Session, SessionState, Unread};
use matsu_core::task::{StopMode, StopReason, Task, TaskKind};

use crate::harness::{TestStore, lease};

async fn steer(t: &TestStore, task: &TaskId, to: Steer) {
    let by = Principal::local_user();
    t.store.run(SetStatus { task_id: task.clone(), to, by, message: None, now: t.now() }).await.unwrap();
}

async fn unread(t: &TestStore, session: &Session) -> Unread {
    t.store.run(ReadStanding { key: SessionKey::Id(session.id.clone()), now: t.now() }).await.unwrap().unwrap().unread
}

async fn give(t: &TestStore, session: &Session, marking: Marking) -> Vec<Notification> {
    let (session_id, ack_ids) = (session.id.clone(), Vec::new());
    t.store.run(Give { session_id, marking, ack_ids, rows_max: 50, now: t.now() }).await.unwrap()
}

fn actions(given: &[Notification]) -> Vec<NotificationAction> {
    given.iter().map(|notification| notification.action).collect()
}

async fn at_work(t: &TestStore) -> (TaskId, Session) {
    t.new_agent("worker").await;
    let task = t.task_for("worker").await;
    (task.id, t.begin("worker").await.unwrap())
}

pub async fn each_order_to_stop_makes_exactly_one_interrupt(t: TestStore) {
    let (task, session) = at_work(&t).await;
    steer(&t, &task, Steer::Pause).await;
    steer(&t, &task, Steer::Pause).await;
    assert_eq!(actions(&give(&t, &session, Marking::Nothing).await), [NotificationAction::Pause]);
    steer(&t, &task, Steer::Block).await;
    let given = give(&t, &session, Marking::Nothing).await;
    assert_eq!(actions(&given), [NotificationAction::Block], "a harder order replaces the softer one");
    assert_eq!((given[0].kind, given[0].task_id.as_ref()), (NotificationKind::Interrupt, Some(&task)));
    let (mode, reason) = (StopMode::Graceful, StopReason::UserCancelled);
    let stop = StopTask { task_id: task.clone(), mode, reason, now: t.now() };
    t.store.run(stop.clone()).await.unwrap();
    t.store.run(stop).await.unwrap();
    assert_eq!(actions(&give(&t, &session, Marking::Nothing).await), [NotificationAction::Cancel]);
}

pub async fn a_reassigned_task_interrupts_who_had_it(t: TestStore) {
    let (task, session) = at_work(&t).await;
    t.new_agent("other").await;
    let to = Some("other".to_owned());
    t.store.run(Reassign { task_id: task, to, now: t.now() }).await.unwrap();
    assert_eq!(actions(&give(&t, &session, Marking::Nothing).await), [NotificationAction::Cancel]);
    let taken = t.begin("other").await.unwrap();
    assert_eq!(give(&t, &taken, Marking::Nothing).await, []);
}

pub async fn an_interrupt_reaches_one_session_and_no_other(t: TestStore) {
    let (task, session) = at_work(&t).await;
    t.open_chat("worker").await;
    let talking = t.begin("worker").await.unwrap();
    t.new_agent("other").await;
    t.open_chat("other").await;
    let other_user = t.begin("other").await.unwrap();
    steer(&t, &task, Steer::Block).await;
    for other in [&talking, &other_user] {
        assert_eq!(give(&t, other, Marking::Given).await, []);
    }
    assert_eq!(unread(&t, &session).await, Unread { interrupts: 1, others: 0, delivered: 0 });
    // Without a session at work there is nothing to interrupt.
    steer(&t, &task, Steer::Resume).await;
    let (to, reason) = (SessionState::Ended, EndReason::LoggedOut);
    t.store.run(EndSession { id: session.id, to, reason, now: t.now() }).await.unwrap();
    steer(&t, &task, Steer::Block).await;
    assert_eq!(t.store.run(PendingInterrupts { now: t.now() }).await.unwrap(), []);
}

pub async fn given_is_not_acknowledged(t: TestStore) {
    let (task, session) = at_work(&t).await;
    steer(&t, &task, Steer::Block).await;
    assert_eq!(give(&t, &session, Marking::Nothing).await.len(), 1);
    assert_eq!(unread(&t, &session).await.delivered, 0, "a look changes nothing");
    assert_eq!(t.store.run(AcknowledgeGiven { session: session.id.clone(), now: t.now() }).await.unwrap(), 0);
    let given = give(&t, &session, Marking::Given).await;
    assert_eq!(unread(&t, &session).await, Unread { interrupts: 1, others: 0, delivered: 1 });
    t.store.run(TakeBackNotifications { session: session.id.clone(), ids: vec![given[0].id.clone()] }).await.unwrap();
    assert_eq!(unread(&t, &session).await.delivered, 0, "a lost reply has given nothing");
    give(&t, &session, Marking::Given).await;
    t.pass(Duration::from_secs(1));
    let notice = NewNotice {
        id: NotificationId::mint(t.now()),
        session_id: session.id.clone(),
        kind: NotificationKind::Message,
        action: NotificationAction::UserMessage,
        text: "mind the gap".to_owned(),
        instruction: None,
        now: t.now(),
    };
    t.store.run(InsertNotice(notice.clone())).await.unwrap();
    assert_eq!(
        t.store.run(AcknowledgeGiven { session: session.id.clone(), now: t.now() }).await.unwrap(),
        1,
        "exactly what was given"
    );
    let left = give(&t, &session, Marking::Nothing).await;
    assert_eq!(left.iter().map(|left| left.text.as_deref()).collect::<Vec<_>>(), [Some("mind the gap")]);
    let ack_ids = vec![left[0].id.clone()];
    let request =
        Give { session_id: session.id.clone(), marking: Marking::Nothing, ack_ids, rows_max: 50, now: t.now() };
    assert_eq!(t.store.run(request).await.unwrap(), []);
    let (to, reason) = (SessionState::Ended, EndReason::LoggedOut);
    t.store.run(EndSession { id: session.id, to, reason, now: t.now() }).await.unwrap();
    assert_eq!(t.store.run(InsertNotice(notice)).await.unwrap_err().code(), ErrorCode::SessionEnded);
}

pub async fn resuming_voids_what_was_not_delivered_and_notifies_the_rest(t: TestStore) {
    let (task, session) = at_work(&t).await;
    steer(&t, &task, Steer::Pause).await;
    steer(&t, &task, Steer::Resume).await;
    assert_eq!(give(&t, &session, Marking::Nothing).await, [], "it never knew, and goes on");
    steer(&t, &task, Steer::Pause).await;
    give(&t, &session, Marking::Given).await;
    t.store.run(AcknowledgeGiven { session: session.id.clone(), now: t.now() }).await.unwrap();
    steer(&t, &task, Steer::Resume).await;
    let unread = give(&t, &session, Marking::Nothing).await;
    assert_eq!(actions(&unread), [NotificationAction::Resume]);
    assert_eq!(unread[0].kind, NotificationKind::StatusChange);
}

pub async fn messages_to_a_busy_agent_make_one_notification(t: TestStore) {
    let (_, session) = at_work(&t).await;
    let chat = t.open_chat("worker").await.chat;
    t.message(&chat.id, "first").await;
    let long = "x".repeat(3_000);
    t.message(&chat.id, &long).await;
    let given = give(&t, &session, Marking::Given).await;
    assert_eq!(actions(&given), [NotificationAction::UserMessage]);
    assert_eq!((given[0].text.clone(), given[0].times), (Some(format!("first\n\n{long}")), 2), "all of it, in order");
    t.message(&chat.id, "third").await;
    assert_eq!(give(&t, &session, Marking::Nothing).await.len(), 2, "what was given is not changed behind its back");
}

pub async fn old_notifications_are_swept(t: TestStore) {
    let (task, session) = at_work(&t).await;
    let day = Duration::from_secs(24 * 3_600);
    steer(&t, &task, Steer::Block).await;
    give(&t, &session, Marking::Given).await;
    t.store.run(AcknowledgeGiven { session: session.id.clone(), now: t.now() }).await.unwrap();
    steer(&t, &task, Steer::Resume).await;
    let left = async || {
        t.store
            .run(ListNotifications { session: None, owner: None, page: PageRequest::default() })
            .await
            .unwrap()
            .items
            .len()
    };
    assert_eq!(left().await, 2);
    let sweep = async || {
        t.store
            .run(SweepNotifications { now: t.now(), read_before: t.now().minus(30 * day), rows_max: 10 })
            .await
            .unwrap()
    };
    t.pass(6 * day);
    assert_eq!((sweep().await, left().await), (0, 2));
    t.pass(2 * day);
    assert_eq!((sweep().await, left().await), (1, 1), "unread past its time");
    t.pass(23 * day);
    assert_eq!((sweep().await, left().await), (1, 0), "read and old");
}

pub async fn a_write_that_an_interrupt_overtook_leaves_nothing(t: TestStore) {
    let (task, session) = at_work(&t).await;
    let own = t.research().await;
    let guarded = t.store.guarded(&session.id);
    let enqueue = || Enqueue {
        task_id: Some(own.id.clone()),
        jobs: vec![t.new_job(JobKind::Noop)],
        resume_for: None,
        now: t.now(),
    };
    guarded.run(enqueue()).await.unwrap();
    let before = t.task(&own.id).await;
    steer(&t, &task, Steer::Block).await;
    assert!(matches!(guarded.run(enqueue()).await, Err(StoreError::Interrupted)));
    let new = t.new_task(TaskKind::Research);
    assert!(matches!(guarded.run(new.clone()).await, Err(StoreError::Interrupted)));
    assert_eq!(t.task(&own.id).await, before, "no job, no revision");
    assert!(matches!(t.store.run(ReadTask(new.id.clone())).await, Err(StoreError::NotFound { .. })));
    t.store.run(enqueue()).await.unwrap();
    give(&t, &session, Marking::Given).await;
    t.store.run(AcknowledgeGiven { session: session.id.clone(), now: t.now() }).await.unwrap();
    guarded.run(enqueue()).await.unwrap();
    let (to, reason) = (SessionState::Ended, EndReason::LoggedOut);
    t.store.run(EndSession { id: session.id.clone(), to, reason, now: t.now() }).await.unwrap();
    assert_eq!(guarded.run(enqueue()).await.unwrap_err().code(), ErrorCode::SessionEnded);
}

pub async fn of_an_interrupt_and_a_write_at_once_one_comes_first(t: TestStore) {
    let (task, session) = at_work(&t).await;
    let guarded = t.store.guarded(&session.id);
    for _ in 0..30 {
        let own = t.research().await;
        let jobs = vec![t.new_job(JobKind::Noop)];
        let write = guarded.run(Enqueue { task_id: Some(own.id.clone()), jobs, resume_for: None, now: t.now() });
        let (written, ()) = tokio::join!(write, steer(&t, &task, Steer::Block));
        let queued = t.task(&own.id).await.counts.queued;
        match written {
            Ok(_) => assert_eq!(queued, 1),
            Err(StoreError::Interrupted) => assert_eq!(queued, 0),
            Err(error) => panic!("{error}"),
        }
        steer(&t, &task, Steer::Resume).await;
    }
}

pub async fn unread_results_are_listed(t: TestStore) {
    let me = Principal::local_user();
    let task = t.agent(1).await;
    assert_eq!(t.store.run(UnreadResults(me.clone(), 10)).await.unwrap(), []);
    let job = t.claim_one().await;
    t.complete(&job).await.unwrap();
    let of = |task: &Task, revision| UnreadResult { task_id: task.id.clone(), revision, started_in: None };
    let ended = of(&task, t.task(&task.id).await.finished_revision);
    assert_eq!(t.store.run(UnreadResults(me.clone(), 10)).await.unwrap(), [ended.clone()]);
    assert_eq!(t.store.run(UnreadResults(me.clone(), 0)).await.unwrap(), []);
    assert_eq!(t.store.run(UnreadResults(Principal::user("other"), 10)).await.unwrap(), []);
    let asking = t.agent(1).await;
    let held = t.claim(1).await;
    t.store
        .run(ParkForInput {
            lease: lease(&held[0]),
            question_json: r#"{"id":"q1","text":"?","options":[]}"#.to_owned(),
            now: t.now(),
        })
        .await
        .unwrap();
    let asks = of(&asking, t.task(&asking.id).await.attention_revision);
    assert_eq!(t.store.run(UnreadResults(me.clone(), 10)).await.unwrap(), [asks.clone(), ended]);
    t.store.run(MarkRead { ids: vec![task.id], now: t.now() }).await.unwrap();
    assert_eq!(t.store.run(UnreadResults(me.clone(), 10)).await.unwrap(), [asks]);
}
