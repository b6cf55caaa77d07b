//! Settings: default, file, environment, flag, each over the one before. Every key is in one table.
#![expect(clippy::disallowed_methods, reason = "the one file that reads the environment")]

pub mod key;
pub mod keys;
pub mod layers;
pub mod notify;
pub mod prices;
pub mod providers;
mod research;
mod started_elsewhere;
mod wrong_flag;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use matsu_adapters::agents::ConfineOptions;
use matsu_adapters::mcp_host::McpConfig;
use matsu_adapters::providers::ProviderConfig;
use matsu_core::confinement::Confinement;
use matsu_core::language::Language;
use matsu_core::redaction;
use matsu_core::run::Mode;
use matsu_core::slot::SlotLimits;
use matsu_core::usage::UsageLimit;
use matsu_runtime::SessionOptions;
use matsu_runtime::models::agentic_loop::{LoopLimits, SpendingMax};
use matsu_server::auth::origin::{Addresses, PublicUrl};
use matsu_server::limits::bounds::Bounds;
use matsu_store::Synchronous;

use crate::cli::Global;
use crate::homes::Homes;
use crate::paths::Paths;

pub use layers::Layers;
pub use wrong_flag::WrongFlag;

/// What an MCP server is given of our environment; everything else stays here.
const CHILD_VARIABLES: &[&str] = &["HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ", "USER"];

/// `agents.keep_awake`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepAwake {
    Off,
    OnPower,
    Always,
}

/// Everything a process needs to know to start.
#[derive(Clone, Debug)]
pub struct Config {
    pub paths: Paths,
    pub layers: Layers,
    /// The user wants no colours anywhere.
    pub no_color: bool,
    /// Where the configuration file is or would be.
    pub file: Option<PathBuf>,
    /// What this process was started with; runs of agents get a part of it.
    pub environment: BTreeMap<String, String>,
}

/// What a command says on top of the global flags.
#[derive(Clone, Default)]
pub struct Flags {
    pub listen: Option<String>,
    pub port: Option<u16>,
    pub workers: Option<u32>,
}

impl Config {
    /// Reads file and environment, and lets the flags win.
    pub fn load(global: &Global, flags: &Flags) -> Result<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let folder = |variable: &str, below_home: &str| {
            let set = std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
            set.or_else(|| home.as_ref().map(|home| home.join(below_home)))
                .with_context(|| format!("neither {variable} nor HOME is set; pass --data-dir and --config"))
        };
        let data_dir = match &global.data_dir {
            Some(folder) => std::path::absolute(folder)?,
            None => match std::env::var_os("MATSU_DATA_DIR") {
                Some(folder) => std::path::absolute(folder)?,
                None => folder("XDG_DATA_HOME", ".local/share")?.join("matsu"),
            },
        };
        let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
        let paths = Paths { data_dir, runtime_dir };
        let file = match &global.config {
            Some(file) => Some(file.clone()),
            None => folder("XDG_CONFIG_HOME", ".config").ok().map(|folder| folder.join("matsu/config.toml")),
        };

