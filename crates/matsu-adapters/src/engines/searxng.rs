//! SearXNG, the metasearch engine that people run themselves, over its JSON API. The instance must allow the format
//! `json`; one that does not answers 403, which reads as blocked.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::ports::search_engine::{EngineError, EngineHits, EngineRequest, Pace, SearchEngine};
use matsu_core::research::merge::Hit;
use serde::Deserialize;

use super::EngineEntry;
use super::service::{Service, usable};

const NAME: &str = "searxng";

pub const ENTRY: EngineEntry = EngineEntry {
    setting: "research.searxng",
    make: |with| Ok(Arc::new(Searxng::new(with.address, with.user_agent)?)),
};

/// One SearXNG instance.
#[derive(Clone, Debug)]
pub struct Searxng {
    service: Service,
}

impl Searxng {
    /// # Errors
    /// The address cannot be used.
    pub fn new(base: &str, user_agent: &str) -> Result<Self, EngineError> {
        Ok(Self { service: Service::new(base, user_agent)? })
    }
}

#[derive(Deserialize)]
struct Found {
    #[serde(default, deserialize_with = "usable")]
    results: Vec<Row>,
    /// Pairs of name and reason.
    #[serde(default)]
    unresponsive_engines: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct Row {
    url: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default, rename = "publishedDate")]
    published: Option<String>,
}

#[async_trait]
impl SearchEngine for Searxng {
    fn name(&self) -> &'static str {
        NAME
    }

    fn pace(&self) -> Pace {
        Pace::Remote { step: Duration::from_secs(1) }
    }

    async fn search(&self, request: &EngineRequest) -> Result<EngineHits, EngineError> {
        let mut pairs = vec![("q", request.query.as_str()), ("format", "json")];
        if let Some(language) = &request.language {
            pairs.push(("language", language));
        }
        let found: Found = self.service.ask("search", &pairs).await?;
        let missing: Vec<String> = found
            .unresponsive_engines
            .iter()
            .map(|pair| match pair.split_first() {
                Some((name, why)) if !why.is_empty() => format!("{name} did not respond: {}", why.join(": ")),
                _ => format!("{} did not respond", pair.concat()),
            })
            .collect();
        if found.results.is_empty() && !missing.is_empty() {
            return Err(EngineError::Failed(format!("no results: {}", missing.join("; "))));
        }
        let hits = found.results.into_iter().take(request.hits_max as usize).map(hit).collect();
        Ok(EngineHits { hits, missing, ..EngineHits::default() })
    }
}

fn hit(row: Row) -> Hit {
    Hit {
        url: row.url,
        title: row.title.unwrap_or_default(),
        snippet: row.content.unwrap_or_default(),
        year: row.published.and_then(|date| date.get(..4)?.parse().ok()),
        ..Hit::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_without_an_address_is_left_out_and_the_others_count() {
        let reply = r#"{"results":[{"url":"https://a.org/"},{"title":"no address"},null,{"url":7},
            {"url":"https://b.org/","title":"B"}]}"#;
        let found: Found = serde_json::from_str(reply).expect("a reply");
        let urls: Vec<&str> = found.results.iter().map(|row| row.url.as_str()).collect();
        assert_eq!(urls, ["https://a.org/", "https://b.org/"]);
    }
}
