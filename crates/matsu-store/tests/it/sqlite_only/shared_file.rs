//! Two handles on one file, as two processes would have them: locks belong to open files, not to processes.

use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::job::{JobKind, JobState};
use matsu_core::ports::store::{ForeignChange, PruneRule};

use super::{fresh, url};
use crate::harness::{TestStore, assert_lease_lost};

async fn two_stores(path: &std::path::Path) -> (TestStore, TestStore) {
    let (a, b) = (TestStore::open_at(&url(path)).await, TestStore::open_at(&url(path)).await);
    a.register(&a.node).await;
    b.register(&b.node).await;
    (a, b)
}

#[tokio::test]
async fn changes_of_one_process_wake_the_other() {
    let (_folder, path) = fresh();
    let (a, b) = two_stores(&path).await;
    let clock = Clock::system();
    // The first answer may be about changes from before the first call.
    while clock.within(Duration::from_millis(150), b.store.foreign_change()).await.is_some() {}
    for _ in 0..3 {
        let change = clock.within(Duration::from_millis(400), b.store.foreign_change());
        let acting = async {
            let task = a.research().await;
            a.enqueue(&task.id, JobKind::Search).await
        };
        let (change, job) = tokio::join!(change, acting);
        assert_eq!(change, Some(ForeignChange::Unknown), "woken within 400 ms, of which 50 are the interval");
        assert_eq!(b.claim_one().await.id, job);
        while clock.within(Duration::from_millis(150), b.store.foreign_change()).await.is_some() {}
    }
    let own = clock.within(Duration::from_millis(200), b.store.foreign_change());
    let (own, _) = tokio::join!(own, b.research());
    assert_eq!(own, None, "what it does itself is no news");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_and_leases_hold_over_both() {
    let (_folder, path) = fresh();
    let (a, b) = two_stores(&path).await;
    let task = a.agent(40).await;
    let work = async |t: &TestStore| {
        let mut done = 0;
        while t.task(&task.id).await.counts.unfinished() > 0 {
            let claimed = t.store.run(t.claim_request(&t.node, 2, 2)).await.unwrap().claimed;
            assert!(t.task(&task.id).await.counts.running <= 2);
            for job in &claimed {
                assert_eq!(t.complete(job).await.unwrap(), JobState::Completed);
            }
            done += claimed.len();
        }
        done
    };
    let (by_a, by_b) = tokio::join!(work(&a), work(&b));
    assert_eq!(by_a + by_b, 40);
    assert_eq!(a.task(&task.id).await.counts.completed, 40);
}

#[tokio::test]
async fn a_lock_proves_life_and_its_end_proves_death() {
    let (_folder, path) = fresh();
    let (a, b) = two_stores(&path).await;
    let task = a.research().await;
    a.enqueue(&task.id, JobKind::Search).await;
    let held = b.claim_one().await;
    for _ in 0..100 {
        assert_eq!(a.store.dead_nodes(&a.node).await.unwrap(), []);
        assert_eq!(b.store.dead_nodes(&b.node).await.unwrap(), []);
    }
    let dead = b.node.clone();
    drop(b);
    assert_eq!(a.store.dead_nodes(&a.node).await.unwrap(), std::slice::from_ref(&dead));
    assert_eq!(a.store.reap_node(&dead, a.now()).await.unwrap(), std::slice::from_ref(&held.id));
    assert_eq!(a.store.dead_nodes(&a.node).await.unwrap(), []);
    assert_lease_lost(a.complete(&held).await);
    assert_eq!(a.claim_one().await.id, held.id);
}

#[tokio::test]
async fn a_node_that_claims_after_being_reaped_is_found_dead_once_more() {
    let (_folder, path) = fresh();
    let (a, b) = two_stores(&path).await;
    let task = a.research().await;
    a.enqueue(&task.id, JobKind::Search).await;
    a.store.reap_node(&b.node, a.now()).await.unwrap();
    let held = b.claim_one().await;
    let zombie = b.node.clone();
    assert_eq!(a.store.dead_nodes(&a.node).await.unwrap(), std::slice::from_ref(&zombie));
    assert_eq!(a.store.reap_node(&zombie, a.now()).await.unwrap(), [held.id]);
    assert_eq!(a.store.dead_nodes(&a.node).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observers_never_keep_a_new_node_from_its_lock() {
    let (_folder, path) = fresh();
    let (a, b) = two_stores(&path).await;
    let clock = Clock::system();
    let looking = async {
        for _ in 0..300 {
            assert_eq!(a.store.dead_nodes(&a.node).await.unwrap(), []);
        }
    };
    let listening =
        async { while clock.within(Duration::from_millis(300), a.store.foreign_change()).await.is_some() {} };
    let coming = async {
        for _ in 0..100 {
            b.second_node().await;
        }
    };
    tokio::join!(looking, listening, coming);
}

#[tokio::test]
async fn lock_files_without_an_owner_are_swept() {
    let (folder, path) = fresh();
    let (a, b) = two_stores(&path).await;
    let lock = |name: &str| folder.path().join("nodes").join(format!("{name}.lock"));
    std::fs::write(lock("node_orphan"), "").unwrap();
    // A process that has its lock and is about to write its row.
    let starting = std::fs::File::create(lock("node_starting")).unwrap();
    starting.lock().unwrap();
    let now = a.now();
    let rule = PruneRule { changes_before: now, keys_before: now, system_jobs_before: now, revoked_before: now };
    a.store.prune(rule, 10).await.unwrap();
    assert!(!lock("node_orphan").exists());
    for kept in ["node_starting", a.node.as_str(), b.node.as_str()] {
        assert!(lock(kept).exists(), "{kept}");
    }
}
