//! Changes: recorded with the transition, published after it, readable by a cursor that misses nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use matsu_core::change::{ChangeCursor, ChangeKind, Topic};
use matsu_core::clock::Clock;
use matsu_core::id::TaskId;
use matsu_core::job::JobKind;
use matsu_core::ports::store::{ChangeBatch, JobUpdate};

use crate::harness::{TestStore, lease};

pub async fn every_visible_change_is_recorded_in_order(t: TestStore) {
    let start = t.store.change_cursor().await.unwrap();
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    let job = t.claim_one().await;
    t.store.update_job(&lease(&job), JobUpdate::Progress("1 of 2".to_owned()), t.now()).await.unwrap();
    t.store.update_job(&lease(&job), JobUpdate::Checkpoint("unseen".to_owned()), t.now()).await.unwrap();
    t.complete(&job).await.unwrap();
    let batch = settled_changes(&t, start, 5).await;
    let seen: Vec<_> = batch.changes.iter().map(|change| (change.kind, change.revision)).collect();
    use ChangeKind::{JobFinished, JobQueued, JobStarted, Progress, TaskCreated};
    assert_eq!(seen, [(TaskCreated, 1), (JobQueued, 2), (JobStarted, 3), (Progress, 4), (JobFinished, 5)]);
    assert!(batch.changes.iter().all(|change| change.topic == Topic::task(&task.id)));
    assert_eq!(t.task(&task.id).await.revision, 5);
    let rest = t.store.changes_since(batch.changes[2].cursor, 1).await.unwrap();
    assert_eq!(rest.changes, batch.changes[3..4]);
    assert_eq!(t.store.changes_since(batch.cursor, 100).await.unwrap().changes, []);
}

/// On PostgreSQL a cursor stops before the oldest transaction that is still open anywhere on the server, and other
/// tests have some: so this reads until all are there.
async fn settled_changes(t: &TestStore, since: ChangeCursor, wanted: usize) -> ChangeBatch {
    let read = async {
        loop {
            let batch = t.store.changes_since(since, 100).await.unwrap();
            if batch.changes.len() >= wanted {
                return batch;
            }
            tokio::task::yield_now().await;
        }
    };
    Clock::system().within(Duration::from_secs(30), read).await.expect("all changes become visible")
}

pub async fn a_commit_wakes_its_topics_and_a_refusal_wakes_nobody(t: TestStore) {
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
    let cursor = t.store.change_cursor().await.unwrap();
    t.pass(Duration::from_secs(100));
    assert!(t.store.prune(t.now(), t.now()).await.unwrap() >= 1);
    assert!(t.store.change_cursor().await.unwrap() >= cursor);
    let task = t.research().await;
    // On a server that others use as well the cursor may stand before what came just before it; never after.
    let read = async {
        loop {
            let batch = t.store.changes_since(cursor, 100).await.unwrap();
            if let Some(change) = batch.changes.last().filter(|change| change.topic == Topic::task(&task.id)) {
                return change.kind;
            }
            tokio::task::yield_now().await;
        }
    };
    let kind = Clock::system().within(Duration::from_secs(30), read).await.expect("the new change is seen");
    assert_eq!(kind, ChangeKind::TaskCreated);
}

pub async fn concurrent_commits_are_all_seen_by_a_cursor(t: TestStore) {
    let t = Arc::new(t);
    let start = t.store.change_cursor().await.unwrap();
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
            let batch = t.store.changes_since(cursor, 7).await.unwrap();
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
