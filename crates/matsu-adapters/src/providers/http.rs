//! The HTTP client that models are reached with.

use std::time::Duration;

/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(15);

/// A client for one provider. Redirects are not followed: a key must not travel to another place.
pub fn client(base_url: &str) -> Result<reqwest::Client, String> {
    let mut builder = crate::http::builder()
        .connect_timeout(CONNECT_MAX)
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
        .user_agent(concat!("matsu/", env!("CARGO_PKG_VERSION")));
    if is_loopback(base_url) {
        // A model on this machine is not behind the proxy that leads out of it.
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| format!("no HTTP client can be made: {error}"))
}

fn is_loopback(url: &str) -> bool {
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| host == "localhost" || host.starts_with("127.") || host == "[::1]")
}
