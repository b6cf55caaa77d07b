//! A small web in memory: scripted engines, pages, an extractor, a claim maker and a judge. It counts what is asked of
//! it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use matsu_core::clock::Clock;
use matsu_core::ports::claim_maker::{ClaimDraft, ClaimMaker, ClaimRequest, ModelError};
use matsu_core::ports::extractor::{ExtractError, Extractor};
use matsu_core::ports::fetcher::{Clearance, FetchError, FetchMeans, FetchOutcome, FetchRequest, FetchedPage, Fetcher};
use matsu_core::ports::judge::Judge;
use matsu_core::ports::search_engine::{EngineError, EngineHits, EngineRequest, Pace, SearchEngine};
use matsu_core::research::document::Document;
use matsu_core::research::evidence::{Extraction, PageOrigin};
use matsu_core::research::merge::Hit;
use matsu_core::research::sentences::sentences;
use matsu_core::research::stance::Stance;
use matsu_core::slot::Slot;

/// What a page does when it is asked for.
#[derive(Clone)]
pub enum CannedResponse {
    Text(String),
    /// Text that belongs to the principal that asked.
    Private(String),
    Gives(FetchOutcome),
    Fails(FetchError),
}

/// The web and everything that works on it.
#[derive(Clone)]
pub struct Web {
    clock: Clock,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    pages: HashMap<String, VecDeque<CannedResponse>>,
    results: HashMap<String, Vec<String>>,
    /// How long each search takes, by query.
    delays: HashMap<String, Duration>,
    engine_fails: Option<EngineError>,
    model_fails: bool,
    judge_fails: bool,
    step: Duration,
    fetched: Vec<String>,
    asked: Vec<(String, Option<String>)>,
    searching: usize,
    searching_max: usize,
    page_delay: Duration,
}

impl Web {
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, inner: Arc::default() }
    }

    /// Answers in turn; the last one stays.
    pub fn page(&self, url: &str, answers: impl IntoIterator<Item = CannedResponse>) -> &Self {
        self.lock().pages.insert(url.to_owned(), answers.into_iter().collect());
        self
    }

    /// What a query finds.
    pub fn results(&self, query: &str, urls: &[&str]) -> &Self {
        let urls = urls.iter().map(|url| (*url).to_owned()).collect();
        self.lock().results.insert(query.to_owned(), urls);
        self
    }

    pub fn delay(&self, query: &str, span: Duration) -> &Self {
        self.lock().delays.insert(query.to_owned(), span);
        self
    }

    pub fn page_delay(&self, span: Duration) {
        self.lock().page_delay = span;
    }

    /// Time between two requests to one site.
    pub fn step(&self, step: Duration) {
        self.lock().step = step;
    }

    pub fn break_engine(&self, error: Option<EngineError>) {
        self.lock().engine_fails = error;
    }

    pub fn break_model(&self, is_broken: bool) {
        self.lock().model_fails = is_broken;
    }

    pub fn break_judge(&self, is_broken: bool) {
        self.lock().judge_fails = is_broken;
    }

    /// Addresses that were fetched, in order.
    #[must_use]
    pub fn fetched(&self) -> Vec<String> {
        self.lock().fetched.clone()
    }

    /// Queries and languages that engines were asked.
    #[must_use]
    pub fn asked(&self) -> Vec<(String, Option<String>)> {
        self.lock().asked.clone()
    }

    /// The most searches that ran at once.
    #[must_use]
    pub fn searching_max(&self) -> usize {
        self.lock().searching_max
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SearchEngine for Web {
    fn name(&self) -> &'static str {
        "local"
    }

    fn pace(&self) -> Pace {
        Pace::Local
    }

    async fn search(&self, request: &EngineRequest) -> Result<EngineHits, EngineError> {
        let (delay, urls, error) = {
            let mut inner = self.lock();
            inner.asked.push((request.query.clone(), request.language.clone()));
            inner.searching += 1;
            inner.searching_max = inner.searching_max.max(inner.searching);
            let delay = inner.delays.get(&request.query).copied().unwrap_or_default();
            (delay, inner.results.get(&request.query).cloned().unwrap_or_default(), inner.engine_fails.clone())
        };
        self.clock.sleep(delay).await;
        self.lock().searching -= 1;
        match error {
            Some(error) => Err(error),
            None => {
                let hits = urls.into_iter().map(|url| Hit { title: url.clone(), url, ..Hit::default() });
                Ok(hits.collect::<Vec<_>>().into())
            }
        }
    }
}

