//! A disk that is full, and one that cannot be written: clear answers, nothing by half, and it goes on afterwards.
//!
//! The real thing, in a child process that sees a small or read-only file system of its own.

use std::path::Path;

use futures_util::future::join_all;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::JobKind;
use matsu_core::ports::store::StoreError;
use matsu_store::open;

use super::{child, fresh, url};
use crate::harness::{OPTIONS, TestStore};

const SKIPPED: &str = "SKIPPED: this system lets no user mount a file system of his own (unshare -rm)";

fn run(prepare: &str, what: &str, path: &Path) {
    let Some(mut command) = child::command_with_mounts(prepare, what, path) else {
        eprintln!("{SKIPPED}");
        return;
    };
    let output = command.stderr(std::process::Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{words}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(words.contains("went through"), "the child did what it was for: {words}");
}

#[test]
fn a_full_disk_refuses_clearly_and_the_store_goes_on_when_there_is_space() {
    let (folder, path) = fresh();
    run(&format!("mount -t tmpfs -o size=4m none '{}'", folder.path().display()), "full", &path);
}

pub async fn on_a_small_disk(path: &Path) {
    let test = TestStore::open_at(&url(path)).await;
    let task = test.research().await;
    let ballast = path.with_extension("ballast");
    std::fs::write(&ballast, vec![0; 2 << 20]).unwrap();
    let big = |n: usize| {
        let mut job = test.new_job(JobKind::Search);
        job.input_json = "x".repeat(n);
        job
    };
    let mut stored = 0;
    let refused = loop {
        // Together, so that they share a commit: all of the group are confirmed, or none.
        let answers = join_all((0..8).map(|_| test.try_enqueue(&task.id, vec![big(100_000)]))).await;
        stored += answers.iter().filter(|answer| answer.is_ok()).count();
        let refused: Vec<StoreError> = answers.into_iter().filter_map(Result::err).collect();
        if !refused.is_empty() {
            break refused;
        }
    };
    for error in &refused {
        assert_eq!(error.code(), ErrorCode::StoreUnavailable, "{error}");
        assert!(error.to_string().contains("full"), "{error}");
    }
    // Reading still works, and shows only what was acknowledged.
    assert_eq!(usize::try_from(test.task(&task.id).await.counts.queued).unwrap(), stored);
    std::fs::remove_file(&ballast).unwrap();
    test.try_enqueue(&task.id, vec![big(100_000)]).await.expect("there is space again, and the store goes on");
    let claimed = test.claim(1).await.pop().expect("the store goes on");
    test.complete(&claimed).await.unwrap();
    let counts = test.task(&task.id).await.counts;
    assert_eq!((counts.completed, usize::try_from(counts.queued).unwrap()), (1, stored));
    drop(test);
    let again = TestStore::open_at(&url(path)).await;
    assert_eq!(again.task(&task.id).await.counts, counts);
    println!("went through");
}

#[test]
fn a_read_only_disk_is_named_when_the_store_is_opened() {
    let (folder, path) = fresh();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { drop(TestStore::open_at(&url(&path)).await.research().await) });
    let folder = folder.path().display();
    run(&format!("mount --bind '{folder}' '{folder}'; mount -o remount,bind,ro '{folder}'"), "read-only", &path);
}

pub async fn on_a_read_only_disk(path: &Path) {
    let refused = open(&url(path), OPTIONS).await.err().expect("a lock cannot be taken here");
    assert_eq!(refused.code(), ErrorCode::StoreUnavailable);
    assert!(refused.to_string().contains("Read-only"), "{refused}");
    let elsewhere = path.with_file_name("new").join("matsu.db");
    let refused = open(&url(&elsewhere), OPTIONS).await.err().expect("a folder cannot be made here");
    assert_eq!(refused.code(), ErrorCode::StoreUnavailable);
    assert!(refused.to_string().contains("Read-only"), "{refused}");
    println!("went through");
}
