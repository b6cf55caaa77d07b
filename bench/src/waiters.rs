//! A loopback HTTP/1.1 client that only waits: one connection per waiter, no library between socket and clock.
//!
//! It knows nothing of who it waits for: the request bytes come from the target, and a response is over when its
//! `Content-Length` or its last chunk has arrived. The arrival is stamped right after the read that completed it.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Waiter {
    stream: TcpStream,
    buffer: Vec<u8>,
}

pub struct Response {
    pub arrived_ns: u64,
    pub arrived_wall_ns: u64,
    /// The `next.since` field of the JSON body, if there is one: what the next request waits beyond.
    pub since: Option<u64>,
    pub body: Vec<u8>,
}

impl Waiter {
    pub async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("cannot connect")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    pub async fn send(&mut self, request: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(request).await?)
    }

    pub async fn response(&mut self) -> Result<Response> {
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer).await?;
            let (arrived_ns, arrived_wall_ns) = (monotonic_ns(), wall_ns());
            ensure!(read > 0, "the server closed the connection");
            if let Some(body) = complete_body(&self.buffer)? {
                return Ok(Response { arrived_ns, arrived_wall_ns, since: since_of(&body), body });
            }
        }
    }
}

/// Comparable between processes of one machine, unlike `Instant`, which hides its value.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Comparable with a server's own wall time on the same machine.
pub fn wall_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// `None` while bytes are missing; an error for any status but 200.
fn complete_body(bytes: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(head_end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..head_end])?;
    let body = &bytes[head_end + 4..];
    ensure!(head.starts_with("HTTP/1.1 200"), "the server answered {}", head.lines().next().unwrap_or_default());
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find_map(|(key, value)| key.eq_ignore_ascii_case(name).then(|| value.trim()))
    };
    if let Some(length) = header("content-length") {
        let length: usize = length.parse()?;
        return Ok((body.len() >= length).then(|| body[..length].to_vec()));
    }
    if header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return Ok(body.ends_with(b"0\r\n\r\n").then(|| unchunk(body)));
    }
    bail!("the response has neither a length nor chunks")
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line_end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line_end]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let Some(size) = size.filter(|size| *size > 0 && line_end + 4 + size <= rest.len()) else { break };
        body.extend_from_slice(&rest[line_end + 2..line_end + 2 + size]);
        rest = &rest[line_end + 4 + size..];
    }
    body
}

fn since_of(body: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Body {
        next: Next,
    }
    #[derive(serde::Deserialize)]
    struct Next {
        since: u64,
    }
    serde_json::from_slice::<Body>(body).ok().map(|body| body.next.since)
}
