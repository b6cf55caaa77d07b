//! Tokens of requests: made, found by their secret, revoked. A token that was read is believed for a moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use matsu_core::access::Role;
use matsu_core::clock::{Clock, Timestamp};
use matsu_core::id::TokenId;
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{ExtendToken, InsertToken, ListTokens, RevokeToken, Store, StoreError, TokenByHash};
use matsu_core::principal::Principal;
use matsu_core::redaction;
use matsu_core::secret::{hash, mint as mint_secret};
use matsu_core::token::{NewToken, Token};
use tokio::time::Instant;

use crate::runtime::Runtime;

/// A token read from the store is believed for this long, so that not every request asks for it. A token revoked
/// through this process is out at once, one revoked through another after this time.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
const BELIEVED_MAX: usize = 1_000;

/// A token to be made.
pub struct TokenWish {
    pub name: String,
    pub principal: Principal,
    pub role: Role,
    /// The only tools it is offered.
    pub tools: Option<String>,
    pub expires_in: Option<Duration>,
}

impl TokenWish {
    /// Of the local owner, without an end.
    #[must_use]
    pub fn of_owner(name: String) -> Self {
        Self { name, principal: Principal::local_user(), role: Role::Admin, tools: None, expires_in: None }
    }
}

/// What a secret stands for.
#[derive(Debug)]
pub enum Found {
    Live(Token),
    /// Its time was over just now.
    Expired(Token),
    /// It is unknown or was revoked.
    Nothing,
}

/// Looks tokens up by the hash of their secret. Nothing is compared with a secret itself, so the time it takes reveals
/// nothing about one.
pub struct Tokens {
    store: Arc<dyn Store>,
    clock: Clock,
    believed: Mutex<HashMap<String, (Instant, Token)>>,
}

impl Tokens {
    #[must_use]
    pub fn new(runtime: &Runtime) -> Self {
        Self { store: Arc::clone(runtime.store()), clock: *runtime.clock(), believed: Mutex::default() }
    }

    /// Tokens, of this principal where one is named; oldest first.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn list(&self, of: Option<&Principal>, page: &PageRequest) -> Result<Page<Token>, StoreError> {
        self.store.run(ListTokens { of: of.cloned(), page: page.clone() }).await
    }

    /// Makes a named token and returns it with its secret, which is not kept.
    ///
    /// # Errors
    /// A name that is in use; a user that does not exist.
    pub async fn make(&self, wish: TokenWish) -> Result<(Token, String), StoreError> {
        let secret = mint_secret();
        Ok((self.keep(wish, &secret).await?, secret))
    }

    /// Keeps a token for a secret that was made elsewhere.
    ///
    /// # Errors
    /// A name that is in use; a user that does not exist.
    pub async fn keep(&self, wish: TokenWish, secret: &str) -> Result<Token, StoreError> {
        let now = self.clock.now();
        let token = NewToken {
            id: TokenId::mint(now),
            name: wish.name,
            principal: wish.principal,
            secret_hash: hash(secret),
            role: wish.role,
            tools: wish.tools,
            created_at: now,
            expires_at: wish.expires_in.map(|span| now.plus(span)),
        };
        self.store.run(InsertToken(token)).await
    }

    /// Whether a secret with this hash still holds, for what stays open for long.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn is_live(&self, hash: &str) -> Result<bool, StoreError> {
        match self.store.run(TokenByHash(hash.to_owned())).await? {
            Some(token) => Ok(matches!(self.judge(token).await?, Found::Live(_))),
            None => Ok(false),
        }
    }

    /// The token with this secret.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn find(&self, presented: &str) -> Result<Found, StoreError> {
        let hash = hash(presented);
        let believed = self.believed(&hash);
        let is_believed = believed.is_some();
        let known = match believed {
            Some(token) => Some(token),
            None => self.store.run(TokenByHash(hash.clone())).await?,
        };
        let Some(token) = known else { return Ok(Found::Nothing) };
        let found = self.judge(token).await?;
        if let (Found::Live(token), false) = (&found, is_believed) {
            redaction::remember_made("token", presented);
            let mut believed = self.lock();
            if believed.len() >= BELIEVED_MAX {
                believed.clear();
            }
            believed.insert(hash, (self.clock.instant(), token.clone()));
        }
        Ok(found)
    }

    /// A token whose time is over is revoked the first time that is noticed: a clock that is set back later does not
    /// bring it back.
    async fn judge(&self, token: Token) -> Result<Found, StoreError> {
        let now = self.clock.now();
        if !token.is_expired(now) {
            return Ok(Found::Live(token));
        }
        self.store.run(RevokeToken { of: None, id: token.id.clone(), now }).await?;
        self.forget(&token.id);
        Ok(Found::Expired(token))
    }

    /// Moves the end of a token's time.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn extend(&self, id: &TokenId, expires_at: Timestamp) -> Result<(), StoreError> {
        self.store.run(ExtendToken { id: id.clone(), expires_at }).await?;
        self.forget(id);
        Ok(())
    }

    /// Revokes a token, of this principal where one is named; from the next request on it opens nothing here.
    ///
    /// # Errors
    /// An unknown id, or one of another principal.
    pub async fn revoke(&self, of: Option<&Principal>, id: &TokenId) -> Result<(), StoreError> {
        self.store.run(RevokeToken { of: of.cloned(), id: id.clone(), now: self.clock.now() }).await?;
        self.forget(id);
        Ok(())
    }

    /// The next request asks the store again.
    fn forget(&self, id: &TokenId) {
        self.lock().retain(|_, (_, token)| token.id != *id);
    }

    /// The same for every token.
    pub fn forget_all(&self) {
        self.lock().clear();
    }

    fn believed(&self, hash: &str) -> Option<Token> {
        let believed = self.lock();
        let (since, token) = believed.get(hash)?;
        (self.clock.instant() - *since < BELIEVED_FOR).then(|| token.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Token)>> {
        self.believed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
