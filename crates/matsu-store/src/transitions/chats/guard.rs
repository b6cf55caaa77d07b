//! A session's write, checked again where it counts: inside its own transaction.
//!
//! The gate before the tool may have seen nothing, and an order to stop may have been committed since. The check comes
//! last, after the locks on tasks and jobs that the write itself takes, in the lock order of all transitions; its
//! failure undoes the write. A transition that raises an interrupt locks the same row, so one of the two comes first.

use matsu_core::error_code::ErrorCode;
use matsu_core::id::SessionId;
use matsu_core::ports::store::{Request, StoreError};
use matsu_core::session::SessionState;

use super::session_rows::unread;
use crate::sql::{AnyOutput, AnyTransition, Sql, Transition, Tx, params};

const SESSION: Sql =
    Sql::each("SELECT state FROM sessions WHERE id = $1", "SELECT state FROM sessions WHERE id = $1 FOR SHARE");
const INTERRUPT: Sql = Sql::both(concat!(
    "SELECT 1 FROM notifications WHERE session_id = $1 AND kind = 'interrupt' AND ",
    unread!(),
    " LIMIT 1"
));

pub struct Guarded {
    pub session: SessionId,
    pub inner: AnyTransition,
}

impl Request for Guarded {
    type Output = AnyOutput;
}

impl Transition for Guarded {
    fn is_quick(&self) -> bool {
        self.inner.is_quick()
    }

    fn is_bulk(&self) -> bool {
        self.inner.is_bulk()
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<AnyOutput, StoreError> {
        let output = self.inner.run(tx).await?;
        let state = tx.row(&SESSION, params![&self.session]).await?;
        let state = state.map(|row| row.columns().word(SessionState::parse)).transpose()?;
        if !matches!(state, Some(SessionState::Active | SessionState::Ending)) {
            return Err(StoreError::Refused {
                code: ErrorCode::SessionEnded,
                message: "the session has ended".to_owned(),
            });
        }
        if tx.row(&INTERRUPT, params![&self.session]).await?.is_some() {
            return Err(StoreError::Interrupted);
        }
        Ok(output)
    }
}
