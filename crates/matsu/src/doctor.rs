//! Looks at everything that can be wrong, and says what to do about it: for `matsu doctor` and for the page.

mod models;
mod notify;
mod program;
mod research;
mod starts;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use matsu_adapters::agents::git_version;
use matsu_core::clock::Clock;
use matsu_core::confinement::{Confinement, show_confinement};
use matsu_core::ports::agent::{MachineConfinement, ProbeDepth};
use matsu_core::run::Mode;
use serde_json::{Value, json};

use crate::client::Client;
use crate::compose;
use crate::config::Config;
use crate::daemon::{announce, socket};
use crate::service;

const MIB: u64 = 1024 * 1024;

/// With less than this the store's log cannot grow.
const DISK_BAD: u64 = 64 * MIB;

/// One run that prints much takes this.
const DISK_LOW: u64 = 1024 * MIB;

/// What one look found.
pub struct Finding {
    what: &'static str,
    state: State,
    detail: String,
    advice: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Good,
    Note,
    Bad,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Bad => "problem",
        }
    }
}

fn good(what: &'static str, detail: impl Into<String>) -> Finding {
    Finding { what, state: State::Good, detail: detail.into(), advice: None }
}

fn bad(what: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { what, state: State::Bad, detail: detail.into(), advice: Some(advice.into()) }
}

fn note(what: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { what, state: State::Note, detail: detail.into(), advice: Some(advice.into()) }
}

/// Everything that was looked at.
pub struct Findings(Vec<Finding>);

impl Findings {
    pub fn is_broken(&self) -> bool {
        self.0.iter().any(|finding| finding.state == State::Bad)
    }

    pub fn json(&self) -> Value {
        let items = self.0.iter().map(|finding| {
            json!({
                "what": finding.what,
                "state": finding.state.word(),
                "detail": finding.detail,
                "advice": finding.advice,
            })
        });
        json!({ "ok": !self.is_broken(), "findings": items.collect::<Vec<_>>() })
    }

    /// As lines for a terminal.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for finding in &self.0 {
            lines.push(format!("{:8} {:8} {}", finding.state.word(), finding.what, finding.detail));
            lines.extend(finding.advice.iter().map(|advice| format!("{:17} → {advice}", "")));
        }
        lines
    }
}

/// `depth`: how far agents' programs are asked about themselves.
pub async fn look(config: &Config, depth: ProbeDepth) -> Findings {
    let (store, daemon, port, agents, git, models, servers, engines, research_model) = tokio::join!(
        store(config),
        daemon(config),
        port(config),
        agents(config, depth),
        git(config),
        models::providers(config),
        models::servers(config),
        research::engines(config),
        research::model(config, depth),
    );
    let (folders, browser) = (research::folders(config), research::browser(config));
    let (runs, secrets, disk) = (runs(config), secrets(config), disk(&config.paths.data_dir));
    let service = starts_by_itself(config);
    let mut findings = vec![
        store,
        disk,
        daemon,
        service,
        program::on_path(config),
        port,
        agents,
        git,
        runs,
        secrets,
        clock(),
        https(),
        models,
        servers,
        engines,
        folders,
        browser,
        research_model,
    ];
    findings.extend(applies(config));
    findings.extend(notify::channels(config).await);
    findings.extend(starts::failed(config).await);
    Findings(findings)
}

/// Debian 12 and Ubuntu 22.04 have a version that is too old.
async fn git(config: &Config) -> Finding {
    match git_version(&config.environment).await {
        Ok(version) => good("git", version),
        Err(error) => note("git", error, "only runs of agents that change files in a repository need it"),
    }
}

async fn store(config: &Config) -> Finding {
    let check = async { anyhow::Ok(compose::open_store(config).await?.store.check().await?) };
    match Clock::system().within(Duration::from_secs(10), check).await {
        Some(Ok(info)) => good(
            "store",
            format!("{} at {}, schema {}, {} tasks", info.backend, info.location, info.schema_version, info.tasks),
        ),
        Some(Err(error)) => bad("store", format!("{error:#}"), "check --store, the free space and the permissions"),
        None => bad("store", "does not answer within 10 s", "is the database server running?"),
    }
}

/// Free space for the store, for what runs print and for their folders.
fn disk(data_dir: &Path) -> Finding {
    match rustix::fs::statvfs(data_dir) {
        Ok(disk) => free_space(disk.f_bavail.saturating_mul(disk.f_frsize), data_dir),
        Err(error) => note("disk", format!("free space could not be read: {error}"), "start `matsu serve` once"),
    }
}

fn free_space(free: u64, data_dir: &Path) -> Finding {
    let detail = format!("{} MiB are free for {}", free / MIB, data_dir.display());
    if free < DISK_BAD {
        return bad("disk", detail, "free some space: nothing can be stored, so runs and calls will fail");
    }
    if free < DISK_LOW {
        return note("disk", detail, "free some space before long runs; `matsu gc` removes what is no longer needed");
    }
    good("disk", detail)
}

async fn daemon(config: &Config) -> Finding {
    match Client::connect(config).await {
        Ok(client) if client.has_daemon() => match client.get("/control/info").await {
            Ok(info) => {
                good("daemon", format!("pid {}, version {}", info["pid"], info["version"].as_str().unwrap_or("?")))
            }
            Err(error) => bad("daemon", format!("{error:#}"), "end it and start `matsu serve` again"),
        },
        Ok(_) => note("daemon", "none is running", "start one with `matsu serve`"),
        Err(error) => bad(
            "daemon",
            format!("{error:#}"),
            "end its process if it hangs, then start `matsu serve`; see also the store above",
        ),
    }
}

