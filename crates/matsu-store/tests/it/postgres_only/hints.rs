//! Hints between nodes: quick, coalesced, and "something" where a list would not fit.

use std::time::Duration;

use matsu_core::change::Topic;
use matsu_core::clock::Clock;
use matsu_core::ports::store::{ForeignChange, StopTask};
use matsu_core::task::{StopMode, StopReason, TaskKind};

use super::server::connect;
use crate::harness::{TestStore, postgres_url};

/// Listens on `t` until it is notified of `topic`, or of an unknown change.
async fn woken_on(t: &TestStore, topic: &Topic) {
    let listening = async {
        loop {
            match t.store.foreign_change().await {
                ForeignChange::Topics(topics) if topics.contains(topic) => return,
                ForeignChange::Topics(_) => {}
                ForeignChange::Unknown => return,
            }
        }
    };
    Clock::system().within(Duration::from_secs(1), listening).await.expect("woken within a second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_notified_of_anothers_commit_within_a_second_and_not_of_its_own() {
    let url = postgres_url();
    let (a, b) = (TestStore::open_at(&url).await, TestStore::open_at(&url).await);
    assert_eq!(b.store.foreign_change().await, ForeignChange::Unknown, "the first hint says that listening began");
    for _ in 0..5 {
        let task = a.research().await;
        woken_on(&b, &Topic::task(&task.id)).await;
        assert_eq!(b.task(&task.id).await, task);
    }
    b.research().await;
    let own = Clock::system().within(Duration::from_millis(300), b.store.foreign_change()).await;
    assert_eq!(own, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_does_not_fit_becomes_something() {
    let url = postgres_url();
    let (a, b) = (TestStore::open_at(&url).await, TestStore::open_at(&url).await);
    assert_eq!(b.store.foreign_change().await, ForeignChange::Unknown);
    // One transaction over more tasks than 8000 bytes can name: a stop of a large family, three deep.
    let root = a.research().await;
    let below = async |parent| {
        let mut task = a.new_task(TaskKind::Agent);
        task.parent_id = Some(parent);
        a.insert(task).await.id
    };
    for _ in 0..10 {
        let child = below(root.id.clone()).await;
        for _ in 0..10 {
            let grandchild = below(child.clone()).await;
            for _ in 0..3 {
                below(grandchild.clone()).await;
            }
        }
    }
    let clock = Clock::system();
    while clock.within(Duration::from_millis(300), b.store.foreign_change()).await.is_some() {}
    let (mode, reason) = (StopMode::Immediate, StopReason::UserCancelled);
    a.store.run(StopTask { task_id: root.id, mode, reason, now: a.now() }).await.unwrap();
    let change = clock.within(Duration::from_secs(1), b.store.foreign_change()).await;
    assert_eq!(change, Some(ForeignChange::Unknown));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_listener_comes_back_and_says_that_something_was_missed() {
    let url = postgres_url();
    let (a, b) = (TestStore::open_at(&url).await, TestStore::open_at(&url).await);
    assert_eq!(b.store.foreign_change().await, ForeignChange::Unknown);
    let server = connect(&url).await;
    let (_, schema) = url.split_once("schema=").unwrap();
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query = $1";
    let killed: i64 = server.query_one(kill, &[&format!("LISTEN matsu_{schema}")]).await.unwrap().get(0);
    assert_eq!(killed, 1);
    let again = Clock::system().within(Duration::from_secs(2), b.store.foreign_change()).await;
    assert_eq!(again, Some(ForeignChange::Unknown));
    let task = a.research().await;
    woken_on(&b, &Topic::task(&task.id)).await;
}
