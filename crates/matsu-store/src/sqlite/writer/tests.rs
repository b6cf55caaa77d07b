//! The group: shared commits, neighbours that fail, commits that fail, a disk that is full.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use matsu_core::clock::Timestamp;
use matsu_core::id::TokenId;
use matsu_core::ports::store::{Request, RevokeToken, TakeTurn};
use matsu_core::wake::Hub;

use super::*;
use crate::sqlite::connection;
use crate::sqlite::synchronous::Synchronous;

/// Two connections to one fresh file.
fn two_connections(folder: &tempfile::TempDir) -> (Connection, Connection) {
    let path = folder.path().join("matsu.db");
    drop(connection::migrate_alone(&path).unwrap());
    let open = || connection::writer(&path, Synchronous::Normal).unwrap();
    (open(), open())
}

fn start(connection: Connection) -> Result<Writer, StoreError> {
    Writer::start(WriteGate::new(connection, Synchronous::Normal, Hub::new())?)
}

/// No commit succeeds until this is set to 0.
fn fail_commits(connection: &mut Connection) -> Arc<AtomicU64> {
    let fail = Arc::new(AtomicU64::new(1));
    let failing = Arc::clone(&fail);
    connection.commit_hook(Some(move || failing.load(Ordering::Relaxed) == 1)).unwrap();
    fail
}

fn turn(key: &str) -> TakeTurn {
    TakeTurn { key: key.to_owned(), step_ms: 1, now: Timestamp::from_millis(0) }
}

fn refused() -> RevokeToken {
    RevokeToken {
        of: Some(matsu_core::principal::Principal::local_user()),
        id: TokenId::from_text("tok_unknown"),
        now: Timestamp::from_millis(0),
    }
}

fn turns(connection: &Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM rates", [], |row| row.get(0)).unwrap()
}

#[track_caller]
fn assert_unavailable<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
}

#[tokio::test]
async fn a_group_that_cannot_begin_says_that_the_store_is_not_available() {
    let folder = tempfile::tempdir().unwrap();
    let (first, other) = two_connections(&folder);
    first.busy_timeout(Duration::ZERO).unwrap();
    let writer = start(first).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_unavailable(writer.write(turn("a")).await);
    assert_unavailable(writer.data_version().await);
    other.execute_batch("ROLLBACK").unwrap();
    writer.write(turn("a")).await.unwrap();
}

#[tokio::test]
async fn operations_that_arrive_together_share_a_commit_and_fail_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, other) = two_connections(&folder);
    let commits = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&commits);
    first.commit_hook(Some(move || counted.fetch_add(1, Ordering::Relaxed) == u64::MAX)).unwrap();
    let writer = start(first).unwrap();
    // While another process writes, everything gathers in the line.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let keys: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
    let writes = join_all(keys.iter().map(|key| writer.write(turn(key))));
    let refusals = join_all((0..100).map(|_| writer.write(refused())));
    let let_go = async { other.execute_batch("ROLLBACK").unwrap() };
    let (written, refused, ()) = tokio::join!(writes, refusals, let_go);
    assert!(written.iter().all(Result::is_ok));
    assert!(refused.iter().all(|answer| matches!(answer, Err(StoreError::NotFound { .. }))));
    assert_eq!(turns(&other), 1_000);
    let commits = commits.load(Ordering::Relaxed);
    assert!(commits <= 10, "1100 operations took {commits} commits");
}

#[tokio::test]
async fn no_caller_in_a_group_that_does_not_commit_gets_another_result() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, other) = two_connections(&folder);
    let fail = fail_commits(&mut first);
    let writer = start(first).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let let_go = async { other.execute_batch("ROLLBACK").unwrap() };
    let (a, b, c, ()) = tokio::join!(writer.write(turn("a")), writer.write(refused()), writer.write(turn("c")), let_go);
    assert_unavailable(a);
    assert_unavailable(b);
    assert_unavailable(c);
    assert_eq!(turns(&other), 0);
    fail.store(0, Ordering::Relaxed);
    writer.write(turn("a")).await.unwrap();
    assert_eq!(turns(&other), 1);
}

#[tokio::test]
async fn a_full_file_refuses_what_does_not_fit_and_goes_on_when_there_is_space() {
    let folder = tempfile::tempdir().unwrap();
    let (first, other) = two_connections(&folder);
    let pages: i64 = first.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    first.pragma_update(None, "max_page_count", pages + 4).unwrap();
    let writer = start(first).unwrap();
    let long = "k".repeat(50_000);
    let (long, short) = tokio::join!(writer.write(turn(&long)), writer.write(turn("short")));
    assert_unavailable(long);
    short.unwrap();
    assert_eq!(turns(&other), 1, "nothing is written by half");
}

