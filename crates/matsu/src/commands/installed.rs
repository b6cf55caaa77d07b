//! How this program was installed, by the folder it is in, and so how it is upgraded and removed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::config::key::NONE;
use crate::connect::pieces::shell_word;

/// How it is installed for good by those who also run it once without installing it.
pub const NPM_INSTALL: &str = "npm install --global @matsu/cli";
pub const UV_INSTALL: &str = "uv tool install matsu-cli";
pub const PIPX_INSTALL: &str = "pipx install matsu-cli";

/// What Debian calls the processor that this program was built for.
const DEB_ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    Npm,
    Pip,
    /// `uv tool install`.
    Uv,
    Pipx,
    Deb,
    Homebrew,
    Cargo,
    /// By the installer, from the archive, or built here.
    ByHand,
}

impl Installed {
    pub fn here() -> Result<Self> {
        Ok(Self::at(&program()?))
    }

    fn at(program: &Path) -> Self {
        let has = |name: &str| program.components().any(|part| part.as_os_str() == name);
        let beside = |name: &str| program.parent().is_some_and(|folder| folder.join(name).exists());
        // Both write a file of their own into the environment, wherever it is.
        let above = |name: &str| program.ancestors().nth(2).is_some_and(|folder| folder.join(name).exists());
        if has("node_modules") {
            Self::Npm
        } else if has("Cellar") {
            Self::Homebrew
        } else if has(".cargo") {
            Self::Cargo
        } else if program.starts_with("/usr/bin") {
            Self::Deb
        } else if above("uv-receipt.toml") || (has("uv") && has("tools")) {
            Self::Uv
        } else if above("pipx_metadata.json") || (has("pipx") && has("venvs")) {
            Self::Pipx
        } else if beside("pip") || beside("python") {
            Self::Pip
        } else {
            Self::ByHand
        }
    }

    /// `repository` has the releases.
    pub fn upgrade(self, repository: &str) -> String {
        let command = match self {
            Self::Npm => "npm install --global @matsu/cli@latest",
            Self::Pip => "pip install --upgrade matsu-cli",
            Self::Uv => "uv tool upgrade matsu-cli",
            Self::Pipx => "pipx upgrade matsu-cli",
            Self::Homebrew => "brew upgrade matsu",
            Self::Cargo => "git pull, then cargo install --locked --path crates/matsu, in your clone of the repository",
            Self::Deb => {
                let file = format!("matsu_VERSION_{DEB_ARCHITECTURE}.deb");
                return format!("sudo dpkg -i {file}, after you have downloaded it from {}", releases(repository));
            }
            Self::ByHand => {
                let releases = releases(repository);
                return format!(
                    "the installer (install.sh) of {releases}; or, if you built it, git pull and build again"
                );
            }
        };
        command.to_owned()
    }

    pub fn remove(self) -> Result<String> {
        Ok(match self {
            Self::Npm => "npm uninstall --global @matsu/cli".to_owned(),
            Self::Pip => "pip uninstall matsu-cli".to_owned(),
            Self::Uv => "uv tool uninstall matsu-cli".to_owned(),
            Self::Pipx => "pipx uninstall matsu-cli".to_owned(),
            Self::Deb => "sudo dpkg -r matsu".to_owned(),
            Self::Homebrew => "brew uninstall matsu".to_owned(),
            Self::Cargo => "cargo uninstall matsu".to_owned(),
            Self::ByHand => format!("rm {}", shell_word(&program()?.display().to_string())),
        })
    }
}

/// This program on disk.
pub fn program() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find this program on disk")
}

/// A build that was made before the repository had an owner knows no address.
fn releases(repository: &str) -> String {
    match repository {
        NONE => "the newest release (upgrade.repository names no address)".to_owned(),
        known if known.contains("EXAMPLE-OWNER") => {
            "the newest release (this build knows no address; set upgrade.repository)".to_owned()
        }
        known => format!("{}/releases/latest", known.trim_end_matches('/')),
    }
}

