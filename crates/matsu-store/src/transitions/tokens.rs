//! Named bearer tokens.

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TokenId;
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;
use matsu_core::token::{NewToken, Token};

use crate::sql::{Row, Sql, Transition, Tx, params};

const INSERT: Sql = Sql::both(
    "INSERT INTO tokens (id, name, principal, secret_hash, created_at) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT DO NOTHING",
);
const BY_HASH: Sql = Sql::both(
    "SELECT id, name, principal, created_at, revoked_at FROM tokens WHERE secret_hash = $1 AND revoked_at IS NULL",
);
const ALL: Sql = Sql::both("SELECT id, name, principal, created_at, revoked_at FROM tokens ORDER BY created_at, id");
const REVOKE: Sql = Sql::both("UPDATE tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1");

fn token(row: &Row) -> Result<Token, StoreError> {
    let mut c = row.columns();
    Ok(Token {
        id: TokenId::from_text(c.text()?),
        name: c.text()?,
        principal: Principal::from_text(c.text()?),
        created_at: c.time()?,
        revoked_at: c.opt_time()?,
    })
}

pub struct InsertToken(pub NewToken);

impl Transition for InsertToken {
    type Output = Token;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Token, StoreError> {
        let new = &self.0;
        let inserted =
            tx.run(&INSERT, params![&new.id, &new.name, &new.principal, &new.secret_hash, new.created_at]).await?;
        if inserted == 0 {
            return Err(StoreError::Refused {
                code: ErrorCode::InvalidParams,
                message: format!("there is a token named {}; choose another name, or revoke that one first", new.name),
            });
        }
        Ok(Token {
            id: new.id.clone(),
            name: new.name.clone(),
            principal: new.principal.clone(),
            created_at: new.created_at,
            revoked_at: None,
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

pub struct ReadTokens;

impl Transition for ReadTokens {
    type Output = Vec<Token>;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Token>, StoreError> {
        tx.rows(&ALL, params![]).await?.iter().map(token).collect()
    }
}

pub struct RevokeToken {
    pub id: TokenId,
    pub now: Timestamp,
}

impl Transition for RevokeToken {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        if tx.run(&REVOKE, params![&self.id, self.now]).await? == 0 {
            return Err(StoreError::NotFound { what: "token", id: self.id.to_string() });
        }
        Ok(())
    }
}
