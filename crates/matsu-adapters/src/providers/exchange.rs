//! One request and the stream that answers it: bounded in time and size, cancelled by being dropped.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt, unfold};
use matsu_core::clock::Clock;
use matsu_core::limits::{MODEL_ERROR_BYTES_MAX, MODEL_STREAM_BYTES_MAX};
use matsu_core::ports::provider::{ModelEvent, ModelStream, ProviderError, ProviderFault, WaitedFor};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::config::ProviderConfig;
use super::refusal::{Fault, of_status};
use super::secret::Secret;
use super::sse::Events;
use super::wire::{Decoder, Framing, Progress, Wire};

pub struct Exchange {
    pub client: reqwest::Client,
    pub url: reqwest::Url,
    pub clock: Clock,
}

pub type Bytes = Pin<Box<dyn Stream<Item = Result<Vec<u8>, Fault>> + Send>>;
pub type Pieces = Pin<Box<dyn Stream<Item = Result<String, Fault>> + Send>>;

impl Exchange {
    pub async fn begin(
        &self,
        config: &ProviderConfig,
        wire: &dyn Wire,
        body: &Value,
    ) -> Result<ModelStream, ProviderError> {
        let error_source = ErrorSource { provider: config.name.clone(), key: config.key.clone() };
        let response = self.send(config, wire, body).await.map_err(|fault| error_source.error(fault))?;
        let bytes = bounded(response);
        let pieces = pieces(wire.framing(), bytes);
        Ok(decode(Reading {
            pieces,
            decoder: Some(wire.decoder()),
            ready: VecDeque::new(),
            clock: self.clock,
            idle_max: config.idle_max,
            error_source,
        }))
    }

    async fn send(&self, config: &ProviderConfig, wire: &dyn Wire, body: &Value) -> Result<reqwest::Response, Fault> {
        let request = self
            .client
            .post(self.url.clone())
            .headers(headers(config, wire)?)
            .body(serde_json::to_vec(body).map_err(|error| Fault::protocol(error.to_string()))?);
        let sent = self.clock.within(config.headers_max, request.send()).await;
        let late = || {
            let seconds = config.headers_max.as_secs();
            Fault::new(ProviderFault::Timeout(WaitedFor::Headers), format!("no answer within {seconds} s"))
        };
        let response = sent.ok_or_else(late)?.map_err(|error| lost(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let after = response.headers().get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = self.clock.within(config.headers_max, head_of(response)).await.unwrap_or_default();
        Err(of_status(status.as_u16(), after.as_deref(), &String::from_utf8_lossy(&body), self.clock.now()))
    }
}

fn headers(config: &ProviderConfig, wire: &dyn Wire) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in wire.headers() {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = &config.key {
        let (name, before) = wire.key_header();
        let value = HeaderValue::from_str(&format!("{before}{}", key.reveal()));
        // The error would not name the key, but neither must we.
        let mut value = value
            .map_err(|_| Fault::new(ProviderFault::Auth, "the key has a character that an HTTP header cannot carry"))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

/// The address is left out: a query of a gateway may hold more than it should.
fn lost(error: &reqwest::Error) -> Fault {
    let words = if error.is_connect() { "cannot be reached" } else { "the connection was lost" };
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    let mut last = None;
    while let Some(error) = cause {
        last = Some(error.to_string());
        cause = error.source();
    }
    let message = last.map_or_else(|| words.to_owned(), |last| format!("{words}: {last}"));
    Fault::new(ProviderFault::Transport, message)
}

async fn head_of(mut response: reqwest::Response) -> Vec<u8> {
    let mut head = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        head.extend_from_slice(&chunk);
        if head.len() >= MODEL_ERROR_BYTES_MAX {
            head.truncate(MODEL_ERROR_BYTES_MAX);
            break;
        }
    }
    head
}

fn bounded(response: reqwest::Response) -> Bytes {
    let mut read = 0_usize;
    Box::pin(response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| lost(&error))?;
        read = read.saturating_add(chunk.len());
        if read > MODEL_STREAM_BYTES_MAX {
            return Err(Fault::protocol(format!("the answer is longer than {MODEL_STREAM_BYTES_MAX} bytes")));
        }
        Ok(chunk.to_vec())
    }))
}

