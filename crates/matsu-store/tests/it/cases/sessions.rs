//! Sessions: what they are begun for, how long they live, what their end leaves behind.

use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobKind, JobState};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    EndSession, JobFilter, ListJobs, ListSessions, ReadReport, ReadSession, ReadStanding, Reassign, Report, Reported,
    SessionFilter, SessionKey, SetStatus, Steer, StopTask, StoreError, SweepSessions, TouchSession,
};
use matsu_core::principal::Principal;
use matsu_core::session::{EndReason, Outcome, Purpose, Session, SessionState};
use matsu_core::task::{StopMode, StopReason, Task, TaskKind, TaskStatus};

use crate::harness::TestStore;

async fn steer(t: &TestStore, task: &TaskId, to: Steer) -> Task {
    let by = Principal::local_user();
    t.store.run(SetStatus { task_id: task.clone(), to, by, message: None, now: t.now() }).await.unwrap()
}

async fn end(t: &TestStore, session: &Session, to: SessionState, reason: EndReason) -> Session {
    t.store.run(EndSession { id: session.id.clone(), to, reason, now: t.now() }).await.unwrap()
}

async fn report(t: &TestStore, session: &Session, outcome: Outcome) -> Result<Reported, StoreError> {
    let report = Report {
        session_id: session.id.clone(),
        outcome,
        summary: Some("what came of it".to_owned()),
        next_steps: None,
        job_id: JobId::mint(t.now()),
        now: t.now(),
    };
    t.store.run(report).await
}

pub async fn a_task_comes_before_a_chat_and_nothing_is_an_end(t: TestStore) {
    t.new_agent("worker").await;
    let refused = t.begin("worker").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NothingToDo);
    assert_eq!(t.begin("other-user").await.unwrap_err().code(), ErrorCode::ResourceNotFound);
    let chat = t.open_chat("worker").await.chat;
    let task = t.task_for("worker").await;
    let working = t.begin("worker").await.unwrap();
    assert_eq!((working.purpose, working.task_id.as_ref()), (Purpose::Task, Some(&task.id)));
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Running);
    let talking = t.begin("worker").await.unwrap();
    assert_eq!((talking.purpose, talking.chat_id.as_ref()), (Purpose::Chat, Some(&chat.id)));
    let (first, second) = (
        t.store.run(ReadSession(working.id.clone())).await.unwrap(),
        t.store.run(ReadSession(talking.id.clone())).await.unwrap(),
    );
    assert_eq!((first.state, second.state), (SessionState::Active, SessionState::Active), "side by side");
    end(&t, &talking, SessionState::Ended, EndReason::LoggedOut).await;
    assert_eq!(t.store.run(ReadSession(working.id.clone())).await.unwrap().state, SessionState::Active);
}

pub async fn each_run_of_a_task_has_a_session_that_outlives_neither_it_nor_its_successor(t: TestStore) {
    let mut task = t.new_task(TaskKind::Agent);
    task.jobs = vec![t.new_job(JobKind::AgentRun), t.new_job(JobKind::AgentRun)];
    t.insert(task).await;
    let (one, other) = (t.claim_one().await, t.claim_one().await);
    let (first, beside) = (t.begin_for(&one).await.unwrap(), t.begin_for(&other).await.unwrap());
    assert_eq!(t.store.run(ReadSession(first.id.clone())).await.unwrap().state, SessionState::Active, "side by side");
    assert_ne!(first.run_id, beside.run_id, "each run has an id of its own");
    let again = t.begin_for(&one).await.unwrap();
    assert!(again.run_id.is_some() && again.run_id != first.run_id, "a program that starts again is another run");
    assert_eq!(t.store.run(ReadSession(again.id.clone())).await.unwrap().run_id, again.run_id);
    let gone = t.store.run(ReadSession(first.id.clone())).await.unwrap();
    assert_eq!((gone.state, gone.end_reason), (SessionState::Ended, Some(EndReason::TakenOver)));
    assert_eq!(t.store.run(ReadReport(again.id.clone())).await.unwrap(), None);
    report(&t, &again, Outcome::Success).await.unwrap();
    let said = t.store.run(ReadReport(again.id.clone())).await.unwrap().unwrap();
    assert_eq!((said.outcome, said.summary.as_deref()), (Outcome::Success, Some("what came of it")));
    // The session of the other job was not ended before its job was settled.
    t.complete(&other).await.unwrap();
    let day = Duration::from_secs(86_400);
    assert_eq!(
        t.store.run(SweepSessions { now: t.now(), ended_before: t.now().minus(day), rows_max: 10 }).await.unwrap(),
        [beside.id.clone()]
    );
    let left = t.store.run(ReadSession(beside.id.clone())).await.unwrap();
    assert_eq!((left.state, left.end_reason), (SessionState::Ended, Some(EndReason::ProcessEnded)));
}

