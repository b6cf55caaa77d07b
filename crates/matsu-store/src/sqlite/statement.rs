//! Running one statement on SQLite. Statements are cached by their text.

use matsu_core::ports::store::StoreError;
use rusqlite::types::Value as SqliteValue;
use rusqlite::{CachedStatement, Connection, ErrorCode};

use crate::sql::{Row, Value, internal};

pub fn rows(connection: &Connection, sql: &str, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
    let mut statement = prepared(connection, sql, params)?;
    let columns = statement.column_count();
    let mut found = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(error)? {
        let values = (0..columns).map(|at| row.get::<_, SqliteValue>(at)).collect::<Result<Vec<_>, _>>();
        found.push(Row::Sqlite(values.map_err(error)?));
    }
    Ok(found)
}

pub fn run(connection: &Connection, sql: &str, params: &[Value<'_>]) -> Result<u64, StoreError> {
    let mut statement = prepared(connection, sql, params)?;
    statement.raw_execute().map(|changed| changed as u64).map_err(error)
}

/// SQLite numbers `$1`, `$2`, … by first appearance, so each is bound by the number in its name.
fn prepared<'c>(
    connection: &'c Connection,
    sql: &str,
    params: &[Value<'_>],
) -> Result<CachedStatement<'c>, StoreError> {
    let mut statement = connection.prepare_cached(sql).map_err(error)?;
    for index in 1..=statement.parameter_count() {
        let number = statement.parameter_name(index).and_then(|name| name[1..].parse::<usize>().ok());
        let value = number.and_then(|number| params.get(number - 1));
        let value = value.ok_or_else(|| internal(format_args!("parameter {index} has no value")))?;
        statement.raw_bind_parameter(index, value).map_err(error)?;
    }
    Ok(statement)
}

/// What the caller can do about it decides the variant.
pub fn error(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::CannotOpen
            | ErrorCode::OutOfMemory,
        ) => StoreError::Unavailable(error.to_string()),
        _ => internal(error),
    }
}
