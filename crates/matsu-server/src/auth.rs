//! Who is calling, and whether the door may open: tokens, Host and Origin.

pub mod caller;
pub mod guard;
pub mod login;
pub mod origin;
pub mod page_session;
pub mod refusals;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::id::TokenId;
use matsu_core::ports::store::{Store, StoreError};
use matsu_core::principal::Principal;
use matsu_core::redaction;
use matsu_core::token::{NewToken, Token};
use tokio::time::Instant;

pub use caller::{Caller, Credential, PresentedSession};
pub use matsu_core::secret::{hash, mint as mint_secret};

/// A token read from the store is believed for this long, so that not every request asks for it. A token revoked
/// through this process is out at once, one revoked through another after this time.
const BELIEVED_FOR: Duration = Duration::from_secs(1);
const BELIEVED_MAX: usize = 1_000;

/// Looks tokens up by the hash of their secret. Nothing is compared with a secret itself, so the time it takes tells
/// nothing about one.
pub struct Tokens {
    store: Arc<dyn Store>,
    clock: Clock,
    believed: Mutex<HashMap<String, (Instant, Token)>>,
}

impl Tokens {
    pub fn new(store: Arc<dyn Store>, clock: Clock) -> Self {
        Self { store, clock, believed: Mutex::default() }
    }

    /// Makes a named token and returns it with its secret, which is not kept.
    ///
    /// # Errors
    /// A name that is in use.
    pub async fn make(&self, name: &str, principal: Principal) -> Result<(Token, String), StoreError> {
        let secret = mint_secret();
        Ok((self.keep(name, principal, &secret).await?, secret))
    }

    /// Keeps a token for a secret that somebody else made.
    ///
    /// # Errors
    /// A name that is in use.
    pub async fn keep(&self, name: &str, principal: Principal, secret: &str) -> Result<Token, StoreError> {
        let token = NewToken {
            id: TokenId::mint(self.clock.now()),
            name: name.to_owned(),
            principal,
            secret_hash: hash(secret),
            created_at: self.clock.now(),
        };
        self.store.insert_token(token).await
    }

    /// Whether a secret with this hash still opens doors, for whoever stays inside for long.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn is_live(&self, hash: &str) -> Result<bool, StoreError> {
        Ok(self.store.token_by_hash(hash).await?.is_some())
    }

    /// The live token with this secret.
    ///
    /// # Errors
    /// The store is not available.
    pub async fn find(&self, presented: &str) -> Result<Option<Token>, StoreError> {
        let hash = hash(presented);
        if let Some(token) = self.believed(&hash) {
            return Ok(Some(token));
        }
        let found = self.store.token_by_hash(&hash).await?;
        if let Some(token) = &found {
            redaction::remember_made("token", presented);
            let mut believed = self.lock();
            if believed.len() >= BELIEVED_MAX {
                believed.clear();
            }
            believed.insert(hash, (self.clock.instant(), token.clone()));
        }
        Ok(found)
    }

    /// Revokes a token of this principal; from the next request on it opens nothing here.
    ///
    /// # Errors
    /// An unknown id, or somebody else's.
    pub async fn revoke(&self, of: &Principal, id: &TokenId) -> Result<(), StoreError> {
        self.store.revoke_token(of, id, self.clock.now()).await?;
        self.lock().retain(|_, (_, token)| token.id != *id);
        Ok(())
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
