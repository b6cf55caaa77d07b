//! What research is done with, from the settings: engines, fetcher, extractor, claims, judge, cookies.

use std::sync::Arc;

use anyhow::{Context, Result};
use matsu_adapters::browser::running::RunningBrowser;
use matsu_adapters::browser::{self, Chromium};
use matsu_adapters::claims::extractive::Extractive;
use matsu_adapters::engines::local::LocalEngine;
use matsu_adapters::engines::{EngineSettings, WEB_ENGINES};
use matsu_adapters::fetch::vault::{CookieSource, FileVault};
use matsu_adapters::fetch::web::{FetchSettings, PageBrowser, WebFetcher};
use matsu_adapters::http::guard::{AddressGuard, Exception};
use matsu_adapters::http::names::{GuardedNames, SystemNames};
use matsu_adapters::judge::EmbeddedJudge;
use matsu_adapters::model_research::{ModelClaims, ModelJudge, ModelReports};
use matsu_adapters::reading::Readers;
use matsu_core::clock::Clock;
use matsu_core::ports::research_model::{EMBEDDED, ModelChoice, ResearchModel};
use matsu_core::ports::search_engine::SearchEngine;
use matsu_core::research::ranking::weights::Weights;
use matsu_runtime::research::{ResearchKit, ResearchSettings};

use super::model_choice::FileChoice;
use crate::config::Config;
use crate::private_files::make_private_folder;

pub fn kit(config: &Config) -> Result<ResearchKit> {
    let clock = Clock::system();
    let settings = fetch_settings(config)?;
    let data = &config.paths.data_dir;
    make_private_folder(data)?;
    let vault = Arc::new(FileVault::new(data.join("cookies.json"), running_browser(config, clock)?));
    let browser = browser(config, &settings, clock);
    let readers = Arc::new(Readers::of_this_program(clock));
    let engines = engines(config, &settings.user_agent, &readers, clock)?;
    let fetcher =
        WebFetcher::new(settings, Arc::new(SystemNames), Arc::clone(&vault), browser, Arc::clone(&readers) as _, clock)
            .context("the fetcher cannot start")?;
    let is_auto = config.research_model() == AUTO;
    let choice = is_auto.then(|| Arc::new(FileChoice::open(config, clock)) as Arc<dyn ModelChoice>);
    let model = match &choice {
        Some(choice) => chosen(config, choice.as_ref(), clock)?,
        None => model_named(config, config.research_model(), clock)?,
    };
    let ResearchModel { claim_maker, judge, writer } = model;
    let kit = ResearchKit::new(engines, Arc::new(fetcher), readers, claim_maker, judge);
    let kit = kit.with_writer(writer).with_choice(choice).with_embedded(model_named(config, EMBEDDED, clock)?);
    let mut research = ResearchSettings {
        search_time_max: config.search_time_max(),
        auth_kept: config.auth_kept(),
        ..ResearchSettings::default()
    };
    research.primary_suffixes.extend(config.primary_domains());
    Ok(kit.with_cookies(vault).with_settings(research))
}

/// The setting that leaves the choice to a person.
const AUTO: &str = "auto";

/// As a person chose earlier. A model that is gone since is as good as no choice: research works without, and the
/// doctor names it.
fn chosen(config: &Config, choice: &dyn ModelChoice, clock: Clock) -> Result<ResearchModel> {
    let name = choice.chosen().unwrap_or_else(|| EMBEDDED.to_owned());
    model_named(config, &name, clock).or_else(|error| {
        tracing::warn!(
            model = name,
            error = format!("{error:#}"),
            "the model that was chosen for research is not there"
        );
        model_named(config, EMBEDDED, clock)
    })
}

/// The model that research uses, in words. Nothing is asked of it.
///
/// # Errors
/// There is no such model.
pub fn model_in_use(config: &Config) -> Result<String> {
    let clock = Clock::system();
    let name = match config.research_model() {
        AUTO => match FileChoice::open(config, clock).chosen() {
            None => return Ok("auto: no model was chosen yet, so none is used".to_owned()),
            Some(name) => name,
        },
        name => name.to_owned(),
    };
    model_named(config, &name, clock)?;
    Ok(if name == EMBEDDED { format!("{name}: no model is used") } else { name })
}

