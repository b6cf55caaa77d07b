//! Cookies that a person gave for a site. They come as a header line or as a `cookies.txt`, are sent only to hosts they
//! match, and are never shown again: `Debug` hides their values.

use std::fmt;

use matsu_core::research::address::registrable;

/// One cookie, with where it may go.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Cookie {
    pub name: String,
    pub value: String,
    /// Lower case, without a leading dot.
    pub domain: String,
    /// Whether hosts below the domain get it too.
    pub with_subdomains: bool,
    pub path: String,
    pub is_secure: bool,
    /// Seconds since 1970; `None` for as long as it works.
    pub expires_at_s: Option<i64>,
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({} for {}{})", self.name, self.domain, self.path)
    }
}

/// Why a text holds no cookies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CookieError {
    #[error("line {line} is neither `name=value` nor a line of a cookies.txt")]
    Line { line: usize },
    #[error("the text contains no cookie")]
    Empty,
    #[error("cookie {name} has characters that are not allowed in a header")]
    Unprintable { name: String },
}

/// What a person pasted, for the site `host`: the value of a `Cookie` header, or a `cookies.txt`.
///
/// # Errors
/// [`CookieError`], without the text itself: it is a secret.
pub fn parse(host: &str, text: &str) -> Result<Vec<Cookie>, CookieError> {
    let is_file = text.lines().any(|line| line.split('\t').count() >= 7);
    let found = if is_file { parse_file(text)? } else { parse_header(host, text)? };
    if found.is_empty() {
        return Err(CookieError::Empty);
    }
    for cookie in &found {
        let is_clean = |text: &str| text.bytes().all(|b| (0x21..0x7f).contains(&b) && !b"\";,\\".contains(&b));
        let is_value = |text: &str| text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b';');
        if cookie.name.is_empty() || !is_clean(&cookie.name) || !is_value(&cookie.value) {
            return Err(CookieError::Unprintable {
                name: cookie.name.chars().filter(char::is_ascii_graphic).collect(),
            });
        }
    }
    Ok(found)
}

fn parse_header(host: &str, text: &str) -> Result<Vec<Cookie>, CookieError> {
    let mut found = Vec::new();
    let domain = host.trim_start_matches('.').to_ascii_lowercase();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let pairs = line.get(..7).filter(|start| start.eq_ignore_ascii_case("cookie:")).map_or(line, |_| &line[7..]);
        for pair in pairs.split(';').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(CookieError::Line { line: number + 1 })?;
            found.push(Cookie {
                name: name.trim().to_owned(),
                value: value.trim().to_owned(),
                with_subdomains: is_parent(&domain),
                domain: domain.clone(),
                path: "/".to_owned(),
                is_secure: false,
                expires_at_s: None,
            });
        }
    }
    Ok(found)
}

/// Whether cookies given for this name are meant for the hosts below it too: a whole site, and no number or single host.
/// A header line does not say it.
fn is_parent(domain: &str) -> bool {
    domain.contains('.') && domain.parse::<std::net::IpAddr>().is_err() && registrable(domain) == domain
}

fn parse_file(text: &str) -> Result<Vec<Cookie>, CookieError> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        // A cookie that scripts may not read is written as a comment with this mark.
        let line = line.trim_end_matches('\r');
        let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [domain, with_subdomains, path, is_secure, expires, name, value, ..] = fields[..] else {
            return Err(CookieError::Line { line: number + 1 });
        };
        found.push(Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: domain.trim_start_matches('.').to_ascii_lowercase(),
            with_subdomains: domain.starts_with('.') || with_subdomains.eq_ignore_ascii_case("true"),
            path: if path.starts_with('/') { path.to_owned() } else { "/".to_owned() },
            is_secure: is_secure.eq_ignore_ascii_case("true"),
            expires_at_s: expires.parse().ok().filter(|at| *at > 0),
        });
    }
    Ok(found)
}

