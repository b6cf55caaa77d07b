//! The service of this user that starts the daemon with the machine: where its file is, and whether there could be one.

pub mod unit;

use std::path::PathBuf;

use anyhow::Result;

use self::unit::Kind;
use crate::config::Config;
use crate::process;

pub const KIND: Kind = if cfg!(target_os = "macos") { Kind::Launchd } else { Kind::Systemd };

/// The file that the service manager reads.
pub fn file(config: &Config) -> Result<PathBuf> {
    let homes = config.homes()?;
    Ok(KIND.file(&homes.home, &homes.config))
}

/// Whether there is a service manager of the user, and no service of ours yet.
pub fn can_install(config: &Config) -> Result<bool> {
    let answers = match KIND {
        Kind::Systemd => process::answer(&["systemctl", "--user", "show-environment"]),
        Kind::Launchd => process::answer(&["launchctl", "version"]),
    };
    Ok(!file(config)?.exists() && answers.is_some_and(|(succeeded, _)| succeeded))
}
