//! Changes: recorded with the transition, published after it, readable by a cursor that misses nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use matsu_core::access::Role;
use matsu_core::change::{ChangeCursor, ChangeKind, Topic};
use matsu_core::clock::Clock;
use matsu_core::id::{TaskId, TokenId};
use matsu_core::job::{Job, JobKind, JobState};
use matsu_core::ports::store::{
    ChangeBatch, ChangesSince, Enqueue, InsertToken, JobUpdate, NoteProgress, ProgressNote, PruneRule, Pruned,
    ReadChangeCursor, ReadJob, RevokeToken, StopTask, TokenByHash, UpdateJob,
};
use matsu_core::principal::Principal;
use matsu_core::task::{StopMode, StopReason};
use matsu_core::token::NewToken;

use crate::harness::{TestStore, lease};

pub async fn every_visible_change_is_recorded_in_order(t: TestStore) {
    let start = t.store.run(ReadChangeCursor).await.unwrap();
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    let job = t.claim_one().await;
    t.store
        .run(UpdateJob { lease: lease(&job), update: JobUpdate::Progress("1 of 2".to_owned()), now: t.now() })
        .await
        .unwrap();
    t.store
        .run(UpdateJob { lease: lease(&job), update: JobUpdate::Checkpoint("unseen".to_owned()), now: t.now() })
        .await
        .unwrap();
    t.complete(&job).await.unwrap();
    let batch = settled_changes(&t, start, 5).await;
    let seen: Vec<_> = batch.changes.iter().map(|change| (change.kind, change.revision)).collect();
    use ChangeKind::{JobFinished, JobQueued, JobStarted, Progress, TaskCreated};
    assert_eq!(seen, [(TaskCreated, 1), (JobQueued, 2), (JobStarted, 3), (Progress, 4), (JobFinished, 5)]);
    assert!(batch.changes.iter().all(|change| change.topic == Topic::task(&task.id)));
    assert_eq!(t.task(&task.id).await.revision, 5);
    let rest = t.store.run(ChangesSince { cursor: batch.changes[2].cursor, rows_max: 1 }).await.unwrap();
    assert_eq!(rest.changes, batch.changes[3..4]);
    assert_eq!(t.store.run(ChangesSince { cursor: batch.cursor, rows_max: 100 }).await.unwrap().changes, []);
}

/// On PostgreSQL a cursor stops before the oldest transaction that is still open anywhere on the server, and other
/// tests have some: so this reads until all are there.
async fn settled_changes(t: &TestStore, since: ChangeCursor, wanted: usize) -> ChangeBatch {
    let read = async {
        loop {
            let batch = t.store.run(ChangesSince { cursor: since, rows_max: 100 }).await.unwrap();
            if batch.changes.len() >= wanted {
                return batch;
            }
            tokio::task::yield_now().await;
        }
    };
    Clock::system().within(Duration::from_secs(30), read).await.expect("all changes become visible")
}

pub async fn a_commit_wakes_its_topics_and_a_refusal_wakes_none(t: TestStore) {
    let task = t.research().await;
    let clock = Clock::system();
    let hub = t.store.hub();
    let subscription = hub.subscribe(&[Topic::task(&task.id)]);
    t.enqueue(&task.id, JobKind::Search).await;
    clock.within(Duration::from_secs(5), subscription.woken()).await.expect("woken by the commit");
    let twice = t.new_job(JobKind::Search);
    assert!(t.try_enqueue(&task.id, vec![twice.clone(), twice]).await.is_err());
    assert!(clock.within(Duration::from_millis(40), subscription.woken()).await.is_none());
    drop(subscription);
    assert_eq!(hub.sleepers(), 0);
}

pub async fn pruned_changes_do_not_move_the_cursor_back(t: TestStore) {
    t.research().await;
    t.research().await;
    let cursor = t.store.run(ReadChangeCursor).await.unwrap();
    t.pass(Duration::from_secs(100));
    assert!(t.store.prune(everything_before(&t), 10).await.unwrap().rows >= 1);
    assert!(t.store.run(ReadChangeCursor).await.unwrap() >= cursor);
    let task = t.research().await;
    // On a server that others use as well the cursor may stand before what came just before it; never after.
    let read = async {
        loop {
            let batch = t.store.run(ChangesSince { cursor, rows_max: 100 }).await.unwrap();
            if let Some(change) = batch.changes.last().filter(|change| change.topic == Topic::task(&task.id)) {
                return change.kind;
            }
            tokio::task::yield_now().await;
        }
    };
    let kind = Clock::system().within(Duration::from_secs(30), read).await.expect("the new change is seen");
    assert_eq!(kind, ChangeKind::TaskCreated);
}

