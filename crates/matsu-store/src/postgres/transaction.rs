//! An open transaction on a pooled connection. `BEGIN` travels with the first statements and `COMMIT` with the last,
//! so neither costs a round trip of its own.

use deadpool_postgres::{Client, ClientWrapper, Object};
use futures_util::future::join;

use crate::sql::Posted;
use crate::sql::postgres::{Letters, error};
use matsu_core::ports::store::StoreError;

pub const READ_WRITE: &str = "BEGIN";
/// One snapshot for everything that is read.
pub const READ_ONLY: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Dropped before its end, the connection is closed and not given back: its state is unknown.
pub struct Open {
    client: Option<Client>,
}

impl Open {
    pub fn on(client: Client) -> Self {
        Self { client: Some(client) }
    }

    pub fn client(&self) -> Result<&ClientWrapper, StoreError> {
        self.client.as_deref().ok_or_else(|| StoreError::Internal("a transaction was used after its end".to_owned()))
    }

    /// Sends what was posted and commits. `Err`: the server refused, or is gone and may have committed all the same.
    pub async fn commit(mut self, posted: &[Posted]) -> Result<Result<(), tokio_postgres::Error>, StoreError> {
        let client = self.client()?;
        let letters = Letters::prepare(client, posted).await?;
        // If a posted statement is refused, the server takes the commit for a rollback.
        let (sent, committed) = join(letters.send(), client.batch_execute("COMMIT")).await;
        if committed.is_ok() {
            self.client = None;
        }
        Ok(sent.and(committed))
    }

    pub async fn roll_back(mut self) -> Result<(), StoreError> {
        self.client()?.batch_execute("ROLLBACK").await.map_err(error)?;
        self.client = None;
        Ok(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            drop(Object::take(client));
        }
    }
}
