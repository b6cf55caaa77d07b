//! The schema: refused when newer, made once by many, brought up to date with what is in it.

use matsu_core::error_code::ErrorCode;
use matsu_core::job::{JobEnd, JobKind};
use matsu_core::ports::store::{MovePermit, ParkForInput, PermitStep};
use matsu_store::open;

use super::server::connect;
use crate::harness::{OPTIONS, TestStore, lease, postgres_url};

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

/// Else every start of a job would write an entry into each of them (see the decision about rounds).
#[tokio::test]
async fn no_index_of_the_jobs_names_what_a_start_changes() {
    let url = postgres_url();
    let t = TestStore::open_at(&url).await;
    let server = connect(&url).await;
    let sql = "SELECT indexdef FROM pg_indexes WHERE tablename = 'jobs' AND schemaname = current_schema()";
    let indexes: Vec<String> = server.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(indexes.len() >= 8, "{indexes:?}");
    for column in ["state", "attempt", "started_at", "owner_node", "error_code", "error_message"] {
        assert!(indexes.iter().all(|index| !index.contains(column)), "{column}: {indexes:?}");
    }
    t.register(&t.node).await;
    t.agent(20).await;
    assert_eq!(t.claim(10).await.len(), 10);
    let pages = "SELECT count(DISTINCT (ctid::text::point)[0]) FROM jobs WHERE state = $1";
    for state in ["queued", "running"] {
        let on: i64 = server.query_one(pages, &[&state]).await.unwrap().get(0);
        assert!(on <= 2, "what started has moved: {state} on {on} pages");
    }
}

#[tokio::test]
async fn what_is_set_aside_in_an_older_schema_is_known_afterwards() {
    let url = postgres_url();
    let t = TestStore::open_at(&url).await;
    t.register(&t.node).await;
    let task = t.research().await;
    for _ in 0..4 {
        t.enqueue(&task.id, JobKind::Search).await;
    }
    let held = t.claim(4).await;
    t.finish(&lease(&held[3]), JobEnd::AwaitingAuth).await.unwrap();
    t.store.run(MovePermit { lease: lease(&held[0]), step: PermitStep::Lend }).await.unwrap();
    t.store.run(ParkForInput { lease: lease(&held[1]), question_json: "{}".to_owned(), now: t.now() }).await.unwrap();
    let server = connect(&url).await;
    let before = "UPDATE jobs SET hold = 0; UPDATE matsu_schema SET version = 10; \
        DROP TABLE users; ALTER TABLE tokens DROP COLUMN role, DROP COLUMN tools, DROP COLUMN expires_at; \
        ALTER TABLE transcripts DROP COLUMN run_id; DROP INDEX sessions_by_owner; ALTER TABLE sessions DROP COLUMN run_id; \
        DROP INDEX jobs_alone; ALTER TABLE jobs DROP COLUMN deaths; \
        ALTER TABLE nodes DROP COLUMN left_at; ALTER TABLE run_output DROP COLUMN read_to; \
        ALTER TABLE claims DROP COLUMN relevance, DROP COLUMN context, DROP COLUMN parts_json; \
        ALTER TABLE breakers DROP COLUMN cause; \
        DROP TABLE notify_channels, outbox, answer_codes, schedules, firings, webhooks, deliveries, spent, push_subscriptions; \
        ALTER TABLE tasks DROP COLUMN review_json, DROP COLUMN is_awaited; DROP TABLE task_dependencies; \
        DROP INDEX jobs_in_line, jobs_delayed, jobs_aside, jobs_parked; \
        CREATE INDEX jobs_ready ON jobs (slot, priority, queued_at, seq) WHERE state = 'queued' AND hold = 0; \
        CREATE INDEX jobs_delayed ON jobs (slot, run_at) WHERE state = 'queued' AND hold = 1; \
        CREATE INDEX jobs_by_owner ON jobs (owner_node) WHERE state IN ('running', 'awaiting_input'); \
        CREATE INDEX jobs_parked ON jobs (id) WHERE state = 'awaiting_auth'";
    server.batch_execute(before).await.unwrap();
    TestStore::open_at(&url).await;
    let holds = server.query("SELECT hold FROM jobs ORDER BY seq", &[]).await.unwrap();
    assert_eq!(holds.iter().map(|row| row.get(0)).collect::<Vec<i64>>(), [3, 3, 0, 4]);
}
