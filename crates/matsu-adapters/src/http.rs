//! HTTP clients, in the one place that builds them. Every client here has a time limit, follows no redirect by itself
//! and uses no proxy of the environment, so that who asked decides about every hop.
#![expect(clippy::disallowed_methods, reason = "the one file of this crate that builds HTTP clients")]

use std::sync::Arc;
use std::time::Duration;

use crate::fetch::names::GuardedNames;

/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Every client begins here, because the TLS library does its cryptography with what this process has chosen for it.
pub fn builder() -> reqwest::ClientBuilder {
    // An error says that it was chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
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
