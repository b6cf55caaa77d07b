//! Under which addresses this server may be asked for. `Host` and `Origin` are compared whole: a name that only begins
//! like ours is another's.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::{HeaderMap, Uri, header};
use matsu_core::error_code::ErrorCode;

use crate::problem::Problem;

/// Every address that is this server's.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// Names besides those of loopback.
    pub names: Vec<String>,
    /// Where a proxy offers it to others.
    pub public: Option<PublicUrl>,
}

impl Addresses {
    /// Refuses a request that was meant for another server, or that another server's page sent.
    ///
    /// # Errors
    /// A `Host` or `Origin` that is not ours.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let host = self.host(headers)?;
        // A request line may name a server too; then both must be ours.
        if let Some(named) = uri.authority()
            && !Authority::parse(named.as_str()).is_some_and(|named| self.is_ours(named))
        {
            let message =
                format!("request for {named} refused; add its name to server.names, or set server.public_url to it");
            return Err(foreign(&message));
        }
        self.check_origin(host, headers)
    }

    /// Whether a request came by way of the public address, encrypted.
    #[must_use]
    pub fn is_secure(&self, headers: &HeaderMap) -> bool {
        let public = self.public.as_ref().filter(|public| public.is_https);
        public.is_some_and(|public| host_of(headers).is_some_and(|host| public.is_asked(host)))
    }

    /// The port that the browser sees.
    #[must_use]
    pub fn port(&self, headers: &HeaderMap) -> u16 {
        let Some(host) = host_of(headers) else { return HTTP_PORT };
        let unsaid =
            self.public.as_ref().filter(|public| public.is_asked(host)).map_or(HTTP_PORT, |public| public.port);
        host.port.unwrap_or(unsaid)
    }

    /// A browser that was led here under another name sends that name; a page of ours never does.
    fn host<'h>(&self, headers: &'h HeaderMap) -> Result<Authority<'h>, Problem> {
        let host = host_of(headers).filter(|host| self.is_ours(*host));
        host.ok_or_else(|| foreign("the Host header does not name this server; see server.public_url and server.names"))
    }

    fn is_ours(&self, host: Authority<'_>) -> bool {
        host.is_loopback()
            || self.public.as_ref().is_some_and(|public| public.is_asked(host))
            || self.names.iter().any(|name| name.eq_ignore_ascii_case(host.name))
    }

    /// A page of ours comes from where it asks: the same name, the same port and, where that is known, the same scheme.
    fn check_origin(&self, host: Authority<'_>, headers: &HeaderMap) -> Result<(), Problem> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let origin = origin.to_str().ok().filter(|_| origins.next().is_none()).and_then(PublicUrl::parse);
        let public = self.public.as_ref();
        let is_ours = match (&origin, public.filter(|public| public.is_asked(host))) {
            (Some(origin), Some(public)) => origin == public,
            (Some(origin), None) => !origin.is_https && origin.is_asked(host),
            (None, _) => false,
        };
        if is_ours {
            return Ok(());
        }
        if origin.is_some() && origin.as_ref() == public {
            return Err(foreign(
                "the Origin header matches server.public_url, but the Host header does not; let the proxy pass the \
                 Host header on unchanged",
            ));
        }
        Err(foreign(
            "the Origin header does not name this server; behind a proxy, set server.public_url to its address",
        ))
    }
}

fn foreign(message: &str) -> Problem {
    Problem::new(ErrorCode::Forbidden, message)
}

const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// An origin that browsers know: `https://matsu.example.org`, `http://build:7878`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    is_https: bool,
    /// In lower case; an IPv6 address without its brackets.
    name: String,
    port: u16,
}

impl PublicUrl {
    /// `None` for anything but scheme, name and port.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_https = match scheme {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let authority = Authority::parse(rest)?;
        let port = authority.port.unwrap_or(if is_https { HTTPS_PORT } else { HTTP_PORT });
        Some(Self { is_https, name: authority.name.to_ascii_lowercase(), port })
    }

    /// Whether this `Host` means it.
    fn is_asked(&self, host: Authority<'_>) -> bool {
        let unsaid = if self.is_https { HTTPS_PORT } else { HTTP_PORT };
        host.name.eq_ignore_ascii_case(&self.name) && host.port.unwrap_or(unsaid) == self.port
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, unsaid) = if self.is_https { ("https", HTTPS_PORT) } else { ("http", HTTP_PORT) };
        let name = if self.name.contains(':') { format!("[{}]", self.name) } else { self.name.clone() };
        match self.port {
            port if port == unsaid => write!(f, "{scheme}://{name}"),
            port => write!(f, "{scheme}://{name}:{port}"),
        }
    }
}

/// A `Host` header, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Authority<'a> {
    name: &'a str,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// `None` unless every character of it belongs to a name, or to an address, and a port.
    fn parse(text: &'a str) -> Option<Self> {
        let (name, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (name, rest) = rest.split_once(']')?;
                name.parse::<Ipv6Addr>().ok()?;
                (name, rest)
            }
            None => {
                let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
                if name.is_empty() || name.ends_with('.') || !name.bytes().all(is_name) {
                    return None;
                }
                (name, rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            None => return None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            Some(_) => return None,
        };
        Some(Self { name, port })
    }

    fn is_loopback(self) -> bool {
        self.name.eq_ignore_ascii_case("localhost")
            || self.name.parse() == Ok(Ipv4Addr::LOCALHOST)
            || self.name.parse() == Ok(Ipv6Addr::LOCALHOST)
    }
}

