//! Running statements on PostgreSQL. Statements are prepared once per connection.

use deadpool_postgres::Transaction;
use futures_util::future::try_join_all;
use matsu_core::ports::store::StoreError;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use crate::sql::{Row, Value, internal};

/// How the message of an error starts that goes away when the transaction is run again.
pub const AGAIN: &str = "try again: ";

type Params<'a> = Vec<&'a (dyn ToSql + Sync)>;

fn as_params<'a>(params: &'a [Value<'_>]) -> Params<'a> {
    params.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

pub async fn rows(transaction: &Transaction<'_>, sql: &str, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
    let statement = transaction.prepare_cached(sql).await.map_err(error)?;
    let rows = transaction.query(&statement, &as_params(params)).await.map_err(error)?;
    Ok(rows.into_iter().map(Row::Postgres).collect())
}

pub async fn run(transaction: &Transaction<'_>, sql: &str, params: &[Value<'_>]) -> Result<u64, StoreError> {
    let statement = transaction.prepare_cached(sql).await.map_err(error)?;
    transaction.execute(&statement, &as_params(params)).await.map_err(error)
}

/// All of them are on their way before the first answer comes back; the server runs them in order.
pub async fn run_each(
    transaction: &Transaction<'_>,
    sql: &str,
    sets: &[Vec<Value<'_>>],
) -> Result<Vec<u64>, StoreError> {
    if sets.is_empty() {
        return Ok(Vec::new());
    }
    let statement = transaction.prepare_cached(sql).await.map_err(error)?;
    let statement = &statement;
    let sent = sets.iter().map(|params| async move { transaction.execute(statement, &as_params(params)).await });
    try_join_all(sent).await.map_err(error)
}

/// What the caller can do about it decides the variant.
pub fn error(error: tokio_postgres::Error) -> StoreError {
    let Some(code) = error.code() else {
        return StoreError::Unavailable(error.to_string());
    };
    if *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE {
        return StoreError::Unavailable(format!("{AGAIN}{error}"));
    }
    let class = &code.code()[..2];
    match class {
        // Connection, resources, operator intervention (restart, killed backend), system error, read-only.
        "08" | "53" | "57" | "58" | "25" => StoreError::Unavailable(error.to_string()),
        _ => internal(format_args!("{error}: {}", error.as_db_error().map_or("", |db| db.message()))),
    }
}