#[async_trait]
impl Fetcher for Web {
    async fn clearance(&self, _request: &FetchRequest) -> Result<Clearance, FetchError> {
        Ok(Clearance { step: self.lock().step, daily_max: None })
    }

    async fn fetch(&self, request: &FetchRequest, _means: FetchMeans) -> Result<FetchOutcome, FetchError> {
        let (answer, delay) = {
            let mut inner = self.lock();
            inner.fetched.push(request.url.clone());
            let answers = inner.pages.get_mut(&request.url);
            let answer = answers
                .and_then(|answers| if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() });
            (answer, inner.page_delay)
        };
        self.clock.sleep(delay).await;
        let page = |text: String, is_private| {
            FetchOutcome::Page(Box::new(FetchedPage {
                url: request.url.clone(),
                body: text.into_bytes(),
                media_type: "text/plain".to_owned(),
                etag: None,
                last_modified: None,
                origin: PageOrigin::Http,
                is_private,
                domain: None,
            }))
        };
        match answer {
            Some(CannedResponse::Text(text)) => Ok(page(text, false)),
            Some(CannedResponse::Private(text)) => Ok(page(text, true)),
            Some(CannedResponse::Gives(outcome)) => Ok(outcome),
            Some(CannedResponse::Fails(error)) => Err(error),
            None => Err(FetchError::Status(404)),
        }
    }

    fn has_browser(&self) -> bool {
        false
    }
}

#[async_trait]
impl Extractor for Web {
    async fn extract(&self, page: FetchedPage) -> Result<Document, ExtractError> {
        let text = String::from_utf8(page.body).map_err(|error| ExtractError::Malformed(error.to_string()))?;
        Ok(Document { title: page.url, text, ..Document::default() })
    }
}

#[async_trait]
impl ClaimMaker for Web {
    fn extraction(&self) -> Extraction {
        Extraction::Extractive
    }

    fn slot(&self) -> Option<Slot> {
        None
    }

    /// The first sentence of each fragment.
    async fn claims(&self, request: &ClaimRequest) -> Result<Vec<ClaimDraft>, ModelError> {
        if self.lock().model_fails {
            return Err(ModelError::Unavailable("as the test wished".to_owned()));
        }
        let first = sentences(&request.fragment).into_iter().next();
        let text = first.map(|first| request.fragment[first.start..first.end].to_owned());
        Ok(text.into_iter().map(|text| ClaimDraft { quote: text.clone(), text }).collect())
    }
}

#[async_trait]
impl Judge for Web {
    fn source(&self) -> &'static str {
        "judge"
    }

    fn slot(&self) -> Option<Slot> {
        None
    }

    /// A passage says itself what it is: `[yes]`, `[no]`, or neither.
    async fn stances(&self, _claim: &str, passages: &[&str]) -> Result<Vec<Stance>, ModelError> {
        if self.lock().judge_fails {
            return Err(ModelError::Unavailable("its answer is no JSON".to_owned()));
        }
        let stance = |text: &&str| match (text.contains("[yes]"), text.contains("[no]")) {
            (true, _) => Stance::from_weights(0.9, 0.05, 0.05),
            (_, true) => Stance::from_weights(0.1, 0.8, 0.1),
            _ => Stance::abstained(),
        };
        Ok(passages.iter().map(stance).collect())
    }
}
