//! The browser's only way out: a forward proxy that looks every host up itself, asks the guard, and connects to the very
//! address that was checked. What the guard refuses is answered with 403 and remembered.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

use crate::http::names::GuardedNames;

const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Connections at once; a page that wants more waits.
const CONNECTIONS_MAX: usize = 64;

/// Runs while [`Proxy::run`] is polled.
pub struct Proxy {
    listener: TcpListener,
    port: u16,
    names: GuardedNames,
    refused: Refused,
}

/// Hosts that the guard refused during this visit.
type Refused = Arc<Mutex<HashSet<String>>>;

impl Proxy {
    pub async fn start(names: GuardedNames) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port, names, refused: Arc::default() })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the guard refused this host.
    pub fn has_refused(&self, host: &str) -> bool {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).contains(host)
    }

    /// Serves until it is dropped; every connection ends with it.
    pub async fn run(&self) {
        let mut open = JoinSet::new();
        loop {
            if open.len() >= CONNECTIONS_MAX {
                open.join_next().await;
            }
            tokio::select! {
                accepted = self.listener.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    open.spawn(serve(stream, self.names.clone(), Arc::clone(&self.refused)));
                }
                Some(_) = open.join_next() => {}
            }
        }
    }
}

async fn serve(mut browser: TcpStream, names: GuardedNames, refused: Refused) {
    let Some((head, rest)) = read_head(&mut browser).await else { return };
    let Some(wanted) = Wanted::parse(&head) else {
        let _ = browser.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
        return;
    };
    let mut site = match connect(&wanted.url, &names).await {
        Ok(site) => site,
        Err(error) => {
            let is_refused = error.kind() == std::io::ErrorKind::PermissionDenied;
            if is_refused {
                let host = wanted.url.host_str().unwrap_or_default().to_owned();
                refused.lock().unwrap_or_else(PoisonError::into_inner).insert(host);
            }
            let status = if is_refused { "403 Forbidden" } else { "502 Bad Gateway" };
            let _ = browser
                .write_all(format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").as_bytes())
                .await;
            return;
        }
    };
    let greeted = match &wanted.forward {
        None => browser.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await,
        Some(head) => site.write_all(head.as_bytes()).await,
    };
    if greeted.is_ok() && site.write_all(&rest).await.is_ok() {
        let _ = copy_bidirectional(&mut browser, &mut site).await;
    }
}

async fn connect(url: &Url, names: &GuardedNames) -> std::io::Result<TcpStream> {
    let refused = |refusal| std::io::Error::new(std::io::ErrorKind::PermissionDenied, refusal);
    names.guard().check_url(url).map_err(refused)?;
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let found = names.addresses(host).await?;
    let addresses: Vec<SocketAddr> = found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
    TcpStream::connect(addresses.as_slice()).await
}

/// The head of a request, and what came behind it.
async fn read_head(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Some((String::from_utf8(bytes).ok()?, rest));
        }
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
        if bytes.len() > HEAD_BYTES_MAX {
            return None;
        }
    }
}

/// What a request to a proxy asks for.
#[derive(Debug, PartialEq)]
pub struct Wanted {
    pub url: Url,
    /// The head as the site shall see it; none for a tunnel.
    pub forward: Option<String>,
}

impl Wanted {
    /// `None`: it is no request to a proxy.
    #[must_use]
    pub fn parse(head: &str) -> Option<Self> {
        let (line, headers) = head.split_once("\r\n")?;
        let mut parts = line.split(' ');
        let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
        if method == "CONNECT" {
            let url = Url::parse(&format!("https://{target}/")).ok()?;
            return Some(Self { url, forward: None });
        }
        let url = Url::parse(target).ok().filter(|url| url.scheme() == "http")?;
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let kept = headers.split("\r\n").filter(|line| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            !line.is_empty() && !matches!(name.as_str(), "proxy-connection" | "connection" | "proxy-authorization")
        });
        let mut forward = format!("{method} {path} {version}\r\n");
        for line in kept {
            forward.push_str(line);
            forward.push_str("\r\n");
        }
        // One request a connection: the next one may be for another site.
        forward.push_str("connection: close\r\n\r\n");
        Some(Self { url, forward: Some(forward) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_forwarded_in_the_site_s_own_form() {
        let wanted = Wanted::parse("GET http://example.org:81/a?b=c HTTP/1.1\r\nHost: example.org:81\r\nProxy-Connection: keep-alive\r\nAccept: */*\r\n\r\n").expect("a request");
        assert_eq!(wanted.url.as_str(), "http://example.org:81/a?b=c");
        assert_eq!(
            wanted.forward.as_deref(),
            Some("GET /a?b=c HTTP/1.1\r\nHost: example.org:81\r\nAccept: */*\r\nconnection: close\r\n\r\n")
        );
        let bare = Wanted::parse("GET http://example.org/ HTTP/1.1\r\n\r\n").expect("a request");
        assert_eq!(bare.forward.as_deref(), Some("GET / HTTP/1.1\r\nconnection: close\r\n\r\n"));
        let tunnel =
            Wanted::parse("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n").expect("a request");
        assert_eq!((tunnel.url.as_str(), tunnel.forward), ("https://example.org/", None));
        for bad in ["GET / HTTP/1.1\r\n\r\n", "GET ftp://x/ HTTP/1.1\r\n\r\n", "CONNECT\r\n\r\n", "\r\n\r\n"] {
            assert_eq!(Wanted::parse(bad), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_head_breaks_it(head in "(GET|CONNECT|\\PC{0,6}) \\PC{0,30} HTTP/1.1\r\n(\\PC{0,20}\r\n){0,3}\r\n") {
            let _ = Wanted::parse(&head);
        }
    }
}
