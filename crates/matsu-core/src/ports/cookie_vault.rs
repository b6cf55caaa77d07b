//! Cookies that a person brought: pasted, or read from their own browser. They never pass through a model, and serve
//! only their owner and matching hosts. The fetcher reads them; this is how they get in and out.

use async_trait::async_trait;

use crate::principal::Principal;

#[async_trait]
pub trait CookieVault: Send + Sync {
    /// Keeps cookies for a registrable domain. `text` is a `Cookie:` header's value or a Netscape cookie file; cookies
    /// for hosts outside the domain are left out. Returns how many were kept.
    async fn keep(&self, owner: &Principal, domain: &str, text: &str) -> Result<usize, VaultError>;

    /// Reads the domain's cookies from the person's running browser, if one can be reached. Returns how many came.
    async fn collect(&self, owner: &Principal, domain: &str) -> Result<usize, VaultError>;

    async fn forget(&self, owner: &Principal, domain: &str) -> Result<(), VaultError>;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// No cookie in it, or none for that domain.
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    Unavailable(String),
}