/// What this model, or none, makes of research.
pub fn model_named(config: &Config, name: &str, clock: Clock) -> Result<ResearchModel> {
    if name == EMBEDDED {
        let claim_maker = Arc::new(extractive(config)?);
        return Ok(ResearchModel { claim_maker, judge: Arc::new(EmbeddedJudge), writer: None });
    }
    let provider = super::model(config, "research.model", name)?;
    Ok(ResearchModel {
        claim_maker: Arc::new(ModelClaims { provider: Arc::clone(&provider), clock }),
        judge: Arc::new(ModelJudge { provider: Arc::clone(&provider), clock }),
        writer: Some(Arc::new(ModelReports { provider, name: name.to_owned(), clock })),
    })
}

/// The ranker with its own weights, or with those of a file, by which others are measured.
fn extractive(config: &Config) -> Result<Extractive> {
    let Some(file) = config.ranking_weights() else { return Ok(Extractive::new()?) };
    let text =
        std::fs::read_to_string(file).with_context(|| format!("research.ranking_weights: cannot read {file}"))?;
    let weights = Weights::parse(&text).with_context(|| format!("research.ranking_weights: {file}"))?;
    Ok(Extractive::with_weights(weights))
}

fn fetch_settings(config: &Config) -> Result<FetchSettings> {
    let mut exceptions = Vec::new();
    for host in config.allowed_hosts() {
        let exception = Exception::parse(&host);
        exceptions.push(exception.with_context(|| format!("research.allow_hosts: {host} is not a host or host:port"))?);
    }
    Ok(FetchSettings {
        step: config.fetch_step(),
        daily_max: config.fetch_daily_max(),
        exceptions,
        folders: config.research_folders(),
        ..FetchSettings::default()
    })
}

/// `local` always; the others where they are configured.
fn engines(
    config: &Config,
    user_agent: &str,
    readers: &Arc<Readers>,
    clock: Clock,
) -> Result<Vec<Arc<dyn SearchEngine>>> {
    let index = config.paths.data_dir.join("documents.db");
    let readers = Arc::clone(readers) as _;
    let local =
        LocalEngine::open(&index, config.research_folders(), readers, clock).context("the index of local documents")?;
    let mut engines: Vec<Arc<dyn SearchEngine>> = vec![Arc::new(local)];
    engines.extend(web_engines(config, user_agent)?);
    Ok(engines)
}

/// The configured engines that are asked over the network.
pub fn web_engines(config: &Config, user_agent: &str) -> Result<Vec<Arc<dyn SearchEngine>>> {
    let addressed = WEB_ENGINES.iter().filter_map(|entry| Some((entry, config.engine_address(entry.setting)?)));
    let made = addressed.map(|(entry, address)| {
        let with = EngineSettings { address, user_agent, contact: config.contact() };
        (entry.make)(with).context(entry.setting)
    });
    made.collect()
}

/// The person's own browser, where its debugging port was named.
fn running_browser(config: &Config, clock: Clock) -> Result<Option<Arc<dyn CookieSource>>> {
    let Some(address) = config.browser_debug() else { return Ok(None) };
    let running = RunningBrowser::at(address, clock);
    let running = running.with_context(|| format!("research.browser_debug: {address} is not a host:port"))?;
    Ok(Some(Arc::new(running)))
}

fn browser(config: &Config, settings: &FetchSettings, clock: Clock) -> Option<Arc<dyn PageBrowser>> {
    let program = config.browser_program(browser::find_program)?;
    let guard = Arc::new(AddressGuard::new(settings.exceptions.clone()));
    let names = GuardedNames::new(Arc::new(SystemNames), guard);
    Some(Arc::new(Chromium::new(program, names, settings.user_agent.clone(), clock)))
}
