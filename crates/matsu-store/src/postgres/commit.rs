//! A commit whose answer is lost. It may have happened or not, and the caller must not get the wrong answer: a claim
//! that is believed lost would stay running for ever, and an insertion made again would be doubled. So the server is
//! asked: whether the transaction is over, by its number, and then whether its mark can be read. The number alone does
//! not prove it, because a server that crashed may give it out again.

use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use matsu_core::clock::Clock;
use matsu_core::ports::store::StoreError;
use tokio_postgres::error::SqlState;

use super::connection::Server;
use crate::sql::postgres::error;
use crate::sql::{Mark, internal};

/// How long to ask a server that does not answer, or still waits for the lost connection to end.
const ASK_FOR: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_millis(100);

/// To be asked again, under the same idempotency key if it must not happen twice.
const UNKNOWN: &str = "the server was restarted during a commit, and whether it was committed is unknown";

/// What a transaction is known by.
pub struct Number {
    xid: String,
    /// When the server was started that gave it out. One that crashed may give out the same number again.
    server: String,
}

/// The number of the open transaction.
pub async fn number(client: &ClientWrapper) -> Result<Number, StoreError> {
    let sql = "SELECT pg_current_xact_id()::text, pg_postmaster_start_time()::text";
    let statement = client.prepare_cached(sql).await.map_err(error)?;
    let row = client.query_one(&statement, &[]).await.map_err(error)?;
    Ok(Number { xid: row.try_get(0).map_err(internal)?, server: row.try_get(1).map_err(internal)? })
}

/// What became of a transaction.
enum Fate {
    Committed,
    NotCommitted,
    Open,
    /// It left no mark, and the transaction that was committed under its number may be another one.
    Unknown,
}

/// `Ok`: it was committed after all. `Unavailable`: it was not, and nothing has happened.
pub async fn check(
    server: &Server,
    clock: &Clock,
    number: &Number,
    mark: Mark,
    failure: tokio_postgres::Error,
) -> Result<(), StoreError> {
    // The server itself refused, and lives. A class 57 is the end of the connection, and may come after the commit.
    if failure.code().is_some_and(|code| !code.code().starts_with("57") && !code.code().starts_with("08")) {
        return Err(error(failure));
    }
    let deadline = clock.instant() + ASK_FOR;
    while clock.instant() < deadline {
        match fate(server, number, mark).await {
            Ok(Fate::Committed) => return Ok(()),
            Ok(Fate::NotCommitted) => return Err(error(failure)),
            Ok(Fate::Unknown) => return Err(StoreError::Unavailable(UNKNOWN.to_owned())),
            Ok(Fate::Open) => {}
            Err(error) => tracing::debug!(%error, "the outcome of a commit could not be read; asking again"),
        }
        clock.sleep(ASK_EVERY).await;
    }
    Err(internal("the connection was lost during a commit, and whether it was committed is unknown"))
}

async fn fate(server: &Server, number: &Number, mark: Mark) -> Result<Fate, StoreError> {
    let client = server.client().await?;
    let sql = "SELECT coalesce(pg_xact_status($1::text::xid8), ''), pg_postmaster_start_time()::text = $2";
    let row = match client.query_one(sql, &[&number.xid, &number.server]).await {
        Ok(row) => row,
        // The server crashed and has forgotten that it ever gave out this number: nothing of it was kept.
        Err(failure) if failure.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => return Ok(Fate::NotCommitted),
        Err(failure) => return Err(error(failure)),
    };
    let (status, is_same): (String, bool) = (row.try_get(0).map_err(internal)?, row.try_get(1).map_err(internal)?);
    Ok(match (status.as_str(), is_same) {
        // It is over, and this snapshot is younger than its end.
        ("committed", _) if mark.is_left => {
            let sql = "SELECT 1 FROM changes WHERE xid = $1::text::bigint AND mark = $2";
            match client.query_opt(sql, &[&number.xid, &mark.value]).await.map_err(error)? {
                Some(_) => Fate::Committed,
                None => Fate::NotCommitted,
            }
        }
        ("committed", true) => Fate::Committed,
        ("committed", false) => Fate::Unknown,
        // Ours ended with its server; what is open under its number is another transaction.
        ("aborted", _) | ("in progress", false) => Fate::NotCommitted,
        _ => Fate::Open,
    })
}
