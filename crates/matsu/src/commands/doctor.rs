//! `matsu doctor`: looks at everything that can be wrong, and says what to do about it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use matsu_core::clock::Clock;
use serde_json::json;

use super::{Context, field, print_json};
use crate::client::Client;
use crate::compose;
use crate::daemon::{announce, socket};

/// What one look found.
struct Finding {
    what: &'static str,
    state: State,
    detail: String,
    advice: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
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

pub async fn run(cx: &Context) -> Result<ExitCode> {
    let findings = vec![store(cx).await, daemon(cx).await, port(cx).await, secrets(cx), clock()];
    let broken = findings.iter().any(|finding| finding.state == State::Bad);
    if cx.json {
        let items = findings.iter().map(|finding| {
            json!({
                "what": finding.what,
                "state": finding.state.word(),
                "detail": finding.detail,
                "advice": finding.advice,
            })
        });
        print_json(&json!({ "ok": !broken, "findings": items.collect::<Vec<_>>() }));
    } else {
        for finding in &findings {
            say!("{:8} {:8} {}", finding.state.word(), finding.what, finding.detail);
            if let Some(advice) = &finding.advice {
                say!("{:17} → {advice}", "");
            }
        }
    }
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn store(cx: &Context) -> Finding {
    let check = async { anyhow::Ok(compose::open_store(&cx.config).await?.store.check().await?) };
    match Clock::system().within(Duration::from_secs(10), check).await {
        Some(Ok(info)) => good(
            "store",
            format!("{} at {}, schema {}, {} tasks", info.backend, info.location, info.schema_version, info.tasks),
        ),
        Some(Err(error)) => bad("store", format!("{error:#}"), "check --store, free space and permissions"),
        None => bad("store", "does not answer within 10 s", "is the database server running?"),
    }
}

async fn daemon(cx: &Context) -> Finding {
    match Client::connect(&cx.config).await {
        Ok(client) if client.has_daemon() => match client.get("/control/info").await {
            Ok(info) => good("daemon", format!("pid {}, version {}", field(&info, "pid"), field(&info, "version"))),
            Err(error) => bad("daemon", format!("{error:#}"), "end it and start `matsu serve` again"),
        },
        Ok(_) => note("daemon", "none is running", "start one with `matsu serve`"),
        Err(error) => bad("daemon", format!("{error:#}"), "see the store above"),
    }
}

async fn port(cx: &Context) -> Finding {
    if !cx.config.serves_http() {
        return good("http", "off");
    }
    if let Some(address) = announce::read_server_json(&cx.config.paths).and_then(|server| server.address)
        && let Some(place) = address.strip_prefix("http://")
        && tokio::net::TcpStream::connect(place).await.is_ok()
    {
        return good("http", address);
    }
    let (listen, port) = (cx.config.listen(), cx.config.port());
    match socket::bind_tcp(listen, port).await {
        Ok(bound) => match bound.local_addr() {
            Ok(address) if port != 0 && address.port() != port => {
                note("http", format!("port {port} is taken"), format!("`matsu serve` would use {}", address.port()))
            }
            _ => good("http", format!("port {port} on {listen} is free")),
        },
        Err(error) => bad("http", format!("{error:#}"), "choose another with server.port or --port"),
    }
}

/// What others must not read.
fn secrets(cx: &Context) -> Finding {
    let open = |path: &Path| std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
    let token = cx.config.paths.token();
    if open(&token) {
        return bad(
            "secrets",
            format!("others can read {}", token.display()),
            format!("chmod 600 {}", token.display()),
        );
    }
    if open(&cx.config.paths.data_dir) {
        let folder = cx.config.paths.data_dir.display();
        return note("secrets", format!("others can look into {folder}"), format!("chmod 700 {folder}"));
    }
    good("secrets", "only you can read the data directory and the token")
}

fn clock() -> Finding {
    let now = Clock::system().now();
    // Written in 2026: an earlier clock cannot be right.
    if now.as_millis() < 1_767_225_600_000 {
        return note("clock", format!("it is {now} by this clock"), "set the clock; times shown will be wrong");
    }
    good("clock", now.to_string())
}
