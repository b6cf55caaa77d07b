//! Versions of the schema: a newer one is refused, an older one is migrated by the only process that has it open.

use std::sync::Arc;

use matsu_core::error_code::ErrorCode;
use matsu_store::open;

use super::{fresh, plain, url};
use crate::harness::{OPTIONS, TestStore};

#[tokio::test]
async fn a_newer_schema_is_refused_with_both_numbers() {
    let (_folder, path) = fresh();
    let current = TestStore::open_at(&url(&path)).await.store.check().await.unwrap().schema_version;
    plain(&path).pragma_update(None, "user_version", 4_711).unwrap();
    let refused = open(&url(&path), OPTIONS).await.err().expect("a newer schema is refused");
    assert_eq!(refused.code(), ErrorCode::StoreNewer);
    let message = refused.to_string();
    assert!(message.contains("4711") && message.contains(&format!("up to {current}")), "{message}");
}

#[tokio::test]
async fn a_migration_waits_and_then_names_the_process_that_has_the_store_open() {
    let (_folder, path) = fresh();
    let holder = TestStore::open_at(&url(&path)).await;
    plain(&path).pragma_update(None, "user_version", 0).unwrap();
    let refused = open(&url(&path), OPTIONS).await.err().expect("another process has it open");
    assert_eq!(refused.code(), ErrorCode::StoreBusy);
    let holder_named = format!("process {}", std::process::id());
    assert!(refused.to_string().contains(&holder_named), "{refused}");
    drop(holder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_that_open_a_new_store_at_once_all_get_it() {
    for _ in 0..5 {
        let (_folder, path) = fresh();
        let address = url(&path);
        let opening = futures_util::future::join_all((0..8).map(|_| open(&address, OPTIONS))).await;
        let stores: Vec<_> = opening.into_iter().map(|opened| opened.unwrap().store).collect();
        for store in &stores {
            assert_eq!(store.check().await.unwrap().tasks, 0);
        }
    }
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_left_as_it_is() {
    let (_folder, path) = fresh();
    let text = "dear diary, ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let refused = open(&url(&path), OPTIONS).await.err().expect("this is no store");
    assert!(refused.to_string().contains("not a database"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[cfg(unix)]
#[tokio::test]
async fn no_other_user_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = fresh();
    let test = TestStore::open_at(&url(&path)).await;
    test.register(&test.node).await;
    test.store.backup(&folder.path().join("copy.db")).await.unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o077;
            assert_eq!(mode, 0, "{}", entry.path().display());
            seen += 1;
        }
    }
    assert!(seen >= 4, "the file, its log, the lock, the copy");
    drop(Arc::clone(&test.store));
}