pub async fn progress_of_many_jobs_is_one_change_of_their_task(t: TestStore) {
    let (one, two) = (t.agent(3).await, t.agent(1).await);
    let jobs = t.claim(4).await;
    t.store.run(stop_now(&t, &two.id)).await.unwrap();
    let before = t.task(&one.id).await.revision;
    let note = |job: &Job| ProgressNote { lease: lease(job), progress_json: "half".to_owned() };
    let notes: Vec<ProgressNote> = jobs.iter().map(note).collect();
    assert_eq!(
        t.store.run(NoteProgress { notes: notes.clone(), now: t.now() }).await.unwrap(),
        [jobs[3].id.clone()],
        "its lease is lost"
    );
    assert_eq!(t.task(&one.id).await.revision, before + 1);
    assert_eq!(t.job(&jobs[2].id).await.progress_json.as_deref(), Some("half"));
    assert_eq!(t.job(&jobs[3].id).await.progress_json, None);
    let last = JobUpdate::LastProgress("all".to_owned());
    t.store.run(UpdateJob { lease: lease(&jobs[0]), update: last, now: t.now() }).await.unwrap();
    assert_eq!(t.task(&one.id).await.revision, before + 1, "shown with the end");
}

fn stop_now(t: &TestStore, id: &TaskId) -> StopTask {
    let (mode, reason) = (StopMode::Immediate, StopReason::UserCancelled);
    StopTask { task_id: id.clone(), mode, reason, now: t.now() }
}

fn everything_before(t: &TestStore) -> PruneRule {
    let now = t.now();
    PruneRule { changes_before: now, keys_before: now, system_jobs_before: now, revoked_before: now }
}

pub async fn what_is_too_old_goes_a_few_at_a_time(t: TestStore) {
    let system_job = (0..5).map(|_| t.new_job(JobKind::Noop)).collect();
    let request = Enqueue { task_id: None, jobs: system_job, resume_for: None, now: t.now() };
    t.store.run(request).await.unwrap();
    let jobs = t.claim(5).await;
    for job in &jobs[..4] {
        assert_eq!(t.complete(job).await.unwrap(), JobState::Completed);
    }
    for n in 0..3 {
        let (me, now) = (Principal::local_user(), t.now());
        let (id, name, secret_hash) = (TokenId::mint(now), format!("t{n}"), format!("h{n}"));
        let new = NewToken {
            id,
            name,
            principal: me.clone(),
            secret_hash,
            role: Role::Admin,
            tools: None,
            created_at: now,
            expires_at: None,
        };
        let token = t.store.run(InsertToken(new)).await.unwrap();
        if n > 0 {
            t.store.run(RevokeToken { of: Some(me.clone()), id: token.id.clone(), now }).await.unwrap();
        }
    }
    assert_eq!(t.store.prune(everything_before(&t), 3).await.unwrap(), Pruned { rows: 0, has_more: false });
    t.pass(Duration::from_secs(1));
    let rule = everything_before(&t);
    assert_eq!(t.store.prune(rule, 3).await.unwrap(), Pruned { rows: 5, has_more: true });
    assert_eq!(t.store.prune(rule, 3).await.unwrap(), Pruned { rows: 1, has_more: false });
    assert_eq!(t.job(&jobs[4].id).await.state, JobState::Running, "what has not finished stays");
    assert!(t.store.run(TokenByHash("h0".to_owned())).await.unwrap().is_some(), "and so does a live token");
    assert!(t.store.run(ReadJob(jobs[0].id.clone())).await.is_err());
}

pub async fn concurrent_commits_are_all_seen_by_a_cursor(t: TestStore) {
    let t = Arc::new(t);
    let start = t.store.run(ReadChangeCursor).await.unwrap();
    let writers = (0..8).map(|_| {
        let t = Arc::clone(&t);
        async move {
            let mut made = Vec::new();
            for _ in 0..25 {
                made.push(t.research().await.id);
                tokio::task::yield_now().await;
            }
            made
        }
    });
    let reader = async {
        let mut seen = HashSet::new();
        let mut cursor: ChangeCursor = start;
        while seen.len() < 200 {
            let batch = t.store.run(ChangesSince { cursor, rows_max: 7 }).await.unwrap();
            cursor = batch.cursor;
            for change in batch.changes {
                assert!(seen.insert(change.topic.clone()), "{} came twice", change.topic);
            }
            tokio::task::yield_now().await;
        }
        seen
    };
    let both = futures_util::future::join(futures_util::future::join_all(writers), reader);
    let (made, seen) = Clock::system().within(Duration::from_secs(60), both).await.expect("no change is missed");
    let made: HashSet<Topic> = made.iter().flatten().map(|id: &TaskId| Topic::task(id)).collect();
    assert_eq!(seen, made);
}
