//! Running statements on PostgreSQL. Statements are prepared once per connection.

use deadpool_postgres::ClientWrapper;
use futures_util::future::{join, try_join_all};
use matsu_core::ports::store::StoreError;
use tokio_postgres::Statement;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use crate::sql::{Posted, Row, Value, internal};

/// How the message of an error starts that goes away when the transaction is run again.
pub const AGAIN: &str = "try again: ";

type Params<'a> = Vec<&'a (dyn ToSql + Sync)>;

fn as_params<'a>(params: &'a [Value<'_>]) -> Params<'a> {
    params.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// What was posted, prepared: everything is on its way, in order, once the future is polled.
pub struct Letters<'a> {
    client: &'a ClientWrapper,
    prepared: Vec<(Statement, &'a [Value<'static>])>,
}

impl<'a> Letters<'a> {
    /// Preparing may take a round trip of its own; nothing must be sent before all of it is done.
    pub async fn prepare(client: &'a ClientWrapper, posted: &'a [Posted]) -> Result<Self, StoreError> {
        let mut prepared = Vec::with_capacity(posted.len());
        for letter in posted {
            let statement = client.prepare_cached(letter.sql).await.map_err(error)?;
            prepared.push((statement, letter.params.as_slice()));
        }
        Ok(Self { client, prepared })
    }

    pub async fn send(&self) -> Result<(), tokio_postgres::Error> {
        let sent = self.prepared.iter().map(|(statement, params)| async move {
            let params = as_params(params);
            self.client.execute(statement, &params).await
        });
        try_join_all(sent).await.map(drop)
    }

    /// Sends the posted statements, then this one, and waits for all answers together.
    async fn send_before<T>(
        &self,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        if self.prepared.is_empty() {
            return statement.await.map_err(error);
        }
        let (sent, answer) = join(self.send(), statement).await;
        // If a posted statement was refused, this one reports no more than that the transaction is broken.
        sent.map_err(error)?;
        answer.map_err(error)
    }
}

pub async fn rows(
    client: &ClientWrapper,
    posted: &[Posted],
    sql: &str,
    params: &[Value<'_>],
) -> Result<Vec<Row>, StoreError> {
    let letters = Letters::prepare(client, posted).await?;
    let statement = client.prepare_cached(sql).await.map_err(error)?;
    let params = as_params(params);
    let rows = letters.send_before(client.query(&statement, &params)).await?;
    Ok(rows.into_iter().map(Row::Postgres).collect())
}

pub async fn run(
    client: &ClientWrapper,
    posted: &[Posted],
    sql: &str,
    params: &[Value<'_>],
) -> Result<u64, StoreError> {
    let letters = Letters::prepare(client, posted).await?;
    let statement = client.prepare_cached(sql).await.map_err(error)?;
    let params = as_params(params);
    letters.send_before(client.execute(&statement, &params)).await
}

/// All of them are on their way before the first answer comes back; the server runs them in order.
pub async fn run_each(
    client: &ClientWrapper,
    posted: &[Posted],
    sql: &str,
    sets: &[Vec<Value<'_>>],
) -> Result<Vec<u64>, StoreError> {
    let letters = Letters::prepare(client, posted).await?;
    let statement = client.prepare_cached(sql).await.map_err(error)?;
    let statement = &statement;
    let sent = sets.iter().map(|params| async move { client.execute(statement, &as_params(params)).await });
    letters.send_before(try_join_all(sent)).await
}

/// Statements that are on their way together; the server runs them in order, each after what the one before did.
pub async fn rows_of_all<'a>(
    client: &ClientWrapper,
    posted: &[Posted],
    steps: impl Iterator<Item = (&'static str, &'a [Value<'a>])>,
) -> Result<Vec<Vec<Row>>, StoreError> {
    let letters = Letters::prepare(client, posted).await?;
    let mut prepared = Vec::new();
    for (sql, params) in steps {
        prepared.push((client.prepare_cached(sql).await.map_err(error)?, as_params(params)));
    }
    let asked = prepared.iter().map(|(statement, params)| client.query(statement, params));
    let answers = letters.send_before(try_join_all(asked)).await?;
    Ok(answers.into_iter().map(|rows| rows.into_iter().map(Row::Postgres).collect()).collect())
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
