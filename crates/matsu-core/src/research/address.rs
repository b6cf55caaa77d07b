//! Addresses: when two are the same page, which registrable domain one belongs to, and which domains are primary.

use url::{Host, Url};

/// Query keys that say where a reader came from, never what the page is.
const TRACKING: &[&str] = &["fbclid", "gclid", "dclid", "msclkid", "mc_cid", "mc_eid", "igshid", "ref_src", "yclid"];
const TRACKING_PREFIX: &str = "utm_";

/// Suffixes whose sites publish in their own name about their own matter. `ac.*` stands for `ac.jp`, `ac.uk`, ….
pub const PRIMARY_SUFFIXES: &[&str] = &[
    "gov",
    "edu",
    "mil",
    "int",
    "gov.*",
    "edu.*",
    "ac.*",
    "go.jp",
    "go.kr",
    "lg.jp",
    "who.int",
    "un.org",
    "europa.eu",
    "oecd.org",
    "worldbank.org",
    "imf.org",
    "arxiv.org",
    "doi.org",
    "nature.com",
    "science.org",
    "pubmed.gov",
    "iso.org",
    "ietf.org",
    "rfc-editor.org",
    "w3.org",
    "nber.org",
    "jstage.jst.go.jp",
];

/// The one spelling of an address: no fragment, no tracking keys, no default port, sorted query, no trailing slash
/// below the root. `None`: not something that can be fetched.
#[must_use]
pub fn canonical(address: &str) -> Option<String> {
    let mut url = Url::parse(address.trim()).ok()?;
    match url.scheme() {
        "http" | "https" => {}
        "file" => return Some(url.to_string()),
        _ => return None,
    }
    if url.host_str().is_none_or(str::is_empty) {
        return None;
    }
    url.set_fragment(None);
    // What was typed into an address may be a secret, and is not part of what the page is.
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    let mut pairs: Vec<(String, String)> =
        url.query_pairs().into_owned().filter(|(key, _)| !is_tracking(key)).collect();
    pairs.sort();
    if pairs.is_empty() {
        url.set_query(None);
    } else {
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(if path.is_empty() { "/" } else { &path });
    Some(url.to_string())
}

fn is_tracking(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.starts_with(TRACKING_PREFIX) || TRACKING.contains(&key.as_str())
}

/// The host of an address, in lower case, without a trailing dot.
#[must_use]
pub fn host(address: &str) -> Option<String> {
    let url = Url::parse(address.trim()).ok()?;
    Some(url.host_str()?.trim_end_matches('.').to_ascii_lowercase())
}

/// What independence is counted by: the registrable domain of a host (`a.co.jp` and `b.co.jp` differ, `x.a.co.jp` is
/// `a.co.jp`). An IP address or a name without a public suffix stands for itself.
#[must_use]
pub fn registrable(host: &str) -> String {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if matches!(Host::parse(&host), Ok(Host::Ipv4(_) | Host::Ipv6(_))) {
        return host;
    }
    psl::domain_str(&host).map_or_else(|| host.clone(), str::to_owned)
}

/// The domain of an address; `None` where it has no host.
#[must_use]
pub fn domain_of(address: &str) -> Option<String> {
    host(address).map(|host| registrable(&host))
}

/// Whether this is a public suffix, under which any person can register a name: `com`, `co.jp`, `github.io`.
#[must_use]
pub fn is_public_suffix(domain: &str) -> bool {
    psl::suffix_str(domain).is_some_and(|suffix| suffix == domain)
}

/// Whether the host is, or lies below, one of the suffixes. By whole labels: `education-blog.com` is not `edu`.
#[must_use]
pub fn is_primary<'a>(host: &str, suffixes: impl IntoIterator<Item = &'a str>) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let labels: Vec<&str> = host.split('.').collect();
    suffixes.into_iter().any(|suffix| ends_with_labels(&labels, suffix))
}

fn ends_with_labels(labels: &[&str], suffix: &str) -> bool {
    let wanted: Vec<&str> = suffix.trim_start_matches("*.").split('.').collect();
    labels.len() >= wanted.len()
        && labels[labels.len() - wanted.len()..].iter().zip(&wanted).all(|(label, want)| *want == "*" || label == want)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_has_one_spelling() {
        for (address, spelling) in [
            ("HTTPS://Example.org:443/A/?b=2&a=1#top", Some("https://example.org/A?a=1&b=2")),
            ("https://example.org", Some("https://example.org/")),
            ("https://example.org/x/?utm_source=n&UTM_Medium=m&fbclid=1", Some("https://example.org/x")),
            ("https://user:secret@example.org/x", Some("https://example.org/x")),
            ("https://example.org/検索?q=待つ", Some("https://example.org/%E6%A4%9C%E7%B4%A2?q=%E5%BE%85%E3%81%A4")),
            ("file:///docs/a.md", Some("file:///docs/a.md")),
            ("javascript:alert(1)", None),
            ("ftp://example.org/x", None),
            ("not an address", None),
        ] {
            assert_eq!(canonical(address).as_deref(), spelling, "{address}");
        }
    }

    #[test]
    fn independence_is_by_registrable_domain() {
        for (host, domain) in [
            ("www.example.com", "example.com"),
            ("x.a.co.jp", "a.co.jp"),
            ("b.co.jp", "b.co.jp"),
            ("Sub.Example.CO.UK.", "example.co.uk"),
            ("me.github.io", "me.github.io"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(registrable(host), domain, "{host}");
        }
    }

    #[test]
    fn primary_is_by_whole_labels() {
        for (host, primary) in [
            ("www.cdc.gov", true),
            ("mit.edu", true),
            ("education-blog.com", false),
            ("www.u-tokyo.ac.jp", true),
            ("cam.ac.uk", true),
            ("mac.example", false),
            ("www.mhlw.go.jp", true),
            ("notarxiv.org", false),
            ("export.arxiv.org", true),
            ("gov.example.com", false),
        ] {
            assert_eq!(is_primary(host, PRIMARY_SUFFIXES.iter().copied()), primary, "{host}");
        }
    }

    #[test]
    fn public_suffixes_are_known_at_any_depth() {
        for (domain, public) in
            [("com", true), ("jp", true), ("co.jp", true), ("io", true), ("github.io", true), ("example.com", false)]
        {
            assert_eq!(is_public_suffix(domain), public, "{domain}");
        }
    }
}
