//! The schema of a new store is the one that the migrations make.

use std::fmt::Write as _;

use rusqlite::Connection;

use super::*;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite/fresh.sql");

fn by_migrations() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    for step in MIGRATIONS {
        connection.execute_batch(step).unwrap();
    }
    connection
}

/// The statements that make the schema, and the rows that a new store has.
fn dump(connection: &Connection) -> String {
    let mut sql = String::from(
        "-- What all migrations make of an empty file. Written by MATSU_WRITE_SCHEMA=1 cargo test -p matsu-store schema\n",
    );
    let texts = |query: &str| -> Vec<String> {
        let mut statement = connection.prepare(query).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    for made in texts("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid") {
        writeln!(sql, "{made};").unwrap();
    }
    for table in texts("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid") {
        let columns = texts(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let quoted: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
        for row in texts(&format!("SELECT {} FROM {table}", quoted.join(" || ', ' || "))) {
            writeln!(sql, "INSERT INTO {table} ({}) VALUES ({row});", columns.join(", ")).unwrap();
        }
    }
    sql
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a variable asks for the file to be written")]
fn the_schema_of_a_new_store_is_what_the_migrations_make() {
    let made = dump(&by_migrations());
    if std::env::var_os("MATSU_WRITE_SCHEMA").is_some() {
        std::fs::write(FILE, &made).unwrap();
        return;
    }
    assert!(made == FRESH, "{FILE} is not what the migrations make; run this test with MATSU_WRITE_SCHEMA=1");
    assert_eq!(dump(&in_memory().unwrap()), made, "a copy has the same schema");
}

#[test]
fn stores_in_memory_share_nothing_but_their_schema() {
    let (one, other) = (in_memory().unwrap(), in_memory().unwrap());
    one.execute_batch("DELETE FROM projects").unwrap();
    let projects: i64 = other.query_row("SELECT count(*) FROM projects", [], |row| row.get(0)).unwrap();
    assert_eq!(projects, 1);
}
