//! OpenAlex: scholarly works with their abstracts, which need not be fetched again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::ports::search_engine::{EngineError, EngineHits, EngineRequest, Pace, SearchEngine};
use matsu_core::research::merge::Hit;
use serde::Deserialize;

use super::EngineEntry;
use super::service::{Service, usable};

const NAME: &str = "openalex";

pub const ENTRY: EngineEntry = EngineEntry {
    setting: "research.openalex",
    make: |with| Ok(Arc::new(OpenAlex::new(with.address, with.user_agent, with.contact)?)),
};

/// Where the public service is.
pub const PUBLIC: &str = "https://api.openalex.org";

const FIELDS: &str = "id,doi,display_name,publication_year,authorships,abstract_inverted_index,primary_location";

/// Words of an abstract that are taken; longer ones are broken data.
const ABSTRACT_WORDS_MAX: usize = 5_000;

/// OpenAlex at one address.
#[derive(Clone, Debug)]
pub struct OpenAlex {
    service: Service,
    /// Sent along, as the service asks polite callers to.
    contact: Option<String>,
}

impl OpenAlex {
    /// # Errors
    /// The address cannot be used.
    pub fn new(base: &str, user_agent: &str, contact: Option<String>) -> Result<Self, EngineError> {
        Ok(Self { service: Service::new(base, user_agent)?, contact })
    }
}

#[derive(Deserialize)]
struct Found {
    #[serde(default, deserialize_with = "usable")]
    results: Vec<Work>,
}

#[derive(Deserialize)]
struct Work {
    id: String,
    doi: Option<String>,
    display_name: Option<String>,
    publication_year: Option<i32>,
    #[serde(default)]
    authorships: Vec<Authorship>,
    abstract_inverted_index: Option<BTreeMap<String, Vec<usize>>>,
    primary_location: Option<Location>,
}

#[derive(Deserialize)]
struct Authorship {
    author: Author,
}

#[derive(Deserialize)]
struct Author {
    display_name: Option<String>,
}

#[derive(Deserialize)]
struct Location {
    landing_page_url: Option<String>,
}

#[async_trait]
impl SearchEngine for OpenAlex {
    fn name(&self) -> &'static str {
        NAME
    }

    fn pace(&self) -> Pace {
        // Ten a second are allowed; fewer are enough.
        Pace::Remote { step: Duration::from_millis(250) }
    }

    async fn search(&self, request: &EngineRequest) -> Result<EngineHits, EngineError> {
        let rows = request.hits_max.clamp(1, 100).to_string();
        // A comma or a bar has a meaning in a filter, not in a search; only the language goes into one.
        let language =
            request.language.as_deref().and_then(|tag| tag.split('-').next()).map(|tag| format!("language:{tag}"));
        let mut pairs = vec![("search", request.query.as_str()), ("per-page", &rows), ("select", FIELDS)];
        if let Some(filter) = &language {
            pairs.push(("filter", filter));
        }
        if let Some(contact) = &self.contact {
            pairs.push(("mailto", contact));
        }
        let found: Found = self.service.ask("works", &pairs).await?;
        Ok(found.results.into_iter().take(request.hits_max as usize).map(hit).collect::<Vec<_>>().into())
    }
}

fn hit(work: Work) -> Hit {
    let abstract_text = work.abstract_inverted_index.as_ref().map(in_order).filter(|text| !text.is_empty());
    let landing = work.primary_location.and_then(|location| location.landing_page_url);
    let doi = work.doi.as_deref().map(|doi| doi.trim_start_matches("https://doi.org/").to_lowercase());
    Hit {
        url: landing.or(work.doi).unwrap_or(work.id),
        title: work.display_name.unwrap_or_default(),
        snippet: abstract_text.as_deref().unwrap_or_default().chars().take(300).collect(),
        year: work.publication_year,
        authors: work.authorships.into_iter().filter_map(|a| a.author.display_name).collect(),
        doi,
        abstract_text,
        domain: None,
    }
}

/// An abstract comes as a map from words to their places.
fn in_order(index: &BTreeMap<String, Vec<usize>>) -> String {
    let mut words: Vec<(usize, &str)> = index
        .iter()
        .flat_map(|(word, places)| places.iter().map(move |at| (*at, word.as_str())))
        .take(ABSTRACT_WORDS_MAX)
        .collect();
    words.sort_unstable();
    words.into_iter().map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_work_becomes_a_hit() {
        let recorded = r#"{"id":"https://openalex.org/W2741809807","doi":"https://doi.org/10.7717/PeerJ.4375","display_name":"The state of OA","publication_year":2018,"authorships":[{"author_position":"first","author":{"id":"https://openalex.org/A1","display_name":"Heather Piwowar"}}],"abstract_inverted_index":{"Open":[0,4],"Access":[1],"is":[2],"not":[3]},"primary_location":{"is_oa":true,"landing_page_url":"https://doi.org/10.7717/peerj.4375"}}"#;
        let hit = hit(serde_json::from_str(recorded).expect("a work"));
        assert_eq!(hit.abstract_text.as_deref(), Some("Open Access is not Open"));
        assert_eq!((hit.doi.as_deref(), hit.year), (Some("10.7717/peerj.4375"), Some(2018)));
        assert_eq!(hit.url, "https://doi.org/10.7717/peerj.4375");
        assert_eq!(hit.authors, ["Heather Piwowar"]);
    }

    #[test]
    fn a_work_without_an_id_is_left_out_and_the_others_count() {
        let reply = r#"{"results":[{"display_name":"No id"},{"id":"https://openalex.org/W1"}]}"#;
        let found: Found = serde_json::from_str(reply).expect("a reply");
        assert_eq!(found.results.len(), 1);
    }

    #[test]
    fn a_work_with_holes_is_still_a_hit() {
        let hit = hit(serde_json::from_str(r#"{"id":"https://openalex.org/W1","doi":null,"display_name":null,"publication_year":null,"abstract_inverted_index":null,"primary_location":null}"#).expect("a work"));
        assert_eq!(hit.url, "https://openalex.org/W1");
        assert_eq!(hit.abstract_text, None);
    }
}
