//! The newest release: the page `releases/latest` of the repository leads on to the one with the version in its address.

use std::time::Duration;

use crate::http;

/// A person waits for it.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The version of the newest release.
///
/// # Errors
/// Why it cannot be known, in words for a person.
pub async fn newest(repository: &str) -> Result<String, String> {
    if repository.contains("EXAMPLE-OWNER") {
        return Err(
            "this build names no release page; set upgrade.repository to the address of the repository".to_owned()
        );
    }
    let address = format!("{}/releases/latest", repository.trim_end_matches('/'));
    let client = http::service_client("matsu", ANSWER_MAX).map_err(|error| error.to_string())?;
    let answer = client.get(&address).send().await.map_err(|error| format!("{address} does not answer: {error}"))?;
    let leads_to = answer.headers().get("location").and_then(|value| value.to_str().ok()).unwrap_or_default();
    version(leads_to).ok_or_else(|| {
        format!("{address} answered with status {} and no address of a release", answer.status().as_u16())
    })
}

/// `…/releases/tag/v1.2.3`, and nothing else: it is printed on a terminal.
fn version(address: &str) -> Option<String> {
    let (_, tag) = address.rsplit_once("/releases/tag/")?;
    let version = tag.strip_prefix('v').unwrap_or(tag);
    let is_plain = version.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c));
    (is_plain && version.starts_with(|c: char| c.is_ascii_digit()) && version.len() < 64).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_of_a_release_has_a_version() {
        assert_eq!(version("https://example.org/a/b/releases/tag/v1.2.3"), Some("1.2.3".to_owned()));
        assert_eq!(version("/a/b/releases/tag/0.2.0-rc.1"), Some("0.2.0-rc.1".to_owned()));
        for other in ["", "https://example.org/releases", "/releases/tag/vnext", "/releases/tag/1.0\u{1b}[31m"] {
            assert_eq!(version(other), None, "{other:?}");
        }
    }
}
