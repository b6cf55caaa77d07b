//! A commit whose answer is lost. It may have happened or not, and the caller must not be told the wrong thing: a
//! claim that is believed lost would stay running for ever, and an insertion made again would be doubled. The server
//! remembers what became of every transaction by its number; so it is asked.

use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use matsu_core::clock::Clock;
use matsu_core::ports::store::StoreError;
use tokio_postgres::error::SqlState;

use super::connection::Server;
use super::statement::error;
use crate::sql::internal;

/// How long to ask a server that does not answer, or still waits for the lost connection to end.
const ASK_FOR: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The number of the open client.
pub async fn number(client: &ClientWrapper) -> Result<String, StoreError> {
    let statement = client.prepare_cached("SELECT pg_current_xact_id()::text").await.map_err(error)?;
    let row = client.query_one(&statement, &[]).await.map_err(error)?;
    row.try_get(0).map_err(internal)
}

/// `Ok`: it was committed after all. `Unavailable`: it was not, and nothing has happened.
pub async fn check(
    server: &Server,
    clock: &Clock,
    number: &str,
    failure: tokio_postgres::Error,
) -> Result<(), StoreError> {
    // The server itself refused, and lives. A class 57 is the end of the connection, and may come after the commit.
    if failure.code().is_some_and(|code| !code.code().starts_with("57") && !code.code().starts_with("08")) {
        return Err(error(failure));
    }
    let deadline = clock.instant() + ASK_FOR;
    while clock.instant() < deadline {
        match status(server, number).await.as_deref() {
            Ok("committed") => return Ok(()),
            Ok("aborted") => return Err(error(failure)),
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "asking what became of a commit"),
        }
        clock.sleep(ASK_EVERY).await;
    }
    Err(internal("the connection was lost during a commit, and the server does not say whether it happened"))
}

async fn status(server: &Server, number: &str) -> Result<String, StoreError> {
    let client = server.client().await?;
    match client.query_one("SELECT coalesce(pg_xact_status($1::text::xid8), '')", &[&number]).await {
        Ok(row) => row.try_get(0).map_err(internal),
        // The server crashed and has forgotten that it ever gave out this number: nothing of it was kept.
        Err(failure) if failure.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => Ok("aborted".to_owned()),
        Err(failure) => Err(error(failure)),
    }
}
