//! Killed connections, a killed server, more callers than connections.
#![allow(clippy::disallowed_methods, reason = "tests start a server of their own to kill it")]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use futures_util::future::join_all;
use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::JobKind;
use matsu_core::ports::store::ForeignChange;

use super::server::connect;
use crate::harness::{Backend, TestStore};

/// A server of this test alone, so that killing it disturbs no other test. It ends when this value is dropped.
pub struct OwnServer {
    pub url: String,
    folder: tempfile::TempDir,
}

impl OwnServer {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = script(&folder, "start").trim().to_owned();
        Self { url: format!("{url}?schema=t_own"), folder }
    }

    pub fn kill_and_start_again(&self) {
        script(&self.folder, "restart");
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        script(&self.folder, "stop");
    }
}

fn script(folder: &tempfile::TempDir, verb: &str) -> String {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres.sh");
    let mut command = Command::new(script);
    // The script keeps its note of where the server is below the target folder; ours is elsewhere.
    command.arg(verb).env("CARGO_TARGET_DIR", folder.path()).env_remove("MATSU_TEST_POSTGRES_DIR");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{verb}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_connections_and_a_killed_server_lose_nothing_that_was_acknowledged() {
    let server = tokio::task::spawn_blocking(OwnServer::start).await.unwrap();
    let t = TestStore::open_at(&server.url).await;
    t.register(&t.node).await;
    let task = t.research().await;
    assert_eq!(t.store.foreign_change().await, ForeignChange::Unknown);
    let mut acknowledged = 0;
    for _ in 0..5 {
        let killing = async {
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'matsu'";
            connect(&server.url).await.query(kill, &[]).await.unwrap();
        };
        let (written, ()) = tokio::join!(write_many(&t, &task), killing);
        acknowledged += written;
    }
    let listening = Clock::system().within(Duration::from_secs(3), t.store.foreign_change()).await;
    assert_eq!(listening, Some(ForeignChange::Unknown), "listening again");
    acknowledged += recovered(&t, &task).await;
    assert_eq!(t.task(&task.id).await.counts.queued, acknowledged);

    let restarting = tokio::task::spawn_blocking(move || {
        server.kill_and_start_again();
        server
    });
    let (written, server) = tokio::join!(write_many(&t, &task), restarting);
    acknowledged += written + recovered(&t, &task).await;
    assert_eq!(t.task(&task.id).await.counts.queued, acknowledged, "each acknowledged write once, and no other");
    drop(t);
    tokio::task::spawn_blocking(move || drop(server.unwrap())).await.unwrap();
}

/// Callers at once, each a few times; counts what was acknowledged. All other answers must be "not available".
async fn write_many(t: &TestStore, task: &matsu_core::task::Task) -> i64 {
    let callers = (0..8).map(async |_| {
        let mut written = 0;
        for _ in 0..10 {
            match t.try_enqueue(&task.id, vec![t.new_job(JobKind::Search)]).await {
                Ok(_) => written += 1,
                Err(error) => assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}"),
            }
        }
        written
    });
    join_all(callers).await.into_iter().sum()
}

/// The store works again by itself, within seconds.
async fn recovered(t: &TestStore, task: &matsu_core::task::Task) -> i64 {
    let clock = Clock::system();
    let trying = async {
        while t.try_enqueue(&task.id, vec![t.new_job(JobKind::Search)]).await.is_err() {
            clock.sleep(Duration::from_millis(20)).await;
        }
    };
    clock.within(Duration::from_secs(10), trying).await.expect("it works again within ten seconds");
    1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_callers_share_sixteen_connections() {
    let t = TestStore::open(Backend::postgres).await;
    let task = t.research().await;
    let calls = (0..100).map(|_| t.try_enqueue(&task.id, vec![t.new_job(JobKind::Search)]));
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    let tasks = (0..100).map(|_| t.store.run(t.new_task(matsu_core::task::TaskKind::Research)));
    assert!(join_all(tasks).await.iter().all(Result::is_ok));
    assert_eq!(t.task(&task.id).await.counts.queued, 100);
}
