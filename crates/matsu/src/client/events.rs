//! A stream of events over the daemon's socket, read one event at a time.

use anyhow::{Context, Result, bail};
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::Daemon;

pub struct Events {
    body: Incoming,
    /// What has come and is not yet a whole event.
    read: Vec<u8>,
    /// The id of the last event that had one: where another stream goes on.
    pub last_id: Option<String>,
    /// Ends with the stream.
    _connection: JoinSet<()>,
}

impl Events {
    pub async fn open(daemon: &Daemon, path: &str) -> Result<Self> {
        let stream = UnixStream::connect(&daemon.socket).await.context("the daemon does not answer")?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let mut carried = JoinSet::new();
        carried.spawn(async move {
            // The reader of the body learns of its end.
            let _ = connection.await;
        });
        let request = daemon.request(Method::GET, path).body(Body::empty())?;
        let response = sender.send_request(request).await?;
        if !response.status().is_success() {
            let status = response.status();
            let words = response.into_body().collect().await?.to_bytes();
            bail!("{status}: {}", String::from_utf8_lossy(&words));
        }
        Ok(Self { body: response.into_body(), read: Vec::new(), last_id: None, _connection: carried })
    }

    /// The name and the data of the next event; `None` at the end. May be dropped while it waits.
    pub async fn next(&mut self) -> Result<Option<(String, Value)>> {
        loop {
            if let Some(end) = self.read.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = self.read.drain(..end + 2).collect();
                if let Some((id, event)) = parse(&event) {
                    self.last_id = id.or(self.last_id.take());
                    return Ok(Some(event));
                }
                continue;
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Some(bytes) = frame.context("the daemon closed the connection")?.data_ref() {
                        self.read.extend_from_slice(bytes);
                    }
                }
            }
        }
    }
}

/// The id of an event, if it has one, its name and its data. `None` for what is no event: a comment.
fn parse(event: &[u8]) -> Option<(Option<String>, (String, Value))> {
    let text = String::from_utf8_lossy(event);
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
    let data = serde_json::from_str(field("data:")?).ok()?;
    let id = field("id:").map(str::to_owned);
    Some((id, (field("event:").unwrap_or("message").to_owned(), data)))
}
