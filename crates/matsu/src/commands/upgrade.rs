//! `matsu upgrade`: which version this is, which one the daemon runs, how to get a newer one; with `--check`, whether
//! there is one. It changes nothing.

use std::cmp::Ordering;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use matsu_adapters::releases;
use serde_json::json;

use super::installed::Installed;
use super::{Context, print_json};
use crate::daemon::announce;
use crate::versions::compare;

#[derive(Args)]
pub struct Upgrade {
    /// Ask the release page whether there is a newer version
    #[arg(long)]
    pub check: bool,
}

const HERE: &str = env!("CARGO_PKG_VERSION");

pub async fn run(cx: &Context, args: &Upgrade) -> Result<ExitCode> {
    let upgrade = Installed::here()?.upgrade(cx.config.repository());
    let daemon = announce::read_server_json(&cx.config.paths).map(|server| server.version);
    let newest = if args.check { Some(releases::newest(cx.config.repository()).await) } else { None };
    let (newest, error) = match newest {
        Some(Ok(version)) => (Some(version), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    if cx.json {
        print_json(&json!({
            "version": HERE, "daemon": daemon, "newest": newest, "error": error, "upgrade": upgrade,
        }));
        return Ok(if error.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    say!("This program: {HERE}");
    if let Some(daemon) = daemon {
        say!("Running daemon: {daemon}");
        if daemon != HERE {
            say!("Restart it to use this program: matsu shutdown, then matsu serve. This does not end runs of agents.");
        }
    }
    match (newest, error) {
        (Some(newest), _) => match compare(HERE, &newest) {
            Ordering::Less => say!("Newest release: {newest}. Upgrade with: {upgrade}"),
            Ordering::Equal => say!("This is the newest release."),
            Ordering::Greater => say!("Newest release: {newest}. This program is newer; there is nothing to do."),
        },
        (None, Some(error)) => {
            say!("The newest release is unknown: {error}");
            return Ok(ExitCode::FAILURE);
        }
        (None, None) => say!("Upgrade with: {upgrade}"),
    }
    Ok(ExitCode::SUCCESS)
}
