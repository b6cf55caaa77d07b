//! `matsu shutdown`: ends the daemon. Runs of agents go on without it, or end with `--runs`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use matsu_core::clock::Clock;
use serde_json::{Value, json};

use super::{Context, print_json};
use crate::client::Client;
use crate::daemon::lock::ServeLock;
use crate::private_files;

#[derive(Args)]
pub struct Shutdown {
    /// End the runs of agents on this machine too; their tasks are cancelled
    #[arg(long)]
    pub runs: bool,
}

/// A daemon ends within this time. What it still runs has 30 seconds for that.
const END_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub async fn run(cx: &Context, args: &Shutdown) -> Result<ExitCode> {
    let said = end(cx, args.runs).await?;
    if cx.json {
        print_json(&said);
    } else {
        show(&said);
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends the daemon, and with `runs` the runs of agents on this machine.
pub async fn end(cx: &Context, runs: bool) -> Result<Value> {
    let paths = &cx.config.paths;
    if !paths.data_dir.exists() {
        return Ok(json!({ "daemon": false, "runs_ended": 0, "runs_left": 0, "runs_over": 0, "runs_waiting": 0 }));
    }
    // Before anything ends: a supervisor that is left alone starts no daemon while this file is there.
    private_files::write_private(&paths.stopped(), "")?;
    let mut client = Client::connect(&cx.config).await?;
    let has_daemon = client.has_daemon();
    if !has_daemon && runs {
        // Without a daemon this command takes the runs over itself, to end them.
        drop(client);
        client = Client::to_stop(&cx.config).await?;
    }
    let mut said = client.post("/control/shutdown", json!({ "runs": runs })).await?;
    said["daemon"] = json!(has_daemon);
    if has_daemon {
        ended(cx).await?;
        private_files::write_private(&paths.stopped(), "")?;
    }
    Ok(said)
}

/// Waits until the daemon has closed its store.
async fn ended(cx: &Context) -> Result<()> {
    let (clock, lock) = (Clock::system(), cx.config.paths.serve_lock(cx.config.store_url()));
    let deadline = clock.instant() + END_MAX;
    while ServeLock::try_take(&lock)?.is_none() {
        if clock.instant() > deadline {
            bail!("the daemon was asked to end and still runs after {} s; see its log", END_MAX.as_secs());
        }
        clock.sleep(LOOK_EVERY).await;
    }
    Ok(())
}

pub fn show(said: &Value) {
    say!("{}", if said["daemon"] == true { "The daemon has ended." } else { "No daemon was running." });
    let count = |name: &str| said[name].as_u64().unwrap_or(0);
    match count("runs_ended") {
        0 => {}
        runs => say!("Runs ended: {runs}. Their tasks are cancelled."),
    }
    match count("runs_left") {
        0 => {}
        runs => say!(
            "Runs that continue without a daemon: {runs}. The next `matsu serve` takes them over; \
             `matsu shutdown --runs` ends them."
        ),
    }
    match count("runs_over") {
        0 => {}
        runs => say!(
            "Runs that have ended and whose results are not stored yet: {runs}. The next `matsu serve` stores them."
        ),
    }
    match count("runs_waiting") {
        0 => {}
        runs => {
            say!("Runs that wait for their next step, such as a check: {runs}. The next `matsu serve` continues them.")
        }
    }
}