pub async fn an_agent_that_comes_again_takes_over_its_dead_session(t: TestStore) {
    t.new_agent("worker").await;
    t.open_chat("worker").await;
    let first = t.begin("worker").await.unwrap();
    t.pass(Duration::from_secs(1));
    let second = t.begin("worker").await.unwrap();
    let gone = t.store.run(ReadSession(first.id.clone())).await.unwrap();
    assert_eq!((gone.state, gone.end_reason), (SessionState::Ended, Some(EndReason::TakenOver)));
    assert_eq!(second.chat_id, first.chat_id);
    let active = SessionFilter { state: Some(SessionState::Active), ..SessionFilter::default() };
    assert_eq!(
        t.store.run(ListSessions { filter: active.clone(), page: PageRequest::default() }).await.unwrap().items.len(),
        1
    );
}

pub async fn a_token_is_found_by_its_hash_and_lives_while_it_is_used(t: TestStore) {
    t.new_agent("worker").await;
    t.open_chat("worker").await;
    let session = t.begin("worker").await.unwrap();
    let key = SessionKey::TokenHash(format!("hash of {}", session.id));
    let found = t.store.run(ReadStanding { key: key.clone(), now: t.now() }).await.unwrap().unwrap();
    assert_eq!((found.session.id.clone(), found.unread.total()), (session.id.clone(), 0));
    let unknown = SessionKey::TokenHash("of no user".to_owned());
    assert!(t.store.run(ReadStanding { key: unknown.clone(), now: t.now() }).await.unwrap().is_none());
    let later = t.pass(Duration::from_secs(30 * 60));
    let until = later.plus(Duration::from_secs(3_600));
    t.store.run(TouchSession { id: session.id.clone(), now: later, expires_at: until }).await.unwrap();
    t.store.run(TouchSession { id: session.id.clone(), now: later, expires_at: later }).await.unwrap();
    let seen = t.store.run(ReadSession(session.id.clone())).await.unwrap();
    assert_eq!((seen.expires_at, seen.last_seen_at), (until, later), "a call never shortens it");
    let too_late = t.pass(Duration::from_secs(3_601));
    t.store
        .run(TouchSession { id: session.id.clone(), now: too_late, expires_at: too_late.plus(Duration::from_secs(60)) })
        .await
        .unwrap();
    assert_eq!(t.store.run(ReadSession(session.id.clone())).await.unwrap().expires_at, until, "nor revives it");
}

pub async fn what_has_expired_is_swept_and_its_task_waits_again(t: TestStore) {
    t.new_agent("worker").await;
    let task = t.task_for("worker").await;
    let session = t.begin("worker").await.unwrap();
    assert_eq!(t.store.run(SweepSessions { now: t.now(), ended_before: t.now(), rows_max: 10 }).await.unwrap(), []);
    let later = t.pass(Duration::from_secs(3_601));
    assert_eq!(
        t.store.run(SweepSessions { now: later, ended_before: t.now(), rows_max: 10 }).await.unwrap(),
        [session.id.clone()]
    );
    let ended = t.store.run(ReadSession(session.id.clone())).await.unwrap();
    assert_eq!((ended.state, ended.end_reason), (SessionState::Ended, Some(EndReason::Expired)));
    assert_eq!(t.task(&task.id).await.status, TaskStatus::Queued, "a task without a session does not run");
    let forgotten = later.plus(Duration::from_millis(1));
    t.store.run(SweepSessions { now: later, ended_before: forgotten, rows_max: 10 }).await.unwrap();
    assert!(matches!(
        t.store.run(ReadSession(session.id.clone())).await,
        Err(StoreError::NotFound { what: "session", .. })
    ));
}