/// Whether the daemon starts with the machine.
fn starts_by_itself(config: &Config) -> Finding {
    match (service::file(config), service::can_install(config)) {
        (Ok(file), _) if file.exists() => good("service", format!("starts with the machine: {}", file.display())),
        (_, Ok(true)) => note(
            "service",
            "the daemon does not start with the machine; until it is started, interrupted runs wait",
            "`matsu service install`",
        ),
        _ => good(
            "service",
            "this user has no service manager here; interrupted runs continue when the daemon is started again",
        ),
    }
}

async fn port(config: &Config) -> Finding {
    if !config.serves_http() {
        return good("http", "off");
    }
    if let Some(address) = announce::read_server_json(&config.paths).and_then(|server| server.address)
        && let Some(place) = address.strip_prefix("http://")
        && tokio::net::TcpStream::connect(place).await.is_ok()
    {
        return good("http", address);
    }
    let (listen, port) = (config.listen(), config.port());
    match socket::bind_tcp(config) {
        Ok(bound) => match bound.local_addr() {
            Ok(address) if port != 0 && address.port() != port => {
                note("http", format!("port {port} is taken"), format!("`matsu serve` would use {}", address.port()))
            }
            _ => good("http", format!("port {port} on {listen} is free")),
        },
        Err(error) => bad("http", format!("{error:#}"), "choose another with server.port or --port"),
    }
}

/// Which agents could be given work. The programs are asked here, not in the daemon: it may have another PATH.
async fn agents(config: &Config, depth: ProbeDepth) -> Finding {
    let host = compose::agents(config);
    if let Some(broken) = host.broken().first() {
        let what = format!("{}: {}", broken.file, broken.error);
        return bad("agents", what, "correct the file; the other agents work without it");
    }
    let agents = host.agents();
    let probes = agents.iter().map(|agent| host.probe(&agent.name, depth));
    let probes = futures_util::future::join_all(probes).await;
    let installed = agents.iter().zip(probes).filter(|(_, probe)| probe.installed);
    let words: Vec<String> = installed
        .map(|(agent, probe)| {
            let version = probe.version.map(|version| format!(" {version}")).unwrap_or_default();
            let login = if probe.authenticated == Some(false) { " (not logged in)" } else { "" };
            format!("{}{version}{login}", agent.name)
        })
        .collect();
    if words.is_empty() {
        return note("agents", "none is installed", "install one of the programs that `matsu agents` lists");
    }
    good("agents", words.join(", "))
}

/// How runs are confined, in the words of `matsu agents` and of the reply to a start.
fn runs(config: &Config) -> Finding {
    let MachineConfinement { level, not_covered, weaker_because } = compose::agents(config).confinement();
    let level = match level {
        Ok(level) => level,
        Err(why) => return bad("runs", "no run can be started", why),
    };
    let mut detail = show_confinement(level.as_str(), &not_covered);
    if config.agent_mode_max() == Mode::Full && level != Confinement::Open {
        detail.push_str("; runs in the mode full are open (agents.mode_max)");
    }
    match (level, weaker_because) {
        (Confinement::Open, _) => note("runs", detail, "set agents.confine to \"auto\" to confine them"),
        (_, Some(why)) => note("runs", detail, why),
        (_, None) => good("runs", detail),
    }
}

/// Only if there is one that has not ended.
fn applies(config: &Config) -> Option<Finding> {
    let unfinished = compose::agents(config).unfinished_applies();
    let next = "wait; if this continues, start `matsu serve` and read its log";
    (!unfinished.is_empty()).then(|| note("applies", unfinished.join("; "), next))
}

/// What others must not read.
fn secrets(config: &Config) -> Finding {
    let open = |path: &Path| std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
    let token = config.paths.token();
    if open(&token) {
        return bad(
            "secrets",
            format!("other users can read {}", token.display()),
            format!("chmod 600 {}", token.display()),
        );
    }
    if open(&config.paths.data_dir) {
        let folder = config.paths.data_dir.display();
        return note("secrets", format!("other users can look into {folder}"), format!("chmod 700 {folder}"));
    }
    good("secrets", "only you can read the data directory and the token")
}

fn https() -> Finding {
    if matsu_adapters::http::has_certificates() {
        return good("https", "certificates of authorities were found");
    }
    let missing = "no certificates of authorities were found, so every HTTPS request fails";
    note("https", missing, "install them (Debian: ca-certificates), or set SSL_CERT_FILE; then start the daemon again")
}

fn clock() -> Finding {
    let now = Clock::system().now();
    // Written in 2026: an earlier clock cannot be right.
    if now.as_millis() < 1_767_225_600_000 {
        return note(
            "clock",
            format!("the clock of this machine shows {now}"),
            "set the clock; otherwise shown times are wrong",
        );
    }
    good("clock", now.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_problem_and_a_nearly_full_one_is_noted() {
        let state = |free| free_space(free, Path::new("/data")).state;
        assert!(state(0) == State::Bad && state(63 * MIB) == State::Bad);
        assert!(state(64 * MIB) == State::Note && state(1023 * MIB) == State::Note);
        assert!(state(2048 * MIB) == State::Good);
    }
}
