//! The composition root: the only place that names concrete types and puts them together.

mod chats;
mod model_choice;
mod research;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result, bail};
use matsu_adapters::agents::{CliHost, HostOptions, ReloadingHost, Restart};
use matsu_adapters::fetch::web::FetchSettings;
use matsu_adapters::providers::agent::{self, AgentModel};
use matsu_adapters::providers::{self, ProviderConfig};
use matsu_core::clock::Clock;
use matsu_core::node::NodeRole;
use matsu_core::ports::agent::AgentHost;
use matsu_core::ports::notice_channel::NoticeChannel;
use matsu_core::ports::provider::Provider;
use matsu_core::ports::search_engine::SearchEngine;
use matsu_core::ports::store::Store;
use matsu_runtime::agents::{AgentRuns, ChatRuns};
use matsu_runtime::bodies::{Noop, Sleep, SleepingAgent};
use matsu_runtime::models::chat::Roster;
use matsu_runtime::repos::MergeRuns;
use matsu_runtime::research::{ReportJob, ResearchKit, SearchJob, VerifyJob};
use matsu_runtime::{Bodies, Expiry, Runtime, RuntimeOptions, Settings, Workers};
use matsu_store::{OpenOptions, Opened};

use crate::config::Config;
use crate::private_files;

pub use chats::{chats, live_settings};
pub use research::kit as research_kit;
pub use research::model_in_use as research_model_in_use;

/// The configured search engines that are asked over the network.
pub fn web_engines(config: &Config) -> Result<Vec<Arc<dyn SearchEngine>>> {
    research::web_engines(config, &FetchSettings::default().user_agent)
}

/// The version of this program, unless a test speaks of another.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Set by a test that plays a clock that is wrong: by how many seconds.
const WRONG_CLOCK: &str = "MATSU_TEST_CLOCK";

fn clock(config: &Config) -> Clock {
    let seconds = config.environment.get(WRONG_CLOCK).and_then(|seconds| seconds.parse().ok());
    seconds.map_or(Clock::system(), Clock::wrong_by)
}

/// What a process is there for.
pub struct Role {
    pub node: NodeRole,
    pub workers: Workers,
    pub bodies: Bodies,
    pub agents: Arc<dyn AgentHost>,
    pub version: String,
}

pub async fn open_store(config: &Config) -> Result<Opened> {
    let options = OpenOptions { synchronous: config.synchronous(), clock: clock(config) };
    Ok(matsu_store::open(config.store_url(), options).await?)
}

pub fn runtime(config: &Config, opened: &Opened, role: Role) -> Result<Runtime> {
    let mut options = RuntimeOptions::new(Arc::clone(&opened.store), clock(config), config.slots(), role.bodies);
    options.agents = Some(role.agents);
    options.workers = role.workers;
    options.expiry = if opened.durable { Expiry::Durable } else { Expiry::InMemory };
    options.settings = settings(config, Arc::new(research::kit(config)?));
    options.role = role.node;
    options.host = host(config);
    options.version = role.version;
    Ok(Runtime::new(options))
}

/// What a runtime can exchange while it works.
pub fn settings(config: &Config, research: Arc<ResearchKit>) -> Settings {
    Settings {
        hold_max: config.hold_max(),
        hold_max_progress: config.hold_max_progress(),
        sessions: config.sessions(),
        research: Some(research),
        host_grace: config.host_grace(),
        results_kept: config.results_kept(),
        prices: Arc::new(config.prices()),
        day_limit: config.day_limit(),
    }
}

/// The path that this process was started from. Read once: later the system names no path that exists, if the file was
/// replaced by a newer version.
fn this_program() -> Option<PathBuf> {
    static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::current_exe().ok());
    PROGRAM.clone()
}

/// As a relay would start the next daemon.
fn restart(config: &Config) -> Option<Restart> {
    let path = |path: &std::path::Path| std::path::absolute(path).ok().map(|path| path.display().to_string());
    let mut args = vec!["--data-dir".to_owned(), path(&config.paths.data_dir)?];
    if let Some(file) = config.file.as_ref().filter(|file| file.exists()) {
        args.extend(["--config".to_owned(), path(file)?]);
    }
    args.extend(["--store".to_owned(), config.store_url().to_owned()]);
    args.extend(["serve", "--detach", "--idle-exit"].map(str::to_owned));
    args.push(matsu_core::limits::IDLE_EXIT.as_secs().to_string());
    Some(Restart {
        program: this_program()?,
        args,
        env: config.environment.clone(),
        socket: config.paths.socket(),
        unless: config.paths.stopped(),
        log: config.paths.daemon_log(),
    })
}

