//! Named bearer tokens.

use matsu_core::access::Role;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TokenId;
use matsu_core::page::Page;
use matsu_core::ports::store::{ExtendToken, InsertToken, ListTokens, RevokeToken, StoreError, TokenByHash};
use matsu_core::principal::Principal;
use matsu_core::token::Token;

use super::users;
use crate::sql::{Row, Sql, Transition, Tx, params};
use crate::transitions::paging::page;

macro_rules! columns {
    () => {
        "t.id, t.name, t.principal, t.role, t.tools, t.created_at, t.expires_at, t.revoked_at, t.seq, u.roots_json \
         FROM tokens t LEFT JOIN users u ON u.principal = t.principal"
    };
}

const INSERT: Sql = Sql::both(
    "INSERT INTO tokens (id, name, principal, secret_hash, created_at, role, tools, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING RETURNING seq",
);
const BY_HASH: Sql = Sql::both(concat!("SELECT ", columns!(), " WHERE t.secret_hash = $1 AND t.revoked_at IS NULL"));
const LIST: Sql = Sql::both(concat!(
    "SELECT ",
    columns!(),
    " WHERE (CAST($1 AS TEXT) IS NULL OR t.principal = $1) \
     AND t.seq > coalesce(CAST($2 AS BIGINT), -1) ORDER BY t.seq LIMIT $3"
));
const REVOKE: Sql = Sql::both(
    "UPDATE tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 \
     AND (CAST($3 AS TEXT) IS NULL OR principal = $3)",
);
const EXTEND: Sql = Sql::both("UPDATE tokens SET expires_at = $2 WHERE id = $1 AND revoked_at IS NULL");
const HAS_USER: Sql = Sql::both("SELECT 1 FROM users WHERE principal = $1");

fn token(row: &Row) -> Result<Token, StoreError> {
    let mut c = row.columns();
    Ok(Token {
        id: TokenId::from_text(c.text()?),
        name: c.text()?,
        principal: Principal::from_text(c.text()?),
        role: c.word(Role::parse)?,
        tools: c.opt_text()?,
        created_at: c.time()?,
        expires_at: c.opt_time()?,
        revoked_at: c.opt_time()?,
        seq: c.int()?,
        roots: users::roots(c.opt_text()?.as_deref()),
    })
}

impl Transition for InsertToken {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Token, StoreError> {
        let new = &self.0;
        let is_local = new.principal == Principal::local_user();
        if !is_local && tx.row(&HAS_USER, params![&new.principal]).await?.is_none() {
            let name = new.principal.as_user().unwrap_or(new.principal.as_str());
            let message = format!("there is no user {name}; add it first with `matsu user add {name}`");
            return Err(StoreError::Refused { code: ErrorCode::InvalidParams, message });
        }
        let values = params![
            &new.id,
            &new.name,
            &new.principal,
            &new.secret_hash,
            new.created_at,
            new.role.as_str(),
            new.tools.as_ref(),
            new.expires_at
        ];
        if tx.row(&INSERT, values).await?.is_none() {
            return Err(StoreError::Refused {
                code: ErrorCode::InvalidParams,
                message: format!("there is a token named {}; choose another name, or revoke that one first", new.name),
            });
        }
        let row = tx.row(&BY_HASH, params![&new.secret_hash]).await?;
        token(&row.ok_or_else(|| StoreError::NotFound { what: "token", id: new.id.to_string() })?)
    }
}

impl Transition for TokenByHash {
    const READS: bool = true;

    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Token>, StoreError> {
        tx.row(&BY_HASH, params![&self.0]).await?.as_ref().map(token).transpose()
    }
}

impl Transition for ListTokens {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Token>, StoreError> {
        let rows = tx.rows(&LIST, params![self.of.as_ref(), self.page.after, self.page.limit() + 1]).await?;
        let tokens = rows.iter().map(token).collect::<Result<Vec<_>, _>>()?;
        Ok(page(tokens, &self.page, |token| token.seq))
    }
}

impl Transition for RevokeToken {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        if tx.run(&REVOKE, params![&self.id, self.now, self.of.as_ref()]).await? == 0 {
            return Err(StoreError::NotFound { what: "token", id: self.id.to_string() });
        }
        Ok(())
    }
}

impl Transition for ExtendToken {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.run(&EXTEND, params![&self.id, self.expires_at]).await.map(drop)
    }
}