/// The one `Host` of a request.
fn host_of(headers: &HeaderMap) -> Option<Authority<'_>> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next()?.to_str().ok()?;
    if hosts.next().is_some() { None } else { Authority::parse(host) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn behind_a_proxy() -> Addresses {
        let public = PublicUrl::parse("https://matsu.example.org");
        Addresses { names: vec!["build.example.org".to_owned()], public }
    }

    fn passes(addresses: &Addresses, pairs: &[(&'static str, &'static str)]) -> bool {
        addresses.check(&Uri::from_static("/"), &headers(pairs)).is_ok()
    }

    #[test]
    fn a_host_is_compared_whole() {
        let ours = behind_a_proxy();
        for good in [
            "127.0.0.1",
            "127.0.0.1:7878",
            "localhost:1",
            "LOCALHOST",
            "[::1]:7878",
            "[::1]",
            "build.example.org:7878",
            "matsu.example.org",
            "Matsu.Example.ORG:443",
        ] {
            assert!(passes(&ours, &[("host", good)]), "{good}");
        }
        for bad in [
            "",
            "example.org",
            "127.0.0.1.example.org",
            "localhost.example.org",
            "127.0.0.1:7878.evil.com",
            "127.0.0.1:",
            "127.0.0.1:99999",
            "127.0.0.1:+80",
            "[::1]evil",
            "[::1].evil.com",
            "[::1",
            "[::2]",
            "::1",
            "0.0.0.0",
            "localhost.",
            "user@localhost",
            "localhost@evil.com",
            "localhost/evil.com",
            "localhost,evil.com",
            "matsu.example.org:8443",
            "matsu.example.org.",
        ] {
            assert!(!passes(&ours, &[("host", bad)]), "{bad}");
        }
        assert!(!passes(&ours, &[]), "no Host");
        assert!(!passes(&ours, &[("host", "localhost"), ("host", "localhost")]), "two");
        let elsewhere = Uri::from_static("http://evil.com/api/v1/tasks");
        assert!(ours.check(&elsewhere, &headers(&[("host", "localhost")])).is_err(), "in the request line");
    }

    #[test]
    fn an_origin_is_the_one_that_is_asked() {
        let ours = behind_a_proxy();
        for (host, origin) in [
            ("127.0.0.1:7878", "http://127.0.0.1:7878"),
            ("[::1]:7878", "http://[::1]:7878"),
            ("localhost", "http://localhost"),
            ("localhost:80", "http://localhost"),
            ("build.example.org:7878", "http://build.example.org:7878"),
            ("matsu.example.org", "https://matsu.example.org"),
            ("matsu.example.org:443", "https://matsu.example.org"),
        ] {
            assert!(passes(&ours, &[("host", host), ("origin", origin)]), "{host} {origin}");
        }
        for (host, origin) in [
            ("127.0.0.1:7878", "http://127.0.0.1:1"),
            ("127.0.0.1:7878", "http://localhost:7878"),
            ("127.0.0.1:7878", "https://127.0.0.1:7878"),
            ("127.0.0.1:7878", "https://matsu.example.org"),
            ("matsu.example.org", "http://matsu.example.org"),
            ("matsu.example.org", "https://matsu.example.org:8443"),
            ("matsu.example.org", "https://matsu.example.org.evil.com"),
            ("matsu.example.org", "https://evil.com"),
            ("localhost", "null"),
            ("localhost", "http://localhost/"),
        ] {
            assert!(!passes(&ours, &[("host", host), ("origin", origin)]), "{host} {origin}");
        }
    }

    #[test]
    fn only_what_comes_through_the_public_address_is_secure() {
        let ours = behind_a_proxy();
        assert!(ours.is_secure(&headers(&[("host", "matsu.example.org")])));
        assert_eq!(ours.port(&headers(&[("host", "matsu.example.org")])), 443);
        assert!(!ours.is_secure(&headers(&[("host", "127.0.0.1:7878")])));
        assert_eq!(ours.port(&headers(&[("host", "[::1]:7878")])), 7878);
        let plain = Addresses { public: PublicUrl::parse("http://build:7878"), ..Addresses::default() };
        assert!(!plain.is_secure(&headers(&[("host", "build:7878")])));
    }

    #[test]
    fn a_public_address_is_an_origin_and_nothing_more() {
        for good in ["https://matsu.example.org", "https://matsu.example.org:8443", "http://build:7878"] {
            assert_eq!(PublicUrl::parse(good).map(|url| url.to_string()).as_deref(), Some(good));
        }
        assert_eq!(PublicUrl::parse("https://[::1]:443").unwrap().to_string(), "https://[::1]");
        for bad in ["", "matsu.example.org", "ftp://a", "https://a/", "https://a/matsu", "https://u@a", "https://a:b"] {
            assert_eq!(PublicUrl::parse(bad), None, "{bad}");
        }
    }
}
