//! The HTTP client for remote MCP servers.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Redirects are not followed: headers may hold a token.
pub fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let mut builder = crate::http::builder().connect_timeout(CONNECT_MAX).redirect(reqwest::redirect::Policy::none());
    let host = reqwest::Url::parse(url).map_err(|error| format!("its url is not a valid address: {error}"))?;
    if host.host_str().is_some_and(|host| host == "localhost" || host.starts_with("127.") || host == "[::1]") {
        builder = builder.no_proxy();
    }
    let client = builder.build().map_err(|error| format!("no HTTP client can be made: {error}"))?;
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let odd = |_| format!("the header {name} cannot be sent");
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| odd(()))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| odd(()))?;
        value.set_sensitive(true);
        custom.insert(parsed, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(custom);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
