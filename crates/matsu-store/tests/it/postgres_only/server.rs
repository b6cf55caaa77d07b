//! The server beside the store: a connection of the test's own, outside of the pool.
#![allow(clippy::disallowed_methods, reason = "tests look at the server from a second connection")]

use crate::harness::TestStore;

/// A plain connection to the server, in the schema of `url`.
pub async fn connect(url: &str) -> tokio_postgres::Client {
    let (address, schema) = url.split_once("?schema=").expect("the address of a test names its schema");
    let (client, connection) = tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    client
}

/// The store at `url` without any rows: cheaper than another schema.
pub async fn emptied(url: &str) -> TestStore {
    let test = TestStore::open_at(url).await;
    let tables = "tasks, jobs, permits, budgets, reservations, rates, changes, idempotency, nodes, tokens, tombstones, \
        slot_wishes";
    connect(url).await.batch_execute(&format!("TRUNCATE {tables}")).await.unwrap();
    test.register(&test.node).await;
    test
}