/// The manual page that the shell installer has written, if it is there.
pub fn man_page(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))?;
    Some(data.join("man/man1/matsu.1")).filter(|page| page.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_the_program_says_how_it_was_installed() {
        let at = |path: &str| Installed::at(Path::new(path));
        assert_eq!(at("/home/a/lib/node_modules/@matsu/cli-linux-x64/bin/matsu"), Installed::Npm);
        assert_eq!(at("/opt/homebrew/Cellar/matsu/1.0.0/bin/matsu"), Installed::Homebrew);
        assert_eq!(at("/home/a/.cargo/bin/matsu"), Installed::Cargo);
        assert_eq!(at("/usr/bin/matsu"), Installed::Deb);
        assert_eq!(at("/home/a/.local/share/uv/tools/matsu-cli/bin/matsu"), Installed::Uv);
        assert_eq!(at("/home/a/.local/share/pipx/venvs/matsu-cli/bin/matsu"), Installed::Pipx);
        assert_eq!(at("/home/a/.local/bin/matsu"), Installed::ByHand);
        // Environments may be anywhere.
        for (mark, installed) in [
            ("uv-receipt.toml", Installed::Uv),
            ("pipx_metadata.json", Installed::Pipx),
            ("bin/python", Installed::Pip),
        ] {
            let environment = tempfile::tempdir().unwrap();
            std::fs::create_dir(environment.path().join("bin")).unwrap();
            std::fs::write(environment.path().join(mark), "").unwrap();
            // Both are made with a Python beside the program.
            std::fs::write(environment.path().join("bin/python"), "").unwrap();
            assert_eq!(Installed::at(&environment.path().join("bin/matsu")), installed, "{mark}");
        }
    }

    #[test]
    fn an_upgrade_by_hand_names_the_address_of_the_release() {
        for installed in [Installed::ByHand, Installed::Deb] {
            let said = installed.upgrade("https://example.org/a/matsu/");
            assert!(said.contains("https://example.org/a/matsu/releases/latest"), "{said}");
            for unknown in ["none", "https://github.com/EXAMPLE-OWNER/matsu"] {
                let said = installed.upgrade(unknown);
                assert!(said.contains("upgrade.repository") && !said.contains("EXAMPLE"), "{said}");
            }
        }
        let package = Installed::Deb.upgrade("https://example.org/a/matsu");
        let built_for = if std::env::consts::ARCH == "aarch64" { "_arm64.deb" } else { "_amd64.deb" };
        assert!(package.contains(built_for), "{package}");
    }

    #[test]
    fn the_names_are_those_that_are_published() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../release.json");
        let release: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let name = |key: &str| release[key].as_str().unwrap().to_owned();
        let (npm, pypi, deb) = (name("npm"), name("pypi"), name("deb"));
        assert_eq!(NPM_INSTALL, format!("npm install --global {npm}"));
        assert_eq!(UV_INSTALL, format!("uv tool install {pypi}"));
        assert_eq!(PIPX_INSTALL, format!("pipx install {pypi}"));
        assert_eq!(Installed::Npm.upgrade("none"), format!("npm install --global {npm}@latest"));
        assert_eq!(Installed::Npm.remove().unwrap(), format!("npm uninstall --global {npm}"));
        assert_eq!(Installed::Pip.upgrade("none"), format!("pip install --upgrade {pypi}"));
        assert_eq!(Installed::Pip.remove().unwrap(), format!("pip uninstall {pypi}"));
        assert_eq!(Installed::Uv.upgrade("none"), format!("uv tool upgrade {pypi}"));
        assert_eq!(Installed::Uv.remove().unwrap(), format!("uv tool uninstall {pypi}"));
        assert_eq!(Installed::Pipx.upgrade("none"), format!("pipx upgrade {pypi}"));
        assert_eq!(Installed::Pipx.remove().unwrap(), format!("pipx uninstall {pypi}"));
        assert!(Installed::Deb.upgrade("none").starts_with(&format!("sudo dpkg -i {deb}_VERSION_")));
        assert_eq!(Installed::Deb.remove().unwrap(), format!("sudo dpkg -r {deb}"));
        // On crates.io no name is ours.
        assert!(Installed::Cargo.upgrade("none").contains("--path crates/matsu"));
    }
}
