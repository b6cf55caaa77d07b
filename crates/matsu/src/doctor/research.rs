//! What research works with: engines, folders, the browser and the model, each tried as far as that costs nothing.

use std::time::Duration;

use futures_util::future::join_all;
use matsu_adapters::browser;
use matsu_adapters::engines::local;
use matsu_adapters::providers::agent;
use matsu_core::clock::Clock;
use matsu_core::ports::agent::ProbeDepth;
use matsu_core::ports::search_engine::{EngineRequest, SearchEngine};
use matsu_core::principal::Principal;

use super::{Finding, bad, good, note};
use crate::compose;
use crate::config::Config;
use crate::process;

/// How long an engine may take to answer.
const ENGINE_MAX: Duration = Duration::from_secs(15);

/// Every configured engine on the web is asked one question.
pub async fn engines(config: &Config) -> Finding {
    let engines = match compose::web_engines(config) {
        Ok(engines) => engines,
        Err(error) => return bad("engines", format!("{error:#}"), "correct that setting"),
    };
    if engines.is_empty() {
        let advice = "set research.searxng to the address of a SearXNG instance, or research.openalex to \
                      https://api.openalex.org; folders are searched without them";
        return note("engines", "none on the web is configured", advice);
    }
    let asked = join_all(engines.iter().map(|engine| ask(&**engine))).await;
    let words: Vec<String> = engines
        .iter()
        .zip(&asked)
        .map(|(engine, answer)| {
            let (Ok(answer) | Err(answer)) = answer;
            format!("{}: {answer}", engine.name())
        })
        .collect();
    if asked.iter().all(Result::is_ok) {
        good("engines", words.join("; "))
    } else {
        bad("engines", words.join("; "), "check the address in the configuration and whether the service runs")
    }
}

async fn ask(engine: &dyn SearchEngine) -> Result<String, String> {
    let request = EngineRequest {
        query: "water".to_owned(),
        language: None,
        hits_max: 3,
        owner: Principal::local_user(),
        folders: Vec::new(),
    };
    match Clock::system().within(ENGINE_MAX, engine.search(&request)).await {
        None => Err(format!("no answer within {} s", ENGINE_MAX.as_secs())),
        Some(Err(error)) => Err(error.to_string()),
        Some(Ok(found)) if found.missing.is_empty() => Ok(format!("{} results", found.hits.len())),
        Some(Ok(found)) => Ok(format!("{} results; {}", found.hits.len(), found.missing.join("; "))),
    }
}

/// Folders that are searched where none is named.
pub fn folders(config: &Config) -> Finding {
    let folders = config.research_folders();
    if folders.is_empty() {
        let advice =
            format!("give one with matsu research --dir DIR, or set research.folders (engine {})", local::NAME);
        return note("folders", "none is configured", advice);
    }
    let unreadable: Vec<String> = folders
        .iter()
        .filter_map(|folder| {
            let why = std::fs::read_dir(folder).err()?;
            Some(format!("{}: {why}", folder.display()))
        })
        .collect();
    if unreadable.is_empty() {
        let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        good("folders", names.join(", "))
    } else {
        bad("folders", unreadable.join("; "), "correct research.folders")
    }
}

/// The model that makes claims, judges them and writes reports. The program of an agent is asked as far as `depth` says,
/// and answers no question; the addresses of providers are tried under `models`.
pub async fn model(config: &Config, depth: ProbeDepth) -> Finding {
    let model = match compose::research_model_in_use(config) {
        Ok(model) => model,
        Err(error) => {
            let advice = "set research.model to embedded, a provider, agent:NAME or auto; with auto, choose another \
                          one on the page Research";
            return bad("research", format!("{error:#}"), advice);
        }
    };
    let Some(name) = model.strip_prefix(agent::PREFIX) else { return good("research", model) };
    let host = compose::model_host(config);
    let command = host.agents().into_iter().find(|agent| agent.name == name).map(|agent| agent.command);
    let command = command.unwrap_or_else(|| name.to_owned());
    let probe = host.probe(name, depth).await;
    let advice =
        |first: String| format!("{first}, or set research.model to another model; until then it is done without");
    match probe.authenticated {
        _ if !probe.installed => {
            bad("research", format!("{model}: {command} is not installed"), advice(format!("install {command}")))
        }
        Some(false) => bad(
            "research",
            format!("{model}: {command} is not logged in"),
            advice(format!("start {command} and log in")),
        ),
        _ => {
            let version = probe.version.map(|version| format!(" ({version})")).unwrap_or_default();
            good("research", format!("{model}{version}"))
        }
    }
}

/// The browser that reads pages which need one is started for its version.
pub fn browser(config: &Config) -> Finding {
    let Some(program) = config.browser_program(browser::find_program) else {
        let advice = "pages that only show text with scripts are not read; install Chromium or set research.browser";
        return note("browser", "none is found", advice);
    };
    match process::version_of(&program) {
        Ok(version) => good("browser", format!("{version} at {}", program.display())),
        Err(error) => bad("browser", format!("{}: {error:#}", program.display()), "correct research.browser"),
    }
}
