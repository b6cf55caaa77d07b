//! Named bearer tokens.

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TokenId;
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;
use matsu_core::token::{NewToken, Token};

use super::read;
use crate::sql::{Row, Sql, Transition, Tx, params};

const INSERT: Sql = Sql::both(
    "INSERT INTO tokens (id, name, principal, secret_hash, created_at) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT DO NOTHING RETURNING seq",
);
const BY_HASH: Sql = Sql::both(
    "SELECT id, name, principal, created_at, revoked_at, seq FROM tokens WHERE secret_hash = $1 \
     AND revoked_at IS NULL",
);
const LIST: Sql = Sql::both(
    "SELECT id, name, principal, created_at, revoked_at, seq FROM tokens WHERE principal = $1 \
     AND seq > coalesce(CAST($2 AS BIGINT), -1) ORDER BY seq LIMIT $3",
);
const REVOKE: Sql =
    Sql::both("UPDATE tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 AND principal = $3");

fn token(row: &Row) -> Result<Token, StoreError> {
    let mut c = row.columns();
    Ok(Token {
        id: TokenId::from_text(c.text()?),
        name: c.text()?,
        principal: Principal::from_text(c.text()?),
        created_at: c.time()?,
        revoked_at: c.opt_time()?,
        seq: c.int()?,
    })
}

pub struct InsertToken(pub NewToken);

impl Transition for InsertToken {
    type Output = Token;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Token, StoreError> {
        let new = &self.0;
        let inserted =
            tx.row(&INSERT, params![&new.id, &new.name, &new.principal, &new.secret_hash, new.created_at]).await?;
        let Some(row) = inserted else {
            return Err(StoreError::Refused {
                code: ErrorCode::InvalidParams,
                message: format!("there is a token named {}; choose another name, or revoke that one first", new.name),
            });
        };
        Ok(Token {
            id: new.id.clone(),
            name: new.name.clone(),
            principal: new.principal.clone(),
            created_at: new.created_at,
            revoked_at: None,
            seq: row.only_int()?,
        })
    }
}

pub struct TokenByHash(pub String);

impl Transition for TokenByHash {
    type Output = Option<Token>;

    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Token>, StoreError> {
        tx.row(&BY_HASH, params![&self.0]).await?.as_ref().map(token).transpose()
    }
}

pub struct ListTokens {
    pub of: Principal,
    pub page: PageRequest,
}

impl Transition for ListTokens {
    type Output = Page<Token>;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Token>, StoreError> {
        let rows = tx.rows(&LIST, params![&self.of, self.page.after, self.page.limit() + 1]).await?;
        let tokens = rows.iter().map(token).collect::<Result<Vec<_>, _>>()?;
        Ok(read::page(tokens, &self.page, |token| token.seq))
    }
}

pub struct RevokeToken {
    pub of: Principal,
    pub id: TokenId,
    pub now: Timestamp,
}

impl Transition for RevokeToken {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        if tx.run(&REVOKE, params![&self.id, self.now, &self.of]).await? == 0 {
            return Err(StoreError::NotFound { what: "token", id: self.id.to_string() });
        }
        Ok(())
    }
}
