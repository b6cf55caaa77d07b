//! Names become addresses here, once per connection, and every address has passed the guard before a socket sees it.
//! There is no second look-up between the check and the connection, so a name that answers differently the second
//! time gains nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;

use super::guard::AddressGuard;

/// Where addresses of names come from.
#[async_trait]
pub trait Names: Send + Sync {
    async fn look_up(&self, name: &str) -> std::io::Result<Vec<IpAddr>>;
}

/// The system's own resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

#[async_trait]
impl Names for SystemNames {
    async fn look_up(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Looks names up and lets only guarded addresses through.
#[derive(Clone)]
pub struct GuardedNames {
    names: Arc<dyn Names>,
    guard: Arc<AddressGuard>,
}

impl GuardedNames {
    #[must_use]
    pub fn new(names: Arc<dyn Names>, guard: Arc<AddressGuard>) -> Self {
        Self { names, guard }
    }

    #[must_use]
    pub fn guard(&self) -> &AddressGuard {
        &self.guard
    }

    /// The addresses that `host` may be connected at.
    ///
    /// # Errors
    /// The look-up's own, or a [`super::guard::Refusal`] as `PermissionDenied`.
    pub async fn addresses(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(ip) = bare.parse::<IpAddr>() {
            self.check(host, &[ip])?;
            return Ok(vec![ip]);
        }
        let found = self.names.look_up(host).await?;
        self.check(host, &found)?;
        Ok(found)
    }

    fn check(&self, host: &str, found: &[IpAddr]) -> std::io::Result<()> {
        let refused = |refusal| std::io::Error::new(std::io::ErrorKind::PermissionDenied, refusal);
        self.guard.check_resolved(host, found).map_err(refused)
    }
}

impl reqwest::dns::Resolve for GuardedNames {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let this = self.clone();
        Box::pin(async move {
            let found = this.addresses(name.as_str()).await?;
            let addresses: reqwest::dns::Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}