/// Whether a cookie may go to this address.
#[must_use]
pub fn matches(cookie: &Cookie, url: &url::Url, now_s: i64) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.to_ascii_lowercase();
    let is_host = host == cookie.domain
        || (cookie.with_subdomains && host.strip_suffix(&cookie.domain).is_some_and(|rest| rest.ends_with('.')));
    let path = url.path();
    let is_path = path == cookie.path
        || (path.starts_with(&cookie.path)
            && (cookie.path.ends_with('/') || path[cookie.path.len()..].starts_with('/')));
    let is_fresh = cookie.expires_at_s.is_none_or(|at| at > now_s);
    is_host && is_path && is_fresh && (!cookie.is_secure || url.scheme() == "https")
}

/// The `Cookie` header for an address; `None` if none of them may go there.
#[must_use]
pub fn header_for(cookies: &[Cookie], url: &url::Url, now_s: i64) -> Option<String> {
    let pairs: Vec<String> =
        cookies.iter().filter(|c| matches(c, url, now_s)).map(|c| format!("{}={}", c.name, c.value)).collect();
    (!pairs.is_empty()).then(|| pairs.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> url::Url {
        url::Url::parse(text).expect("a URL")
    }

    #[test]
    fn a_header_for_a_site_reaches_its_subdomains_and_one_for_a_host_does_not() {
        let cookies = parse("Example.org", "Cookie: a=1; b=x=y").expect("cookies");
        for own in ["https://example.org/p", "https://sub.example.org/", "https://a.b.example.org/"] {
            assert_eq!(header_for(&cookies, &url(own), 0).as_deref(), Some("a=1; b=x=y"), "{own}");
        }
        let host = parse("sub.example.org", "a=1").expect("cookies");
        assert_eq!(header_for(&host, &url("https://sub.example.org/"), 0).as_deref(), Some("a=1"));
        for other in ["https://example.org/", "https://x.sub.example.org/"] {
            assert_eq!(header_for(&host, &url(other), 0), None, "{other}");
        }
        for other in ["https://example.org.evil.net/", "https://evilexample.org/"] {
            assert_eq!(header_for(&cookies, &url(other), 0), None, "{other}");
        }
    }

    #[test]
    fn a_file_keeps_domain_path_and_time() {
        let text = "# Netscape HTTP Cookie File\n.example.org\tTRUE\t/a\tTRUE\t100\tsid\ts3cret\n#HttpOnly_example.org\tFALSE\t/\tFALSE\t0\th\t1\n";
        let cookies = parse("ignored", text).expect("cookies");
        assert_eq!(header_for(&cookies, &url("https://x.example.org/a/b"), 50).as_deref(), Some("sid=s3cret"));
        assert_eq!(header_for(&cookies, &url("https://example.org/ab"), 50).as_deref(), Some("h=1"));
        assert_eq!(header_for(&cookies, &url("http://x.example.org/a"), 50), None);
        assert_eq!(header_for(&cookies, &url("https://x.example.org/a"), 100), None);
        assert!(!format!("{cookies:?}").contains("s3cret"));
    }

    #[test]
    fn what_is_no_cookie_is_refused_without_repeating_it() {
        assert_eq!(parse("h", " "), Err(CookieError::Empty));
        assert_eq!(parse("h", "no pair"), Err(CookieError::Line { line: 1 }));
        assert!(matches!(parse("h", "a=b\u{7}"), Err(CookieError::Unprintable { .. })));
        assert!(matches!(parse("h", "a=é"), Err(CookieError::Unprintable { .. })));
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "\\PC{0,200}", host in "[a-z.]{1,20}") {
            if let Ok(cookies) = parse(&host, &text) {
                let header = header_for(&cookies, &url("https://example.org/"), 0).unwrap_or_default();
                proptest::prop_assert!(!header.contains(['\r', '\n']));
            }
        }

        #[test]
        fn no_file_breaks_the_parser(lines in "([a-z.#]{0,8}\t[A-Z]{0,5}\t[/a-z]{0,5}\t[A-Z]{0,5}\t-?[0-9]{0,20}\t[a-z]{0,4}\t\\PC{0,8}\n){0,5}") {
            let _ = parse("h", &lines);
        }
    }
}
