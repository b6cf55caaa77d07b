//! What a test does to a store behind Matsu's back: fresh schemas, questions in SQL, killed connections.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_postgres::{Client, NoTls};

/// An address with a new schema.
pub fn fresh_postgres_url() -> String {
    let base = std::env::var("MATSU_TEST_POSTGRES")
        .expect("MATSU_TEST_POSTGRES names a server; use `make test` or `scripts/postgres.sh run cargo test`");
    fresh_schema_on(&base)
}

pub fn fresh_schema_on(base: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let nth = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let mark = if base.contains('?') { '&' } else { '?' };
    format!("{base}{mark}schema=t_{now}_{}_{nth}", std::process::id())
}

/// Runs a query on the server of this store, in the store's schema, and returns its first column as text.
pub fn ask_postgres(url: &str, sql: &str) -> Result<Vec<String>, String> {
    let (base, schema) = url.split_once("?schema=").expect("a store of a test names its schema");
    let work = async {
        let (client, connection) = tokio_postgres::connect(base, NoTls).await.map_err(|error| error.to_string())?;
        let questions = async {
            let set = format!("SET search_path = {schema}");
            client.batch_execute(&set).await?;
            first_column(&client, sql).await
        };
        tokio::select! {
            answers = questions => answers.map_err(|error| error.to_string()),
            broken = connection => Err(format!("{broken:?}")),
        }
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

async fn first_column(client: &Client, sql: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    let rows = client.simple_query(sql).await?;
    let cells = rows.iter().filter_map(|row| match row {
        tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    });
    Ok(cells.collect())
}

/// The same on a SQLite file that others may have open.
pub fn ask_sqlite(file: &Path, sql: &str) -> Vec<String> {
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
    let text = |value| match value {
        rusqlite::types::Value::Integer(number) => number.to_string(),
        rusqlite::types::Value::Text(text) => text,
        other => format!("{other:?}"),
    };
    rows.map(|row| text(row.unwrap())).collect()
}

/// Asks whichever store this is.
pub fn ask(store: &str, sql: &str) -> Vec<String> {
    match store.strip_prefix("sqlite:") {
        Some(file) => ask_sqlite(Path::new(file), sql),
        None => ask_postgres(store, sql).unwrap(),
    }
}
