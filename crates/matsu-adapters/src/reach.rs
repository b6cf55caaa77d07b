//! Whether a Matsu server answers at an address, the way a browser would ask it.

use std::time::Duration;

use crate::http;

/// Longer than any server on the way takes; a person waits for it.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// Asks for the health check, which needs no key.
///
/// # Errors
/// Why it does not answer, or that something else does.
pub async fn server(address: &str) -> Result<(), String> {
    let client = http::service_client("matsu", ANSWER_MAX).map_err(|error| deepest(&error))?;
    let answer = client.get(format!("{address}/healthz")).send().await.map_err(|error| deepest(&error))?;
    let status = answer.status();
    // Something else may answer there, with a page of any size.
    let is_short = answer.content_length().is_none_or(|bytes| bytes < 64);
    if status.is_success() && is_short && answer.text().await.is_ok_and(|text| text == "ok\n") {
        return Ok(());
    }
    Err(format!("another server answers at this address (status {})", status.as_u16()))
}

/// The outer ones only say that a request failed.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