/// The name of this machine, and of this data directory: what a run leaves behind lies in the one where it began.
fn host(config: &Config) -> String {
    let path = config.paths.host_id();
    let id = read_id(&path).unwrap_or_else(|| {
        // Two processes may start at once: the one that comes second takes what the first has written. Without a data
        // directory there are no runs that could be found again, and any name will do.
        let minted = matsu_core::id::NodeId::mint(Clock::system().now()).to_string();
        let new = path.with_added_extension(&minted);
        if private_files::write_private(&new, &minted).is_ok() {
            let _ = std::fs::hard_link(&new, &path);
            let _ = std::fs::remove_file(&new);
        }
        read_id(&path).unwrap_or(minted)
    });
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let short = id.get(id.len().saturating_sub(6)..).unwrap_or(&id);
    format!("{name}/{short}")
}

fn read_id(path: &std::path::Path) -> Option<String> {
    let id = std::fs::read_to_string(path).ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

/// The command lines of this machine.
pub fn agents(config: &Config) -> Arc<dyn AgentHost> {
    Arc::new(CliHost::new(host_options(config)))
}

/// The same for a process that follows its files.
pub fn reloading_agents(config: &Config) -> Arc<ReloadingHost> {
    Arc::new(ReloadingHost::new(host_options(config)))
}

/// The same command lines as models. Their runs are kept apart: a daemon takes care of the runs of its jobs only.
pub fn model_host(config: &Config) -> Arc<dyn AgentHost> {
    let options = host_options(config);
    let store = format!("models of {}", options.store);
    Arc::new(CliHost::new(HostOptions { store, restart: None, is_for_models: true, ..options }))
}

pub fn host_options(config: &Config) -> HostOptions {
    HostOptions {
        data_dir: config.paths.data_dir.clone(),
        definitions: config.agent_definitions(),
        roots: config.agent_roots(),
        mode_max: config.agent_mode_max(),
        environment: config.environment.clone(),
        matsu: this_program().unwrap_or_else(|| "matsu".into()),
        has_model: config.providers().is_ok_and(|providers| !providers.is_empty()),
        confine: config.confine(),
        socket: config.paths.socket(),
        clock: clock(config),
        restart: restart(config),
        store: config.store_name(),
        bundle_bytes_max: config.agent_bundle_max(),
        bundle_within: config.agent_bundle_timeout(),
        is_for_models: false,
    }
}

/// The models that are configured, in the order in which they speak.
pub fn roster(config: &Config) -> Result<Roster> {
    let open = |provider: ProviderConfig| {
        let name = provider.name.clone();
        providers::open(provider, Clock::system()).map_err(|error| anyhow::anyhow!("providers.{name}: {error}"))
    };
    let mut models = config.providers()?.into_iter().map(open).collect::<Result<Vec<_>>>()?;
    let agents = config.chat_agents();
    if !agents.is_empty() {
        let host = model_host(config);
        for agent in agents {
            if models.iter().any(|model| model.name() == agent) {
                bail!("chat.agents: there is a provider named {agent} already; rename the provider");
            }
            models.push(agent_model(&host, &agent, "chat.agents")?);
        }
    }
    Ok(Roster::new(models, config.default_model()))
}

fn agent_model(host: &Arc<dyn AgentHost>, agent: &str, setting: &str) -> Result<Arc<dyn Provider>> {
    let model = AgentModel::new(Arc::clone(host), agent, Clock::system());
    Ok(Arc::new(model.map_err(|error| anyhow::anyhow!("{setting}: {error}"))?))
}

/// The model that a setting names: a provider, or `agent:NAME` for a command line of an agent.
pub fn model(config: &Config, setting: &str, name: &str) -> Result<Arc<dyn Provider>> {
    if let Some(agent) = name.strip_prefix(agent::PREFIX) {
        return agent_model(&model_host(config), agent, setting);
    }
    let found = roster(config)?.get(name).cloned();
    found.with_context(|| format!("{setting}: there is no provider {name}"))
}

/// The channels to people. One that cannot be opened is left out, and the doctor names it.
pub fn channels(config: &Config, store: &Arc<dyn Store>) -> Vec<Arc<dyn NoticeChannel>> {
    let configured = config.channels().unwrap_or_else(|error| {
        tracing::warn!(error = format!("{error:#}"), "no notices are sent: a section notify.NAME is wrong");
        Vec::new()
    });
    let opened = configured.into_iter().filter_map(|channel| {
        let name = channel.name.clone();
        let opened = matsu_adapters::notify::open(channel, store);
        opened.inspect_err(|error| tracing::warn!(channel = name, error, "a channel cannot be opened")).ok()
    });
    opened.collect()
}

/// What jobs this process can run. The test kinds only where they were asked for.
pub fn bodies(agents: &Arc<dyn AgentHost>, test_jobs: bool) -> Bodies {
    let runs = AgentRuns::new(Arc::clone(agents));
    let bodies =
        Bodies::default().with(SearchJob).with(VerifyJob).with(ReportJob).with(ChatRuns::new(Arc::clone(agents)));
    let bodies = bodies.with(MergeRuns::new(Arc::clone(agents)));
    if test_jobs {
        return bodies.with(Noop).with(Sleep).with(SleepingAgent::beside(runs));
    }
    bodies.with(runs)
}
