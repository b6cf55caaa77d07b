//! Commits whose answer is lost: the caller is told what really happened.

use matsu_core::error_code::ErrorCode;
use matsu_core::job::{JobKind, JobState};

use super::proxy::{Cut, Proxy};
use crate::harness::{TestStore, completed, ids, lease, postgres_url};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_counts_once() {
    let proxy = Proxy::start(&postgres_url()).await;
    let t = TestStore::open_at(&proxy.url).await;
    t.register(&t.node).await;
    let task = t.research().await;
    proxy.cut(Cut::AfterCommit);
    let id = t.enqueue(&task.id, JobKind::Search).await;
    assert!(proxy.has_cut());
    assert_eq!(t.task(&task.id).await.counts.queued, 1);
    proxy.cut(Cut::AfterCommit);
    let claimed = t.claim(5).await;
    assert_eq!(ids(&claimed), [id], "a claim that nobody heard of would run for ever");
    proxy.cut(Cut::AfterCommit);
    assert_eq!(t.finish(&lease(&claimed[0]), completed()).await.unwrap(), JobState::Completed);
    assert!(proxy.has_cut());
    assert_eq!(t.task(&task.id).await.counts.completed, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_arrived_is_not_available_and_changes_nothing() {
    let proxy = Proxy::start(&postgres_url()).await;
    let t = TestStore::open_at(&proxy.url).await;
    let task = t.research().await;
    proxy.cut(Cut::BeforeCommit);
    let refused = t.try_enqueue(&task.id, vec![t.new_job(JobKind::Search)]).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::StoreUnavailable, "{refused}");
    assert_eq!(t.task(&task.id).await, task);
    t.enqueue(&task.id, JobKind::Search).await;
}