#[tokio::test]
async fn a_full_queue_makes_callers_wait_and_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    let (first, other) = two_connections(&folder);
    let writer = start(first).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let keys: Vec<String> = (0..LINE_MAX + 1_000).map(|n| n.to_string()).collect();
    let writes = join_all(keys.iter().map(|key| writer.write(turn(key))));
    let let_go = async { other.execute_batch("ROLLBACK").unwrap() };
    let (written, ()) = tokio::join!(writes, let_go);
    assert!(written.iter().all(Result::is_ok));
    assert_eq!(turns(&other), i64::try_from(keys.len()).unwrap());
}

/// A transition with a defect, after it has written something.
struct Broken;

impl Request for Broken {
    type Output = ();
}

impl Transition for Broken {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        turn("half done").run(tx).await?;
        panic!("a defect")
    }
}

#[tokio::test]
async fn a_transition_that_panics_is_undone_and_the_writer_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (first, other) = two_connections(&folder);
    let writer = start(first).unwrap();
    let (broken, fine) = tokio::join!(writer.write(Broken), writer.write(turn("a")));
    assert!(matches!(broken, Err(StoreError::Internal(_))), "{broken:?}");
    fine.unwrap();
    writer.write(turn("b")).await.unwrap();
    assert_eq!(turns(&other), 2);
}

/// A turn that is quick, so that its caller's thread may take it.
struct Quick(TakeTurn);

impl Request for Quick {
    type Output = ();
}

impl Transition for Quick {
    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        self.0.run(tx).await.map(drop)
    }
}

fn quick(key: &str) -> Quick {
    Quick(turn(key))
}

#[tokio::test]
async fn a_quick_write_runs_at_once_unless_another_write_is_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let (first, other) = two_connections(&folder);
    let writer = start(first).unwrap();
    assert!(writer.write(quick("a")).now_or_never().expect("done at its first poll").is_ok());
    assert_eq!(turns(&other), 1, "and committed");
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = Box::pin(writer.write(quick("b")));
    assert!(waiting.as_mut().now_or_never().is_none(), "no wait for another process on a runtime's thread");
    assert!(writer.write(quick("c")).now_or_never().is_none(), "no operation overtakes the queue");
    other.execute_batch("ROLLBACK").unwrap();
    waiting.await.unwrap();
    // Given up by its caller, but it was queued.
    assert_eq!(turns(&other), 3);
    assert!(writer.write(quick("d")).now_or_never().is_some_and(|done| done.is_ok()), "the line is empty again");
}

#[tokio::test]
async fn what_is_quick_and_fails_is_undone() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, other) = two_connections(&folder);
    let fail = fail_commits(&mut first);
    let writer = start(first).unwrap();
    writer.write(quick("a")).await.unwrap_err();
    assert_eq!(turns(&other), 0);
    fail.store(0, Ordering::Relaxed);
    writer.write(quick("a")).await.unwrap();
    assert_eq!(turns(&other), 1);
}

#[tokio::test]
async fn the_log_of_many_quick_writes_stays_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _other) = two_connections(&folder);
    let writer = start(first).unwrap();
    let long = "k".repeat(8_000);
    for n in 0..20_000 {
        writer.write(quick(&format!("{}{long}", n % 10))).await.unwrap();
    }
    let log = std::fs::metadata(folder.path().join("matsu.db-wal")).unwrap().len();
    assert!(log < 64 << 20, "{log} bytes: the thread was asked to copy the log, and did");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "callers on several threads, all awaited here")]
async fn callers_and_the_thread_take_turns_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (first, other) = two_connections(&folder);
    let writer = Arc::new(start(first).unwrap());
    let many = |kind: char| {
        let writer = Arc::clone(&writer);
        async move {
            for n in 0..500 {
                let key = format!("{kind}{n}");
                match kind {
                    'q' | 'r' => writer.write(quick(&key)).await.unwrap(),
                    _ => drop(writer.write(turn(&key)).await.unwrap()),
                }
            }
        }
    };
    join_all(['q', 'r', 's', 't'].map(|kind| tokio::spawn(many(kind)))).await;
    assert_eq!(turns(&other), 2_000);
}
