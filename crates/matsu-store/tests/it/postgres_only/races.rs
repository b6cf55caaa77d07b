//! Races under READ COMMITTED, staged: a second connection holds a task's row while a transition runs into it.

use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::id::TaskId;
use matsu_core::job::{JobKind, JobState};
use matsu_core::ports::store::{Finish, StopTask};
use matsu_core::task::{StopMode, StopReason, Task, TaskStatus};

use super::server::connect;
use crate::harness::{TestStore, completed, ids, lease, postgres_url};

/// A store, and a second connection in the middle of a transaction.
struct Stage {
    t: Arc<TestStore>,
    other: tokio_postgres::Client,
    watcher: tokio_postgres::Client,
}

impl Stage {
    async fn set() -> Self {
        let url = postgres_url();
        let t = TestStore::open_at(&url).await;
        t.register(&t.node).await;
        Self { t: Arc::new(t), other: connect(&url).await, watcher: connect(&url).await }
    }

    async fn lock(&self, task: &TaskId) {
        self.other.batch_execute("BEGIN").await.unwrap();
        let lock = "SELECT 1 FROM tasks WHERE id = $1 FOR UPDATE";
        self.other.query(lock, &[&task.as_str()]).await.unwrap();
    }

    /// Returns once a connection waits for what the other connection holds.
    async fn a_statement_waits(&self) {
        let pid: i32 = self.other.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))";
        while self.watcher.query_one(waiting, &[&pid]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    }

    async fn change(&self, sql: &str, id: &str) {
        assert_eq!(self.other.execute(sql, &[&id]).await.unwrap(), 1);
    }

    async fn commit(&self) {
        self.other.batch_execute("COMMIT").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waking_a_delayed_job_never_deadlocks_with_a_stop() {
    let stage = Stage::set().await;
    let task = stage.t.research().await;
    let mut job = stage.t.new_job(JobKind::Search);
    job.run_at = stage.t.now().plus(Duration::from_secs(1));
    let id = job.id.clone();
    stage.t.try_enqueue(&task.id, vec![job]).await.unwrap();
    stage.t.pass(Duration::from_secs(2));
    stage.lock(&task.id).await;
    let stopping = async {
        stage.a_statement_waits().await;
        // What a stop does next. It must not have to wait for the claim, which waits for it.
        let cancel = stage.change("UPDATE jobs SET state = 'cancelled' WHERE id = $1", id.as_str());
        let at_once = Clock::system().within(Duration::from_millis(700), cancel).await;
        stage.commit().await;
        at_once
    };
    let (claimed, at_once) = tokio::join!(stage.t.claim(5), stopping);
    assert_eq!(at_once, Some(()), "the stop waits for the claim that waits for it");
    assert_eq!(claimed, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_started_while_a_stop_waits_is_stopped_too() {
    let stage = Stage::set().await;
    let parent = stage.t.research().await;
    let child = stage.t.agent(1).await;
    stage.lock(&parent.id).await;
    let starting = async {
        stage.a_statement_waits().await;
        let adopt = format!("UPDATE tasks SET parent_id = '{}', depth = 1 WHERE id = $1", parent.id);
        stage.change(&adopt, child.id.as_str()).await;
        stage.commit().await;
    };
    let (mode, reason) = (StopMode::Immediate, StopReason::UserCancelled);
    let stop = StopTask { task_id: parent.id.clone(), mode, reason, now: stage.t.now() };
    let (stopped, ()) = tokio::join!(stage.t.store.run(stop), starting);
    assert_eq!(stopped.unwrap().cancelled_queued, 1);
    assert_eq!(stage.t.task(&child.id).await.status, TaskStatus::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_counts_although_the_job_was_parked_in_the_same_moment() {
    let stage = Stage::set().await;
    let task = stage.t.agent(1).await;
    let job = stage.t.claim_one().await;
    stage.lock(&task.id).await;
    let parking = async {
        stage.a_statement_waits().await;
        stage.change("UPDATE jobs SET state = 'awaiting_input' WHERE id = $1", job.id.as_str()).await;
        stage.change("UPDATE tasks SET n_running = 0, n_awaiting_input = 1 WHERE id = $1", task.id.as_str()).await;
        stage.commit().await;
    };
    let lease = lease(&job);
    let (ended, ()) = tokio::join!(stage.t.finish(&lease, completed()), parking);
    assert_eq!(ended.unwrap(), JobState::Completed, "the lease was never lost");
    let after = stage.t.task(&task.id).await;
    assert_eq!((after.counts.completed, after.counts.awaiting_input), (1, 0));
    assert_eq!(after.status, TaskStatus::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_claimed_while_its_node_is_reaped_is_settled_with_its_task() {
    let stage = Stage::set().await;
    let first = stage.t.agent(1).await;
    let node = stage.t.second_node().await;
    let claim = stage.t.claim_request(&node, 1, 5);
    let mut held = ids(&stage.t.store.run(claim.clone()).await.unwrap().claimed);
    stage.lock(&first.id).await;
    let second: Task = stage.t.agent(1).await;
    let claiming = async {
        stage.a_statement_waits().await;
        let claimed = stage.t.store.run(claim).await.unwrap().claimed;
        stage.commit().await;
        ids(&claimed)
    };
    let (settled, claimed) = tokio::join!(stage.t.store.reap_node(&node, stage.t.now()), claiming);
    held.extend(claimed);
    held.sort();
    assert_eq!((settled.unwrap(), held.len()), (held.clone(), 2));
    for task in [first, second] {
        let counts = stage.t.task(&task.id).await.counts;
        assert_eq!((counts.queued, counts.running), (1, 0), "{counts:?}");
    }
}

/// A node that looked for a free permit may hold the lock of one that was taken meanwhile, until it commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_that_another_connection_has_locked_is_freed_with_its_job_all_the_same() {
    let stage = Stage::set().await;
    let task = stage.t.research().await;
    stage.t.enqueue(&task.id, JobKind::Search).await;
    let claimed = stage.t.claim(1).await;
    let held = "SELECT 1 FROM permits WHERE job_id = $1";
    stage.other.batch_execute("BEGIN").await.unwrap();
    let locked = stage.other.query(&format!("{held} FOR UPDATE"), &[&claimed[0].id.as_str()]).await.unwrap();
    assert_eq!(locked.len(), 1);
    let mut request = stage.t.claim_request(&stage.t.node, 5, 100);
    request.finishes.push(Finish { lease: lease(&claimed[0]), end: completed() });
    let letting_go = async {
        stage.a_statement_waits().await;
        stage.commit().await;
    };
    let (outcome, ()) = tokio::join!(stage.t.store.run(request), letting_go);
    assert_eq!(outcome.unwrap().finished[0].as_ref().unwrap(), &JobState::Completed);
    assert!(stage.watcher.query(held, &[&claimed[0].id.as_str()]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_round_with_ends_wakes_what_is_due_in_another_task() {
    let t = TestStore::open_at(&postgres_url()).await;
    t.register(&t.node).await;
    t.agent(1).await;
    let ending = t.claim_one().await;
    let other = t.research().await;
    let mut delayed = t.new_job(JobKind::Search);
    delayed.run_at = t.now().plus(Duration::from_secs(1));
    let id = delayed.id.clone();
    t.try_enqueue(&other.id, vec![delayed]).await.unwrap();
    let mut request = t.claim_request(&t.node, 5, 100);
    request.finishes.push(Finish { lease: lease(&ending), end: completed() });
    let early = t.store.run(request.clone()).await.unwrap();
    assert_eq!((early.claimed, early.finished.len()), (vec![], 1));
    request.now = t.pass(Duration::from_secs(2));
    let late = t.store.run(request).await.unwrap();
    assert_eq!(ids(&late.claimed), [id]);
}
