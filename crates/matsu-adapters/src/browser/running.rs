//! The person's own browser, asked for the cookies of one site over its debugging port, which it opens only if it was
//! started so. One question, one answer; the cookies of other sites are dropped as they come.

use std::time::Duration;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::ports::cookie_vault::VaultError;
use matsu_core::research::address::registrable;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use super::frames;
use crate::fetch::cookies::Cookie;
use crate::fetch::vault::CookieSource;
use crate::http::guard::is_public;

const TIME_MAX: Duration = Duration::from_secs(10);
const HEAD_BYTES_MAX: usize = 16 * 1024;
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A browser at `host:port` of its debugging port.
#[derive(Clone, Debug)]
pub struct RunningBrowser {
    authority: String,
    clock: Clock,
}

impl RunningBrowser {
    /// `None` unless the address is `http://` on this machine: cookies do not cross a network in the clear.
    #[must_use]
    pub fn at(address: &str, clock: Clock) -> Option<Self> {
        let url = Url::parse(address).ok().filter(|url| url.scheme() == "http")?;
        let is_here = match url.host()? {
            url::Host::Domain(name) => name == "localhost",
            url::Host::Ipv4(ip) => ip.is_loopback() && !is_public(ip.into()),
            url::Host::Ipv6(ip) => ip.is_loopback(),
        };
        let authority = format!("{}:{}", url.host_str().unwrap_or_default(), url.port().unwrap_or(9222));
        is_here.then_some(Self { authority, clock })
    }

    async fn ask(&self) -> std::io::Result<Value> {
        let about = self.get("/json/version", "").await?.1;
        let about: Value = serde_json::from_slice(&about)?;
        let socket = about["webSocketDebuggerUrl"].as_str().and_then(|url| Url::parse(url).ok());
        let path = socket.map(|url| url.path().to_owned()).ok_or(std::io::ErrorKind::InvalidData)?;
        let mut stream = TcpStream::connect(&self.authority).await?;
        let upgrade = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: bWF0c3Ugd2FpdHMgZm9yIQ==\r\n";
        self.send(&mut stream, &path, upgrade).await?;
        if read_head(&mut stream).await?.0 != 101 {
            return Err(std::io::ErrorKind::ConnectionRefused.into());
        }
        let question = json!({"id": 1, "method": "Storage.getCookies"}).to_string();
        stream.write_all(&frames::text(question.as_bytes())).await?;
        loop {
            let message = frames::read(&mut stream, ANSWER_BYTES_MAX).await?;
            let message: Value = serde_json::from_slice(&message)?;
            if message["id"] == json!(1) {
                return Ok(message);
            }
        }
    }

    async fn send(&self, stream: &mut TcpStream, path: &str, headers: &str) -> std::io::Result<()> {
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{headers}\r\n", self.authority);
        stream.write_all(head.as_bytes()).await
    }

    async fn get(&self, path: &str, headers: &str) -> std::io::Result<(u16, Vec<u8>)> {
        let mut stream = TcpStream::connect(&self.authority).await?;
        self.send(&mut stream, path, &format!("{headers}connection: close\r\n")).await?;
        let (status, length) = read_head(&mut stream).await?;
        let mut body =
            vec![0; length.filter(|length| *length <= ANSWER_BYTES_MAX).ok_or(std::io::ErrorKind::InvalidData)?];
        stream.read_exact(&mut body).await?;
        Ok((status, body))
    }
}

/// Status and length of an answer; read byte by byte, because the caller reads what follows.
async fn read_head(stream: &mut TcpStream) -> std::io::Result<(u16, Option<usize>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(std::io::ErrorKind::InvalidData)?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    Ok((status, length))
}

#[async_trait]
impl CookieSource for RunningBrowser {
    async fn cookies_of(&self, domain: &str) -> Result<Vec<Cookie>, VaultError> {
        let asked = self.clock.within(TIME_MAX, self.ask()).await;
        let answer = asked.unwrap_or_else(|| Err(std::io::ErrorKind::TimedOut.into())).map_err(|error| {
            VaultError::Unavailable(format!("the browser at {} does not answer: {}", self.authority, error.kind()))
        })?;
        let wanted = registrable(domain);
        let all = answer["result"]["cookies"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(all.iter().filter_map(cookie).filter(|cookie| registrable(&cookie.domain) == wanted).collect())
    }
}

fn cookie(value: &Value) -> Option<Cookie> {
    let domain = value["domain"].as_str()?;
    Some(Cookie {
        name: value["name"].as_str()?.to_owned(),
        value: value["value"].as_str()?.to_owned(),
        domain: domain.trim_start_matches('.').to_ascii_lowercase(),
        with_subdomains: domain.starts_with('.'),
        path: value["path"].as_str().unwrap_or("/").to_owned(),
        is_secure: value["secure"].as_bool().unwrap_or(false),
        // Negative: for as long as the browser runs.
        expires_at_s: value["expires"].as_f64().filter(|at| *at > 0.0).map(|at| at as i64),
    })
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn serve_once(listener: &TcpListener, answer: impl FnOnce(u16) -> Vec<u8>) -> TcpStream {
        let (mut stream, _) = listener.accept().await.expect("a visitor");
        let _ = read_request(&mut stream).await;
        let port = listener.local_addr().expect("an address").port();
        stream.write_all(&answer(port)).await.expect("sent");
        stream
    }

    async fn read_request(stream: &mut TcpStream) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a head"));
        }
        String::from_utf8_lossy(&head).into_owned()
    }

    #[tokio::test]
    async fn cookies_of_one_site_come_from_a_running_browser() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let browser = RunningBrowser::at(&address, Clock::system()).expect("a browser");
        let serve = async {
            serve_once(&listener, |port| {
                let body =
                    json!({"webSocketDebuggerUrl": format!("ws://127.0.0.1:{port}/devtools/browser/x")}).to_string();
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
            })
            .await;
            let mut stream = serve_once(&listener, |_| b"HTTP/1.1 101 Switching Protocols\r\n\r\n".to_vec()).await;
            let asked = frames::read(&mut stream, 1024).await.expect("a question");
            assert!(String::from_utf8_lossy(&asked).contains("Storage.getCookies"));
            let event = json!({"method": "Target.created"}).to_string();
            stream.write_all(&frames::unmasked(event.as_bytes())).await.expect("sent");
            let answer = json!({"id": 1, "result": {"cookies": [
                {"name": "sid", "value": "s", "domain": ".example.org", "path": "/", "secure": true, "expires": 2e9},
                {"name": "other", "value": "o", "domain": "example.net", "path": "/", "expires": -1},
            ]}});
            stream.write_all(&frames::unmasked(answer.to_string().as_bytes())).await.expect("sent");
        };
        let (found, ()) = tokio::join!(browser.cookies_of("www.example.org"), serve);
        let found = found.expect("cookies");
        assert_eq!(found.len(), 1);
        assert!(found[0].with_subdomains && found[0].is_secure && found[0].expires_at_s == Some(2_000_000_000));
    }

    #[test]
    fn only_a_browser_on_this_machine_is_asked() {
        let at = |address| RunningBrowser::at(address, Clock::system());
        assert!(at("http://127.0.0.1:9222").is_some() && at("http://localhost").is_some());
        for address in ["http://10.0.0.1:9222", "https://127.0.0.1:9222", "http://example.org", "127.0.0.1:9222"] {
            assert!(at(address).is_none(), "{address}");
        }
    }
}
