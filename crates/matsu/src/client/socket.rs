//! Requests over the daemon's socket.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use matsu_core::clock::Clock;
use serde_json::Value;
use tokio::net::UnixStream;

use super::Daemon;
use crate::config::Config;

/// There is no daemon any more, or not yet the next one.
#[derive(Debug, thiserror::Error)]
#[error("{0}; check whether it runs: matsu doctor")]
pub struct DaemonUnreachable(pub(super) String);

/// One request on one connection: commands are short.
pub async fn over_socket(socket: &Path, request: Request<Body>) -> Result<(StatusCode, hyper::body::Bytes)> {
    let gone = |what: &str| DaemonUnreachable(format!("the daemon at {} {what}", socket.display()));
    let stream = UnixStream::connect(socket).await.map_err(|error| gone(&format!("does not answer: {error}")))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        anyhow::Ok((status, response.into_body().collect().await?.to_bytes()))
    };
    tokio::select! {
        answer = exchange => answer,
        ended = connection => {
            let why = ended.err().map_or_else(String::new, |error| format!(": {error}"));
            bail!(gone(&format!("closed the connection without a reply{why}")))
        }
    }
}

/// The process that serves a store answers about itself within this time.
pub const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A request to the daemon about itself.
pub async fn control(config: &Config, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
    let daemon = Daemon::of(config);
    let request = daemon
        .request(method, path)
        .header("content-type", "application/json")
        .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))?;
    let answer = Clock::system().within(ANSWER_MAX, over_socket(&daemon.socket, request)).await;
    let (status, bytes) = answer.context("the daemon does not answer")??;
    let answer: Value = serde_json::from_slice(&bytes)?;
    if !status.is_success() {
        bail!("{}", answer["detail"].as_str().unwrap_or(status.as_str()));
    }
    Ok(answer)
}
