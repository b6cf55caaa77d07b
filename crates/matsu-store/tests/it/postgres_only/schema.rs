//! The schema: refused when newer, made once by many.

use matsu_core::error_code::ErrorCode;
use matsu_store::open;

use super::server::connect;
use crate::harness::{OPTIONS, TestStore, postgres_url};

#[tokio::test]
async fn a_newer_schema_is_refused_with_both_numbers() {
    let url = postgres_url();
    let current = TestStore::open_at(&url).await.store.check().await.unwrap().schema_version;
    connect(&url).await.batch_execute("INSERT INTO matsu_schema (version) VALUES (4711)").await.unwrap();
    let refused = open(&url, OPTIONS).await.err().expect("a newer schema is refused");
    assert_eq!(refused.code(), ErrorCode::StoreNewer);
    let message = refused.to_string();
    assert!(message.contains("4711") && message.contains(&format!("up to {current}")), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_open_a_new_schema_at_once_migrate_it_once() {
    let url = postgres_url();
    let opened = futures_util::future::join_all((0..6).map(|_| open(&url, OPTIONS))).await;
    for store in opened {
        assert_eq!(store.unwrap().store.check().await.unwrap().jobs, 0);
    }
    let rows = connect(&url).await.query_one("SELECT count(*) FROM matsu_schema", &[]).await.unwrap();
    assert_eq!(rows.get::<_, i64>(0), 1);
}
