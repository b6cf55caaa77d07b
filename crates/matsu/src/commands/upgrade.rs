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

#[derive(Args)]
pub struct Upgrade {
    /// Ask the release page whether there is a newer version
    #[arg(long)]
    pub check: bool,
}

const HERE: &str = env!("CARGO_PKG_VERSION");

pub async fn run(cx: &Context, args: &Upgrade) -> Result<ExitCode> {
    let installed = Installed::here()?;
    let daemon = announce::read_server_json(&cx.config.paths).map(|server| server.version);
    let newest = if args.check { Some(releases::newest(cx.config.repository()).await) } else { None };
    let (newest, error) = match newest {
        Some(Ok(version)) => (Some(version), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    if cx.json {
        print_json(&json!({
            "version": HERE, "daemon": daemon, "newest": newest, "error": error, "upgrade": installed.upgrade(),
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
            Ordering::Less => say!("Newest release: {newest}. Upgrade with: {}", installed.upgrade()),
            Ordering::Equal => say!("This is the newest release."),
            Ordering::Greater => say!("Newest release: {newest}. This program is newer; there is nothing to do."),
        },
        (None, Some(error)) => {
            say!("The newest release is unknown: {error}");
            return Ok(ExitCode::FAILURE);
        }
        (None, None) => say!("Upgrade with: {}", installed.upgrade()),
    }
    Ok(ExitCode::SUCCESS)
}

/// By number, and by letter what is no number. What comes before a release (1.2.0-rc.1) is older than it.
fn compare(one: &str, other: &str) -> Ordering {
    /// A number sorts before a word.
    type VersionPart<'a> = (bool, u64, &'a str);
    fn parts(text: &str) -> Vec<VersionPart<'_>> {
        text.split('.').map(|part| part.parse().map_or((true, 0, part), |number| (false, number, ""))).collect()
    }
    fn key(version: &str) -> (Vec<VersionPart<'_>>, bool, Vec<VersionPart<'_>>) {
        // What follows + is about the build.
        let version = version.split('+').next().unwrap_or(version);
        let (release, before) = version.split_once('-').unwrap_or((version, ""));
        (parts(release), before.is_empty(), parts(before))
    }
    key(one).cmp(&key(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let rising = ["0.1.0", "0.2.0-rc.2", "0.2.0-rc.10", "0.2.0", "0.10.0", "1.0.0"];
        for (at, one) in rising.iter().enumerate() {
            for (other_at, other) in rising.iter().enumerate() {
                assert_eq!(compare(one, other), at.cmp(&other_at), "{one} {other}");
            }
        }
        assert_eq!(compare("1.0.0+a", "1.0.0+b"), Ordering::Equal);
    }
}