pub async fn a_report_ends_the_task_and_can_be_repeated(t: TestStore) {
    t.new_agent("worker").await;
    for (outcome, status, state) in [
        (Outcome::Success, TaskStatus::Completed, Some(JobState::Completed)),
        (Outcome::Failed, TaskStatus::Failed, Some(JobState::Failed)),
        (Outcome::Blocked, TaskStatus::Blocked, None),
    ] {
        let task = t.task_for("worker").await;
        let session = t.begin("worker").await.unwrap();
        for _ in 0..2 {
            let reported = report(&t, &session, outcome).await.unwrap();
            assert_eq!(reported, Reported { task_id: task.id.clone(), status }, "{outcome}");
        }
        let filter = JobFilter { task_id: Some(task.id.clone()), ..JobFilter::default() };
        let jobs = t.store.run(ListJobs { filter: filter.clone(), page: PageRequest::default() }).await.unwrap().items;
        assert_eq!(jobs.iter().map(|job| job.state).collect::<Vec<_>>(), state.into_iter().collect::<Vec<_>>());
        let ended = t.store.run(ReadSession(session.id.clone())).await.unwrap();
        assert_eq!((ended.state, ended.end_reason), (SessionState::Ended, Some(EndReason::Reported)));
    }
}

pub async fn a_report_does_not_undo_what_a_person_decided(t: TestStore) {
    t.new_agent("worker").await;
    let blocked = t.task_for("worker").await;
    let session = t.begin("worker").await.unwrap();
    steer(&t, &blocked.id, Steer::Block).await;
    assert_eq!(report(&t, &session, Outcome::Success).await.unwrap().status, TaskStatus::Blocked);
    assert_eq!(t.task(&blocked.id).await.held_by, Some(Principal::local_user()));
    assert_eq!(
        t.begin("worker").await.unwrap_err().code(),
        ErrorCode::NothingToDo,
        "no session works on a blocked task"
    );
    steer(&t, &blocked.id, Steer::Resume).await;
    assert_eq!(t.task(&blocked.id).await.status, TaskStatus::Queued);

    let session = t.begin("worker").await.unwrap();
    let (mode, reason) = (StopMode::Graceful, StopReason::UserCancelled);
    t.store.run(StopTask { task_id: blocked.id.clone(), mode, reason, now: t.now() }).await.unwrap();
    assert_eq!(report(&t, &session, Outcome::Success).await.unwrap().status, TaskStatus::Cancelled);
}

pub async fn a_reassigned_task_is_out_of_its_old_agents_hands(t: TestStore) {
    t.new_agent("worker").await;
    t.new_agent("other").await;
    let task = t.task_for("worker").await;
    let session = t.begin("worker").await.unwrap();
    let to = Some("other".to_owned());
    let request = Reassign { task_id: task.id.clone(), to, now: t.now() };
    let given = t.store.run(request.clone()).await.unwrap();
    assert_eq!((given.assignee.as_deref(), given.status), (Some("other"), TaskStatus::Queued));
    let again = t.store.run(request).await.unwrap();
    assert_eq!(again.revision, given.revision, "assigning it to its own agent changes nothing");
    let taken = t.begin("other").await.unwrap();
    assert_eq!(taken.task_id, Some(task.id.clone()));
    assert_eq!(report(&t, &session, Outcome::Success).await.unwrap().status, TaskStatus::Running);
    assert_eq!(report(&t, &taken, Outcome::Success).await.unwrap().status, TaskStatus::Completed);
}
