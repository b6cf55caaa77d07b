//! What research is done with: the ports, and the settings of this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use matsu_core::limits::{AUTH_KEPT, PAGE_CACHE_KEPT, SEARCH_TIME_MAX};
use matsu_core::ports::claim_maker::ClaimMaker;
use matsu_core::ports::cookie_vault::CookieVault;
use matsu_core::ports::extractor::Extractor;
use matsu_core::ports::fetcher::Fetcher;
use matsu_core::ports::judge::Judge;
use matsu_core::ports::report_writer::ReportWriter;
use matsu_core::ports::research_model::{ModelChoice, ResearchModel};
use matsu_core::ports::search_engine::SearchEngine;
use matsu_core::research::address::PRIMARY_SUFFIXES;

/// The parts of research.
pub struct ResearchKit {
    engines: Vec<Arc<dyn SearchEngine>>,
    pub fetcher: Arc<dyn Fetcher>,
    pub extractor: Arc<dyn Extractor>,
    /// A person may choose another model while searches run: each takes what there is when it begins.
    model: RwLock<ResearchModel>,
    /// What does the work of a model that fails; without it, a search ends with its model.
    pub embedded: Option<ResearchModel>,
    /// Where a person chooses the model.
    pub choice: Option<Arc<dyn ModelChoice>>,
    pub cookies: Option<Arc<dyn CookieVault>>,
    pub settings: ResearchSettings,
    turnstiles: Turnstiles,
}

#[derive(Clone, Debug)]
pub struct ResearchSettings {
    pub primary_suffixes: Vec<String>,
    pub search_time_max: Duration,
    pub page_cache_kept: Duration,
    /// How long a page waits for a person.
    pub auth_kept: Duration,
}

impl Default for ResearchSettings {
    fn default() -> Self {
        Self {
            primary_suffixes: PRIMARY_SUFFIXES.iter().map(|suffix| (*suffix).to_owned()).collect(),
            search_time_max: SEARCH_TIME_MAX,
            page_cache_kept: PAGE_CACHE_KEPT,
            auth_kept: AUTH_KEPT,
        }
    }
}

impl ResearchKit {
    #[must_use]
    pub fn new(
        engines: Vec<Arc<dyn SearchEngine>>,
        fetcher: Arc<dyn Fetcher>,
        extractor: Arc<dyn Extractor>,
        claim_maker: Arc<dyn ClaimMaker>,
        judge: Arc<dyn Judge>,
    ) -> Self {
        let model = RwLock::new(ResearchModel { claim_maker, judge, writer: None });
        let (settings, turnstiles) = (ResearchSettings::default(), Turnstiles::default());
        Self { engines, fetcher, extractor, model, embedded: None, choice: None, cookies: None, settings, turnstiles }
    }

    #[must_use]
    pub fn with_cookies(mut self, cookies: Arc<dyn CookieVault>) -> Self {
        self.cookies = Some(cookies);
        self
    }

    /// With a model that writes reports.
    #[must_use]
    pub fn with_writer(self, writer: Option<Arc<dyn ReportWriter>>) -> Self {
        let model = ResearchModel { writer, ..self.model() };
        self.use_model(model);
        self
    }

    /// With what does the work of a model that fails.
    #[must_use]
    pub fn with_embedded(mut self, embedded: ResearchModel) -> Self {
        self.embedded = Some(embedded);
        self
    }

    #[must_use]
    pub fn with_choice(mut self, choice: Option<Arc<dyn ModelChoice>>) -> Self {
        self.choice = choice;
        self
    }

    /// The model in use.
    #[must_use]
    pub fn model(&self) -> ResearchModel {
        self.model.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The model of searches that begin from now on.
    pub fn use_model(&self, model: ResearchModel) {
        *self.model.write().unwrap_or_else(PoisonError::into_inner) = model;
    }

    #[must_use]
    pub fn with_settings(mut self, settings: ResearchSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The names of the engines, in the order they were configured.
    pub fn engine_names(&self) -> impl Iterator<Item = &'static str> {
        self.engines.iter().map(|engine| engine.name())
    }

    /// These engines, or all where none is named.
    pub(crate) fn engines(&self, named: &[String]) -> Vec<Arc<dyn SearchEngine>> {
        let wanted = |engine: &&Arc<dyn SearchEngine>| named.is_empty() || named.iter().any(|n| n == engine.name());
        self.engines.iter().filter(wanted).cloned().collect()
    }

    /// Whether these engines, or all where none is named, find nothing without a folder.
    pub(crate) fn needs_folder(&self, named: &[String]) -> bool {
        self.engines(named).iter().all(|engine| engine.needs_folder())
    }

    /// A place that one at a time passes, by name: an engine, a page.
    pub(crate) fn turnstile(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        self.turnstiles.of(name)
    }
}

/// One lock per name, removed when it is neither held nor waited for.
#[derive(Default)]
struct Turnstiles {
    by_name: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Turnstiles {
    fn of(&self, name: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        by_name.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(by_name.entry(name.to_owned()).or_default())
    }
}
