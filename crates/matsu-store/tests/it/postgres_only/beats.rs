//! Nodes that are judged by their heartbeats. A call is a tick, however quickly the calls follow each other.

use matsu_core::id::NodeId;
use matsu_core::job::JobKind;
use matsu_core::limits::BEATLESS_TICKS_MAX;
use matsu_core::ports::store::{MovePermit, ParkForInput, PermitStep};

use crate::harness::{Backend, TestStore, lease};

async fn tick(t: &TestStore) -> Vec<NodeId> {
    t.store.dead_nodes(&t.node).await.unwrap()
}

#[tokio::test]
async fn a_node_is_dead_after_thirty_ticks_without_a_beat_and_not_before() {
    let t = TestStore::open(Backend::postgres).await;
    let other = t.second_node().await;
    for n in 0..BEATLESS_TICKS_MAX {
        assert_eq!(tick(&t).await, [], "tick {n}");
    }
    assert_eq!(tick(&t).await, std::slice::from_ref(&other));
    t.store.beat(&other).await.unwrap();
    assert_eq!(tick(&t).await, [], "it moved after all");
    assert_eq!(t.store.reap_node(&other, t.now()).await.unwrap(), []);
    assert!(t.store.beat(&other).await.is_err(), "a reaped node learns of it with its next beat");
}

#[tokio::test]
async fn a_node_that_beats_every_tenth_tick_lives() {
    let t = TestStore::open(Backend::postgres).await;
    let other = t.second_node().await;
    for n in 0..100 {
        if n % 10 == 9 {
            t.store.beat(&other).await.unwrap();
        }
        assert_eq!(tick(&t).await, [], "tick {n}");
    }
}

#[tokio::test]
async fn a_node_that_claims_after_being_reaped_is_found_dead_once_more() {
    let t = TestStore::open(Backend::postgres).await;
    let zombie = t.second_node().await;
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    t.store.reap_node(&zombie, t.now()).await.unwrap();
    let held = t.store.run(t.claim_request(&zombie, 1, 1)).await.unwrap().claimed;
    assert_eq!(held.len(), 1);
    assert_eq!(tick(&t).await, std::slice::from_ref(&zombie));
    assert_eq!(t.store.reap_node(&zombie, t.now()).await.unwrap(), crate::harness::ids(&held));
    assert_eq!(tick(&t).await, []);
}

/// What it holds has no permit any more by which it could be found.
#[tokio::test]
async fn a_node_that_claims_after_being_reaped_is_found_by_waiting_jobs_too() {
    let t = TestStore::open(Backend::postgres).await;
    let (lender, parker) = (t.second_node().await, t.second_node().await);
    let task = t.research().await;
    for zombie in [&lender, &parker] {
        t.enqueue(&task.id, JobKind::Search).await;
        t.store.reap_node(zombie, t.now()).await.unwrap();
        let held = t.store.run(t.claim_request(zombie, 1, 9)).await.unwrap().claimed;
        if *zombie == lender {
            t.store.run(MovePermit { lease: lease(&held[0]), step: PermitStep::Lend }).await.unwrap();
        } else {
            t.store
                .run(ParkForInput { lease: lease(&held[0]), question_json: "{}".to_owned(), now: t.now() })
                .await
                .unwrap();
        }
        assert_eq!(tick(&t).await, std::slice::from_ref(zombie));
        assert_eq!(t.store.reap_node(zombie, t.now()).await.unwrap(), crate::harness::ids(&held));
        assert_eq!(t.claim(1).await.len(), 1, "it is in line again");
    }
}
