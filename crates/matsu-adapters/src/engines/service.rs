//! What engines over HTTP share: one bounded request for JSON, and what its failure means.

use std::time::Duration;

use matsu_core::ports::fetcher::FetchError;
use matsu_core::ports::search_engine::EngineError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::Url;

use crate::http;
use crate::http::answer::HttpReply;

const TIME_MAX: Duration = Duration::from_secs(20);
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// A list without the entries that lack what makes them one: a single hit without an address does not cost the others.
pub fn usable<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    let entries = Vec::<Value>::deserialize(from)?;
    let is_empty = entries.is_empty();
    let found: Vec<T> = entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect();
    if found.is_empty() && !is_empty {
        return Err(serde::de::Error::custom("no entry of the list can be used"));
    }
    Ok(found)
}

/// A service that answers with JSON.
#[derive(Clone, Debug)]
pub struct Service {
    client: reqwest::Client,
    base: Url,
}

impl Service {
    /// # Errors
    /// `Failed`: `base` is no http address, or the TLS library could not start.
    pub fn new(base: &str, user_agent: &str) -> Result<Self, EngineError> {
        let base = Url::parse(base).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base = base.ok_or_else(|| EngineError::Failed("its address is not an http address".to_owned()))?;
        let client = http::service_client(user_agent, TIME_MAX);
        let client = client.map_err(|error| EngineError::Failed(error.to_string()))?;
        Ok(Self { client, base })
    }

    /// One request. `path` is joined below the base.
    ///
    /// # Errors
    /// Named for what the caller does next.
    pub async fn ask<T: DeserializeOwned>(&self, path: &str, pairs: &[(&str, &str)]) -> Result<T, EngineError> {
        let mut url = self.base.clone();
        let below = format!("{}/{path}", url.path().trim_end_matches('/'));
        url.set_path(&below);
        url.query_pairs_mut().extend_pairs(pairs);
        let request = self.client.get(url).header("accept", "application/json");
        let answer = HttpReply::read(request, BYTES_MAX).await.map_err(|error| match error {
            FetchError::TooLarge => EngineError::Failed("its answer is larger than allowed".to_owned()),
            other => EngineError::Failed(other.to_string()),
        })?;
        match answer.status {
            200..=299 => serde_json::from_slice(&answer.body)
                .map_err(|_| EngineError::Failed("its answer is not JSON of the expected form".to_owned())),
            429 => Err(EngineError::RateLimited { retry_after: answer.retry_after() }),
            401 => Err(EngineError::Blocked("status 401: it asks for a login".to_owned())),
            403 => {
                let why = "status 403: it does not allow this request (a SearXNG instance must allow the format json)";
                Err(EngineError::Blocked(why.to_owned()))
            }
            404 => Err(EngineError::Failed("status 404: there is no search service at this address".to_owned())),
            status @ 500..=599 => Err(EngineError::Failed(format!("status {status}: the service failed"))),
            status => Err(EngineError::Failed(format!("status {status}"))),
        }
    }
}
