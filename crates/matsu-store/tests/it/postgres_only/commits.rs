//! Commits whose answer is lost: the caller gets to know what really happened.

use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use matsu_core::job::{JobKind, JobState};

use super::lost::OwnServer;
use super::proxy::{Cut, Proxy};
use super::server::connect;
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
    assert_eq!(ids(&claimed), [id], "a claim without a reply would run for ever");
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

/// The server crashes with the answer, and other clients commit under the numbers it has forgotten before we ask.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_server_neither_loses_nor_invents_a_commit() {
    let server = tokio::task::spawn_blocking(OwnServer::start).await.unwrap();
    // What was not committed is not written down by chance before the crash: so its numbers are given out again.
    let admin = connect(&server.url).await;
    admin.batch_execute("ALTER SYSTEM SET wal_writer_delay = '10s'").await.unwrap();
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let proxy = Proxy::start(&server.url).await;
    let t = TestStore::open_at(&proxy.url).await;
    let mut task = t.research().await;
    // The second crash forgets the other clients of the first as well.
    for (cut, happened, others_max) in [(Cut::AfterCommit, true, 50), (Cut::BeforeCommit, false, 200)] {
        proxy.cut_and_shut(cut);
        let asking = t.try_enqueue(&task.id, vec![t.new_job(JobKind::Search)]);
        let crashing = async {
            while !proxy.has_cut() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::task::block_in_place(|| server.kill_and_start_again());
            let others = connect(&server.url).await;
            for _ in 0..others_max {
                others.query("SELECT pg_current_xact_id()", &[]).await.unwrap();
            }
            proxy.reopen();
        };
        let (asked, ()) = tokio::join!(asking, crashing);
        match asked {
            Ok(_) => assert!(happened, "another commit was mistaken for ours"),
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
                assert!(!happened, "it was committed, and the caller got an error: {error}");
            }
        }
        let queued = task.counts.queued + i64::from(happened);
        task = t.task(&task.id).await;
        assert_eq!(task.counts.queued, queued);
    }
    drop(t);
    tokio::task::spawn_blocking(move || drop(server)).await.unwrap();
}
