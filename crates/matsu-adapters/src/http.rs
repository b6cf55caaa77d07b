//! HTTP clients, in the one place that builds them. Every client here has a time limit, follows no redirect by itself
//! and uses no proxy of the environment, so that the caller decides about every hop.
#![expect(clippy::disallowed_methods, reason = "the one file of this crate that builds HTTP clients")]

pub mod answer;
mod authorities;
pub mod guard;
pub mod names;

use std::sync::Arc;
use std::time::Duration;

use names::GuardedNames;

/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Whether HTTPS works on this system.
#[must_use]
pub fn has_certificates() -> bool {
    authorities::are_found()
}

/// Every client begins here. Without certificates it trusts no HTTPS server, and plain HTTP, such as a model on this
/// machine, still works.
pub fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder().tls_backend_preconfigured(authorities::client_config())
}

/// A client for pages of the web: names are resolved through the guard.
///
/// # Errors
/// The TLS library could not start.
pub fn page_client(
    names: GuardedNames,
    user_agent: &str,
    time_max: Duration,
) -> Result<reqwest::Client, reqwest::Error> {
    base(user_agent, time_max).dns_resolver(Arc::new(names)).build()
}

/// A client for services that the operator configured by name; they may be on this machine.
///
/// # Errors
/// The TLS library could not start.
pub fn service_client(user_agent: &str, time_max: Duration) -> Result<reqwest::Client, reqwest::Error> {
    base(user_agent, time_max).build()
}

fn base(user_agent: &str, time_max: Duration) -> reqwest::ClientBuilder {
    builder()
        .user_agent(user_agent)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT_MAX)
        .timeout(time_max)
        // An idle connection was checked when it was opened; it must not outlive what the name may have become.
        .pool_idle_timeout(Duration::from_secs(30))
}
