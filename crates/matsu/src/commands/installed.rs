//! How this program was installed, by the folder it is in, and so how it is upgraded and removed.

use std::path::Path;

use anyhow::{Context as _, Result};

/// How it is installed for good by those who also run it once without installing it.
pub const NPM_INSTALL: &str = "npm install --global @matsu/cli";
pub const UV_INSTALL: &str = "uv tool install matsu-cli";
pub const PIPX_INSTALL: &str = "pipx install matsu-cli";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    Npm,
    Pip,
    Deb,
    Homebrew,
    Cargo,
    /// By the installer, from the archive, or built here.
    ByHand,
}

impl Installed {
    pub fn here() -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program on disk")?;
        Ok(Self::at(&program))
    }

    fn at(program: &Path) -> Self {
        let has = |name: &str| program.components().any(|part| part.as_os_str() == name);
        let beside = |name: &str| program.parent().is_some_and(|folder| folder.join(name).exists());
        if has("node_modules") {
            Self::Npm
        } else if has("Cellar") {
            Self::Homebrew
        } else if has(".cargo") {
            Self::Cargo
        } else if program.starts_with("/usr/bin") {
            Self::Deb
        } else if beside("pip") || beside("python") || has("uv") {
            Self::Pip
        } else {
            Self::ByHand
        }
    }

    pub fn upgrade(self) -> &'static str {
        match self {
            Self::Npm => "npm install --global @matsu/cli@latest",
            Self::Pip => "pip install --upgrade matsu-cli",
            Self::Deb => "sudo dpkg -i matsu_VERSION_amd64.deb (the package is with the release)",
            Self::Homebrew => "brew upgrade matsu",
            Self::Cargo => "git pull, then cargo install --locked --path crates/matsu, in your clone of the repository",
            Self::ByHand => "run the installer of the release again, or `git pull` and build again",
        }
    }

    pub fn remove(self) -> &'static str {
        match self {
            Self::Npm => "npm uninstall --global @matsu/cli",
            Self::Pip => "pip uninstall matsu-cli",
            Self::Deb => "sudo dpkg -r matsu",
            Self::Homebrew => "brew uninstall matsu",
            Self::Cargo => "cargo uninstall matsu",
            Self::ByHand => "rm the file that `command -v matsu` prints",
        }
    }
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
        assert_eq!(at("/home/a/.local/share/uv/tools/matsu-cli/bin/matsu"), Installed::Pip);
        assert_eq!(at("/home/a/.local/bin/matsu"), Installed::ByHand);
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
        assert_eq!(Installed::Npm.upgrade(), format!("npm install --global {npm}@latest"));
        assert_eq!(Installed::Npm.remove(), format!("npm uninstall --global {npm}"));
        assert_eq!(Installed::Pip.upgrade(), format!("pip install --upgrade {pypi}"));
        assert_eq!(Installed::Pip.remove(), format!("pip uninstall {pypi}"));
        assert!(Installed::Deb.upgrade().starts_with(&format!("sudo dpkg -i {deb}_VERSION_")));
        assert_eq!(Installed::Deb.remove(), format!("sudo dpkg -r {deb}"));
        // On crates.io no name is ours.
        assert!(Installed::Cargo.upgrade().contains("--path crates/matsu"));
    }
}