        let mut layers = Layers::defaults(&paths);
        match &file {
            Some(file) if global.config.is_none() && is_kept_from_run(file) => {}
            Some(file) if file.exists() || global.config.is_some() => layers.read_file(file)?,
            _ => {}
        }
        layers.read_environment(|name| std::env::var(name).ok())?;
        layers.read_flags(&[
            ("--store", "store.url", global.store.clone()),
            ("--lang", "lang", global.lang.clone()),
            ("--listen", "server.listen", flags.listen.clone()),
            ("--port", "server.port", flags.port.map(|port| port.to_string())),
            ("--workers", "slots.network_client", flags.workers.map(|workers| workers.to_string())),
        ])?;
        layers.make_store_absolute()?;
        if global.store.is_some() {
            wrong_flag::check_store(layers.text("store.url"), &paths.data_dir)?;
        }
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let environment = std::env::vars_os();
        let environment =
            environment.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let environment: BTreeMap<String, String> = environment.collect();
        redaction::remember_variables(&environment);
        if let Some(password) = password_in(layers.text("store.url")) {
            redaction::remember("store password", password);
        }
        Ok(Self { paths, layers, no_color, file, environment })
    }

    /// Where this user's AI clients keep their files.
    pub fn homes(&self) -> Result<Homes> {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = folder("HOME").context("HOME is not set, so no client's files can be found")?;
        Ok(Homes {
            claude: folder("CLAUDE_CONFIG_DIR"),
            codex: folder("CODEX_HOME"),
            config: folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            path: std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
            home,
        })
    }

    pub fn store_url(&self) -> &str {
        self.layers.text("store.url")
    }

    /// The same for everybody who means the same store, and fit to be shown.
    pub fn store_name(&self) -> String {
        without_password(self.store_url())
    }

    pub fn synchronous(&self) -> Synchronous {
        match self.layers.text("store.synchronous") {
            "normal" => Synchronous::Normal,
            _ => Synchronous::Full,
        }
    }

    pub fn listen(&self) -> &str {
        self.layers.text("server.listen")
    }

    /// Names under which the server may be asked for.
    fn names(&self) -> Vec<String> {
        let names = self.layers.text("server.names").split(',').map(str::trim);
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// Where a proxy offers the server to others.
    pub fn public_url(&self) -> Option<PublicUrl> {
        PublicUrl::parse(self.layers.text("server.public_url"))
    }

    pub fn addresses(&self) -> Addresses {
        Addresses { names: self.names(), public: self.public_url() }
    }

    /// How many connections the port accepts, with and without a token.
    pub fn bounds(&self) -> Bounds {
        let number = |key: &str| usize::try_from(self.layers.number(key)).unwrap_or(usize::MAX);
        Bounds {
            request: Duration::from_secs(self.layers.number("server.request_max")),
            unauthenticated: number("server.unauthenticated_max"),
            unauthenticated_per_address: number("server.unauthenticated_per_address"),
            connections: number("server.connections_max"),
        }
    }

    pub fn port(&self) -> u16 {
        u16::try_from(self.layers.number("server.port")).unwrap_or(0)
    }

    pub fn serves_http(&self) -> bool {
        self.layers.text("server.http") == "on"
    }

    pub fn hold_max(&self) -> Duration {
        Duration::from_secs(self.layers.number("wait.hold_max"))
    }

    pub fn sessions(&self) -> SessionOptions {
        let seconds = |key: &str| Duration::from_secs(self.layers.number(key));
        SessionOptions {
            ttl: seconds("sessions.ttl"),
            idle_end: seconds("sessions.idle_end"),
            connect_max: seconds("sessions.connect_max"),
            cancel_grace: seconds("sessions.cancel_grace"),
            hold_grace: seconds("sessions.hold_grace"),
            language: Language::parse(self.layers.text("lang")).unwrap_or(Language::English),
        }
    }

    pub fn hold_max_progress(&self) -> Duration {
        Duration::from_secs(self.layers.number("wait.hold_max_progress"))
    }

    /// A text that may be switched off by its default word.
    fn unless(&self, name: &str, off: &str) -> Option<&str> {
        Some(self.layers.text(name)).filter(|value| *value != off)
    }

    fn list(&self, name: &str, mark: char) -> Vec<String> {
        let parts = self.unless(name, "none").unwrap_or_default().split(mark).map(str::trim);
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// The repository whose releases `matsu upgrade --check` asks for.
    pub fn repository(&self) -> &str {
        self.layers.text("upgrade.repository")
    }

    /// The browser to be used, if any; `find` looks for one on the search path.
    pub fn browser_program(&self, find: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        match self.layers.text("research.browser") {
            "off" => None,
            "auto" => find(&std::env::var("PATH").unwrap_or_default()),
            path => Some(PathBuf::from(path)),
        }
    }

    pub fn log_level(&self) -> &str {
        self.layers.text("log.level")
    }

    pub fn logs_json(&self) -> bool {
        self.layers.text("log.format") == "json"
    }

    /// The folder of the user's own agents: beside the configuration file.
    pub fn agent_definitions(&self) -> Option<PathBuf> {
        std::path::absolute(self.file.as_ref()?.parent()?.join("agents")).ok()
    }

    /// Directories that agents may work in.
    pub fn agent_roots(&self) -> Vec<PathBuf> {
        let roots = self.layers.text("agents.roots").split(':').filter(|root| !root.is_empty());
        let home = self.environment.get("HOME").map(PathBuf::from).unwrap_or_default();
        roots.map(|root| root.strip_prefix("~/").map_or_else(|| PathBuf::from(root), |root| home.join(root))).collect()
    }

    pub fn agent_mode_max(&self) -> Mode {
        Mode::parse(self.layers.text("agents.mode_max")).unwrap_or(Mode::ReadOnly)
    }

    /// How runs of agents are confined.
    pub fn confine(&self) -> ConfineOptions {
        let list = |key: &str, by: char| -> Vec<String> {
            let parts = self.layers.text(key).split(by).map(str::trim);
            parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let config_file = self.file.as_ref().and_then(|file| std::path::absolute(file).ok());
        ConfineOptions {
            // `auto` is none of the levels.
            level: Confinement::parse(self.layers.text("agents.confine")),
            read: list("agents.read", ':'),
            allow: list("agents.allow", ','),
            config_file,
        }
    }

    /// How long git may take to make the result of a run.
    pub fn agent_bundle_timeout(&self) -> Duration {
        Duration::from_secs(self.layers.number("agents.bundle_timeout"))
    }

    /// Bytes of the largest result of a run.
    pub fn agent_bundle_max(&self) -> u64 {
        self.layers.number("agents.bundle_max").saturating_mul(1024 * 1024)
    }

    /// When runs keep the machine from sleeping.
    /// How long news stays unread before the session of a parent that has ended is resumed; `None`: none is.
    pub fn wake_after(&self) -> Option<Duration> {
        let is_wanted = self.layers.text("wait.wake") == "resume";
        is_wanted.then(|| Duration::from_secs(self.layers.number("wait.wake_after")))
    }

    pub fn keep_awake(&self) -> KeepAwake {
        match self.layers.text("agents.keep_awake") {
            "always" => KeepAwake::Always,
            "on_power" => KeepAwake::OnPower,
            _ => KeepAwake::Off,
        }
    }

    /// How long a run waits for its machine to come back.
    pub fn host_grace(&self) -> Duration {
        Duration::from_secs(self.layers.number("agents.host_grace"))
    }

    /// What all runs of one user may cost in a day.
    #[expect(clippy::cast_precision_loss, reason = "bounded by the kind of the setting")]
    pub fn day_limit(&self) -> Option<UsageLimit> {
        let of = |name: &str| Some(self.layers.number(name)).filter(|limit| *limit > 0);
        let cost_usd = of("agents.day_cost").map(|cost| cost as f64);
        Some(UsageLimit { tokens: of("agents.day_tokens"), cost_usd }).filter(UsageLimit::is_valid)
    }

    /// How long results of agents are kept.
    pub fn results_kept(&self) -> Duration {
        Duration::from_secs(self.layers.number("keep.results") * 86_400)
    }

    pub fn slots(&self) -> SlotLimits {
        let of = |slot: &str| u32::try_from(self.layers.number(slot)).unwrap_or(u32::MAX);
        SlotLimits {
            network_client: of("slots.network_client"),
            agent_cli: of("slots.agent_cli"),
            agent_chat: of("slots.agent_chat"),
            ..SlotLimits::for_cores(of("slots.cpu"))
        }
    }
}

/// The command that shows long texts.
pub fn pager() -> String {
    std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty()).unwrap_or_else(|| "less".to_owned())
}

/// Whose presence this process is. A secret: it is read where it is handed on and kept nowhere.
pub fn session_token() -> Option<String> {
    std::env::var("MATSU_SESSION_TOKEN").ok().filter(|token| !token.is_empty())
}

/// Models, and the servers whose tools they use.
impl Config {
    /// What a million tokens cost, by model or agent.
    pub fn prices(&self) -> BTreeMap<String, matsu_core::usage::Price> {
        self.layers.prices.clone()
    }

    /// Channels to people, by name.
    pub fn channels(&self) -> Result<Vec<matsu_adapters::notify::ChannelConfig>> {
        notify::all(&self.layers.notify, &self.paths.push_key(), &|name| std::env::var(name).ok())
    }

    /// Everybody who can be asked.
    pub fn providers(&self) -> Result<Vec<ProviderConfig>> {
        providers::all(&self.layers.providers, &|name| std::env::var(name).ok())
    }

    /// The provider that research asks for claims and stances.
    pub fn research_model(&self) -> &str {
        self.layers.text("research.model")
    }

    /// A file with other weights for the ranking of sentences.
    pub fn ranking_weights(&self) -> Option<&str> {
        self.unless("research.ranking_weights", "shipped")
    }

    /// What the answers to one line may spend; 0 in the settings: no bound.
    pub fn chat_spending_max(&self) -> SpendingMax {
        let bound = |name: &str| Some(self.layers.number(name)).filter(|max| *max > 0);
        SpendingMax { tokens: bound("chat.tokens_max"), micros: bound("chat.cost_max") }
    }

    /// How much one answer of a model may take.
    pub fn chat_limits(&self) -> LoopLimits {
        let seconds = |name: &str| Duration::from_secs(self.layers.number(name));
        LoopLimits {
            iterations_max: u32::try_from(self.layers.number("chat.turns_max")).unwrap_or(u32::MAX),
            time_max: seconds("chat.seconds_max"),
            tool_time_max: seconds("chat.tool_seconds_max"),
        }
    }

    /// Command lines of agents that answer in chats, by name.
    pub fn chat_agents(&self) -> Vec<String> {
        self.list("chat.agents", ',')
    }

    pub fn default_model(&self) -> Option<String> {
        Some(self.layers.text("chat.default_model")).filter(|name| *name != "none").map(str::to_owned)
    }

    /// The servers whose tools models may use. Without a file there are none.
    pub fn mcp_servers(&self) -> Result<McpConfig> {
        let environment =
            CHILD_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        let file = Path::new(self.layers.text("mcp.servers_file"));
        let servers = if file.exists() {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            McpConfig::parse(&text, &|name| std::env::var(name).ok())
                .map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?
        } else {
            Vec::new()
        };
        Ok(McpConfig { servers, environment: environment.collect() })
    }
}

/// A confined run may not read its user's configuration. Its relay needs none: all it uses is in its arguments.
fn is_kept_from_run(file: &Path) -> bool {
    let is_in_run = std::env::var_os(matsu_adapters::agents::MARKER).is_some();
    is_in_run && std::fs::File::open(file).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

fn password_in(address: &str) -> Option<&str> {
    let (login, _) = address.split_once("://")?.1.split('?').next()?.rsplit_once('@')?;
    login.split_once(':').map(|(_, password)| password)
}

/// `scheme://user:secret@host?password=secret` without the secrets; everything else as it is.
pub fn without_password(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let place = match place.rsplit_once('@').map(|(login, host)| (login.split_once(':'), host)) {
        Some((Some((user, _)), host)) => format!("{user}:…@{host}"),
        _ => place.to_owned(),
    };
    let hide = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if name.to_lowercase().contains("password") => format!("{name}=…"),
        _ => pair.to_owned(),
    };
    let query = query.map(|query| query.split('&').map(hide).collect::<Vec<_>>().join("&"));
    format!("{scheme}://{place}{}", query.map(|query| format!("?{query}")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_password_is_never_shown() {
        assert_eq!(without_password("postgres://u:p@ss@h/db"), "postgres://u:…@h/db");
        assert_eq!(without_password("postgres://u@h/db"), "postgres://u@h/db");
        assert_eq!(without_password("postgres://u@h/db?a=1&password=x"), "postgres://u@h/db?a=1&password=…");
        assert_eq!(without_password("sqlite:/a/b"), "sqlite:/a/b");
    }
}