/// Bytes of an answer, however they were cut on the way, as the pieces that a decoder takes.
#[must_use]
pub fn pieces(framing: Framing, bytes: Bytes) -> Pieces {
    match framing {
        Framing::ServerSentEvents => events(bytes),
        Framing::Lines => lines(bytes),
    }
}

pub(super) fn events(bytes: Bytes) -> Pieces {
    let state = (bytes, Events::default(), VecDeque::new());
    Box::pin(unfold(Some(state), |state| async move {
        let (mut bytes, mut events, mut ready) = state?;
        loop {
            match ready.pop_front() {
                Some(Ok(data)) => return Some((Ok(data), Some((bytes, events, ready)))),
                Some(Err(fault)) => return Some((Err(fault), None)),
                None => {}
            }
            match bytes.next().await? {
                Ok(chunk) => events.push(&chunk, &mut ready),
                Err(fault) => return Some((Err(fault), None)),
            }
        }
    }))
}

pub(super) fn lines(bytes: Bytes) -> Pieces {
    let state = (bytes, Vec::<u8>::new());
    Box::pin(unfold(Some(state), |state| async move {
        let (mut bytes, mut kept) = state?;
        loop {
            if let Some(end) = kept.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = kept.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if line.is_empty() {
                    continue;
                }
                return Some((Ok(line), Some((bytes, kept))));
            }
            match bytes.next().await {
                Some(Ok(chunk)) => kept.extend_from_slice(&chunk),
                Some(Err(fault)) => return Some((Err(fault), None)),
                None => {
                    let rest = String::from_utf8_lossy(&kept).trim().to_owned();
                    return (!rest.is_empty()).then_some((Ok(rest), None));
                }
            }
        }
    }))
}

/// Whose words an error has, and what they must not hold.
struct ErrorSource {
    provider: String,
    key: Option<Secret>,
}

impl ErrorSource {
    fn error(&self, fault: Fault) -> ProviderError {
        let message = match &self.key {
            Some(key) => key.hide_in(&fault.message),
            None => fault.message,
        };
        ProviderError { provider: self.provider.clone(), fault: fault.kind, message }
    }
}

struct Reading {
    pieces: Pieces,
    /// Gone once the stream is over.
    decoder: Option<Box<dyn Decoder>>,
    ready: VecDeque<ModelEvent>,
    clock: Clock,
    idle_max: Duration,
    error_source: ErrorSource,
}

fn decode(reading: Reading) -> ModelStream {
    Box::pin(unfold(reading, |mut reading| async move {
        let next = reading.next().await?;
        Some((next.map_err(|fault| reading.error_source.error(fault)), reading))
    }))
}

impl Reading {
    async fn next(&mut self) -> Option<Result<ModelEvent, Fault>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            let mut decoder = self.decoder.take()?;
            let Some(piece) = self.clock.within(self.idle_max, self.pieces.next()).await else {
                let message = format!("it sent nothing for {} s in the middle of its answer", self.idle_max.as_secs());
                return Some(Err(Fault::new(ProviderFault::Timeout(WaitedFor::Stream), message)));
            };
            let progress = match piece {
                None => Progress::Complete,
                Some(Err(fault)) => return Some(Err(fault)),
                Some(Ok(piece)) => {
                    let mut out = Vec::new();
                    match decoder.feed(&piece, &mut out) {
                        Ok(progress) => {
                            self.ready.extend(out);
                            progress
                        }
                        Err(fault) => return Some(Err(fault)),
                    }
                }
            };
            match progress {
                Progress::More => self.decoder = Some(decoder),
                Progress::Complete => match decoder.finish() {
                    Ok(turn) => self.ready.push_back(ModelEvent::End(turn)),
                    Err(fault) => return Some(Err(fault)),
                },
            }
        }
    }
}
