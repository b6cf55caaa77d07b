//! Copies of a live store.

use std::sync::atomic::{AtomicBool, Ordering};

use matsu_core::error_code::ErrorCode;
use matsu_core::job::JobKind;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{ListTasks, TaskFilter};
use matsu_core::task::Task;

use super::{fresh, plain, url};
use crate::harness::TestStore;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_made_under_writes_is_one_moment_of_the_store() {
    let (folder, path) = fresh();
    let test = TestStore::open_at(&url(&path)).await;
    let task = test.research().await;
    let done = AtomicBool::new(false);
    let writing = async {
        while !done.load(Ordering::Relaxed) {
            test.enqueue(&task.id, JobKind::Search).await;
        }
    };
    let copying = async {
        let mut copies = Vec::new();
        for n in 0..5 {
            let copy = folder.path().join(format!("copy{n}.db"));
            test.store.backup(&copy).await.unwrap();
            copies.push(copy);
        }
        done.store(true, Ordering::Relaxed);
        copies
    };
    let ((), copies) = tokio::join!(writing, copying);
    let mut last = 0;
    for copy in copies {
        let copied = TestStore::open_at(&url(&copy)).await;
        let seen: Task = copied.task(&task.id).await;
        let rows = copied.store.check().await.unwrap().jobs;
        assert_eq!((seen.counts.queued, seen.revision), (rows, rows + 1), "counts, revision and rows agree");
        assert!(rows >= last, "a later copy has at least as much");
        last = rows;
        copied.enqueue(&task.id, JobKind::Search).await;
        let mode: String = plain(&copy).query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal", "a copy that is used as a store works like one");
    }
}

#[tokio::test]
async fn an_existing_file_is_not_overwritten_and_a_partial_one_is_not_in_the_way() {
    let (folder, path) = fresh();
    let test = TestStore::open_at(&url(&path)).await;
    let target = folder.path().join("copy.db");
    std::fs::write(&target, "precious").unwrap();
    let refused = test.store.backup(&target).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidParams);
    assert!(refused.to_string().contains("copy.db exists already"), "{refused}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");

    let fresh_target = folder.path().join("second.db");
    for left_behind in ["second.partial".to_owned(), format!("second.db.partial-{}", std::process::id())] {
        std::fs::write(folder.path().join(left_behind), "half a copy").unwrap();
    }
    test.store.backup(&fresh_target).await.unwrap();
    let copied = TestStore::open_at(&url(&fresh_target)).await;
    let page =
        copied.store.run(ListTasks { filter: TaskFilter::default(), page: PageRequest::default() }).await.unwrap();
    assert_eq!(page.items, []);
    let refused = test.store.backup(&folder.path().join("no/such/folder/copy.db")).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::StoreUnavailable);
}
