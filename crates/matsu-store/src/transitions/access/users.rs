//! Users beside the local owner, and the folders that an admin gave them.

use std::path::PathBuf;

use matsu_core::access::{RemovedUser, User};
use matsu_core::id::SessionId;
use matsu_core::page::Page;
use matsu_core::ports::store::{EndSession, ListUsers, PutUser, ReadUser, RemoveUser, StoreError};
use matsu_core::principal::Principal;
use matsu_core::session::{EndReason, SessionState};

use crate::sql::{Row, Sql, Transition, Tx, params};
use crate::transitions::paging::page;

const PUT: Sql = Sql::both(
    "INSERT INTO users (principal, roots_json, created_at) VALUES ($1, $2, $3) \
     ON CONFLICT (principal) DO UPDATE SET roots_json = excluded.roots_json",
);
const ONE: Sql = Sql::both("SELECT seq, principal, roots_json, created_at FROM users WHERE principal = $1");
const LIST: Sql = Sql::both(
    "SELECT seq, principal, roots_json, created_at FROM users WHERE seq > coalesce(CAST($1 AS BIGINT), -1) \
     ORDER BY seq LIMIT $2",
);
const REMOVE: Sql = Sql::both("DELETE FROM users WHERE principal = $1");
const REVOKE: Sql = Sql::both("UPDATE tokens SET revoked_at = $2 WHERE principal = $1 AND revoked_at IS NULL");
const LIVE_SESSIONS: Sql = Sql::both("SELECT id FROM sessions WHERE owner = $1 AND state <> 'ended' ORDER BY seq");

/// Folders as they are stored. What cannot be read is no folder.
pub fn roots(json: Option<&str>) -> Vec<PathBuf> {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

fn user(row: &Row) -> Result<User, StoreError> {
    let mut c = row.columns();
    Ok(User {
        seq: c.int()?,
        principal: Principal::from_text(c.text()?),
        roots: roots(Some(&c.text()?)),
        created_at: c.time()?,
    })
}

async fn read_user(tx: &mut Tx<'_>, principal: &Principal) -> Result<Option<User>, StoreError> {
    tx.row(&ONE, params![principal]).await?.as_ref().map(user).transpose()
}

fn not_found(principal: &Principal) -> StoreError {
    StoreError::NotFound { what: "user", id: principal.as_user().unwrap_or(principal.as_str()).to_owned() }
}

impl Transition for PutUser {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<User, StoreError> {
        let roots = serde_json::to_string(&self.roots)
            .map_err(|_| StoreError::Unavailable("a folder's name is not valid UTF-8".to_owned()))?;
        tx.run(&PUT, params![&self.user, &roots, self.now]).await?;
        read_user(tx, &self.user).await?.ok_or_else(|| not_found(&self.user))
    }
}

impl Transition for ReadUser {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<User>, StoreError> {
        read_user(tx, &self.0).await
    }
}

impl Transition for ListUsers {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<User>, StoreError> {
        let rows = tx.rows(&LIST, params![self.0.after, self.0.limit() + 1]).await?;
        let users = rows.iter().map(user).collect::<Result<Vec<_>, _>>()?;
        Ok(page(users, &self.0, |user| user.seq))
    }
}

impl Transition for RemoveUser {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<RemovedUser, StoreError> {
        if tx.run(&REMOVE, params![&self.user]).await? == 0 {
            return Err(not_found(&self.user));
        }
        let tokens = tx.run(&REVOKE, params![&self.user, self.now]).await?;
        let live = tx.rows(&LIVE_SESSIONS, params![&self.user]).await?;
        let ids = live.iter().map(|row| row.only_text().map(SessionId::from_text)).collect::<Result<Vec<_>, _>>()?;
        let mut sessions = 0;
        for id in ids {
            let (to, reason) = (SessionState::Ended, EndReason::ClosedByPerson);
            EndSession { id, to, reason, now: self.now }.run(tx).await?;
            sessions += 1;
        }
        Ok(RemovedUser { tokens, sessions })
    }
}
