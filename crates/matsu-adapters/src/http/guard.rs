//! The address guard: what may be connected to. Everything that opens a socket for a page asks here, with the address
//! it is about to use, never with a name alone.
//!
//! Whatever is not plainly a public unicast address is refused, so a range that is missing here is refused too. The
//! exceptions are those the operator wrote down, and they hold for the host *as it is written in the address*: a name
//! under foreign control cannot borrow the exception of `127.0.0.1` by resolving to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Why an address is not fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("only http and https addresses are fetched")]
    Scheme,
    #[error("the address names no host")]
    NoHost,
    #[error("an address that carries a user name or password is not fetched")]
    Credentials,
    #[error("{host} is not a public address")]
    NotPublic { host: String },
    #[error("{host} is allowed at port {port} only")]
    Port { host: String, port: u16 },
}

/// A host that may be fetched although it is not public, as the operator wrote it: `host` or `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    host: String,
    port: Option<u16>,
}

impl Exception {
    /// `127.0.0.1:8080`, `[::1]:8080`, `intranet`, `wiki.corp:443`; `None` if it is none of these.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(&format!("http://{}/", text.trim())).ok()?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
        // Port 80 is the default of the scheme put in front here, and is dropped by the parser.
        let port = url.port().or_else(|| text.trim().ends_with(":80").then_some(80));
        is_bare.then(|| Some(Self { host: url.host_str()?.to_owned(), port }))?
    }
}

/// Knows which addresses may be connected to.
#[derive(Clone, Debug, Default)]
pub struct AddressGuard {
    exceptions: Vec<Exception>,
}

impl AddressGuard {
    #[must_use]
    pub fn new(exceptions: Vec<Exception>) -> Self {
        Self { exceptions }
    }

    /// What can be said about an address before its name is resolved.
    ///
    /// # Errors
    /// [`Refusal`], by the first rule that it breaks.
    pub fn check_url(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::Credentials);
        }
        let host = url.host().ok_or(Refusal::NoHost)?;
        let written = host.to_string();
        let mut ports = self.exceptions.iter().filter(|known| known.host == written).map(|known| known.port).peekable();
        if ports.peek().is_some() {
            let asked = url.port_or_known_default();
            let mut only = 0;
            let is_allowed = ports.any(|port| {
                only = port.unwrap_or(only);
                port.is_none() || port == asked
            });
            return if is_allowed { Ok(()) } else { Err(Refusal::Port { host: written, port: only }) };
        }
        let ip = match host {
            Host::Ipv4(ip) => IpAddr::V4(ip),
            Host::Ipv6(ip) => IpAddr::V6(ip),
            Host::Domain(_) => return Ok(()),
        };
        if is_public(ip) { Ok(()) } else { Err(Refusal::NotPublic { host: written }) }
    }

    /// Of the addresses a name resolved to, those that may be connected to. If one of them is not public, none is
    /// used: a name that mixes the two is trying something.
    ///
    /// # Errors
    /// [`Refusal::NotPublic`].
    pub fn check_resolved(&self, name: &str, addresses: &[IpAddr]) -> Result<(), Refusal> {
        let is_excepted = self.exceptions.iter().any(|known| known.host.eq_ignore_ascii_case(name));
        if is_excepted || addresses.iter().all(|ip| is_public(*ip)) {
            return Ok(());
        }
        Err(Refusal::NotPublic { host: name.to_owned() })
    }
}

/// Whether this is a unicast address of the public internet.
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18..=19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    // An IPv4 address in disguise is judged by the address it leads to.
    let inner = match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some((segments[6], segments[7])),
        [0x2002, high, low, ..] => Some((high, low)),
        _ => None,
    };
    if let Some((high, low)) = inner {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let is_global_unicast = segments[0] & 0xe000 == 0x2000;
    let is_special = matches!(
        segments,
        // Protocol assignments with Teredo among them, documentation twice.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..]
    );
    is_global_unicast && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(url: &str) -> Result<(), Refusal> {
        AddressGuard::default().check_url(&Url::parse(url).expect("a URL"))
    }

    #[test]
    fn every_spelling_of_a_private_address_is_refused() {
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://0x7f.1/",
            "http://0x7f000001/",
            "http://2130706433/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://0/",
            "http://0.0.0.0:22/",
            "http://１２７.０.０.１/",
            "http://10.1.2.3/",
            "http://172.31.255.255/",
            "http://192.168.0.1/",
            "http://169.254.169.254/latest/meta-data/",
            "http://100.100.100.200/",
            "http://192.0.0.192/",
            "http://198.18.0.1/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://[::]/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::10.0.0.1]/",
            "http://[64:ff9b:1::1]/",
            "http://[2002:7f00:1::]/",
            "http://[2002:c0a8:1::1]/",
            "http://[2001::1]/",
            "http://[2001:db8::1]/",
            "http://[fe80::1]/",
            "http://[fec0::1]/",
            "http://[fd00:ec2::254]/",
            "http://[ff02::1]/",
            "http://[100::1]/",
            "http://[5f00::1]/",
        ] {
            assert!(matches!(verdict(url), Err(Refusal::NotPublic { .. })), "{url}: {:?}", verdict(url));
        }
    }

    #[test]
    fn public_addresses_pass_and_other_schemes_do_not() {
        for url in [
            "http://93.184.216.34/",
            "https://[2606:2800:220:1::1]/",
            "https://example.org:8443/x",
            "http://[64:ff9b::8.8.8.8]/",
        ] {
            assert_eq!(verdict(url), Ok(()), "{url}");
        }
        for url in
            ["file:///etc/passwd", "ftp://example.org/", "gopher://example.org/", "data:text/html,x", "javascript:1"]
        {
            assert_eq!(verdict(url), Err(Refusal::Scheme), "{url}");
        }
        assert_eq!(verdict("http://user:secret@example.org/"), Err(Refusal::Credentials));
    }

    #[test]
    fn an_exception_holds_for_the_host_as_written_and_its_port() {
        let guard =
            AddressGuard::new(["127.0.0.1:8080", "wiki.corp"].iter().filter_map(|e| Exception::parse(e)).collect());
        let check = |url: &str| guard.check_url(&Url::parse(url).expect("a URL"));
        assert_eq!(check("http://127.0.0.1:8080/x"), Ok(()));
        assert_eq!(check("http://127.0.0.1:22/"), Err(Refusal::Port { host: "127.0.0.1".into(), port: 8080 }));
        assert!(matches!(check("http://127.0.0.2:8080/"), Err(Refusal::NotPublic { .. })));
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
        assert_eq!(guard.check_resolved("wiki.corp", &loopback), Ok(()));
        assert!(guard.check_resolved("evil.example", &loopback).is_err());
        assert!(guard.check_resolved("localhost", &loopback).is_err());
    }

    #[test]
    fn a_name_with_one_private_address_is_refused_whole() {
        let mixed = [IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))];
        assert!(AddressGuard::default().check_resolved("evil.example", &mixed).is_err());
    }

    #[test]
    fn exceptions_are_hosts_and_nothing_else() {
        for text in ["http://x/", "a/b", "a?b", "", "user@host"] {
            assert_eq!(Exception::parse(text), None, "{text}");
        }
        assert_eq!(Exception::parse("x:80"), Some(Exception { host: "x".into(), port: Some(80) }));
        assert_eq!(Exception::parse("[::1]:9"), Some(Exception { host: "[::1]".into(), port: Some(9) }));
    }
}
