//! The measuring data for pages and stances, which are not part of the repository, and the Python that scores them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Where the data are: `MATSU_BENCH_DATA`, else `shared/data` beside the project.
pub struct Data(PathBuf);

impl Data {
    pub fn find() -> Option<Self> {
        let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
        let folder = std::env::var_os("MATSU_BENCH_DATA").map_or_else(beside, PathBuf::from);
        folder.join("score_extraction.py").exists().then_some(Self(folder))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs a scorer that writes its figures as JSON.
    pub fn score(&self, script: &str, arguments: &[&Path], more: &[&str], out: &Path) -> Result<Value> {
        let mut command = Command::new("python3");
        command.arg(self.path(script)).args(arguments).args(more).arg("--json").arg(out);
        let ran = command.output().context("python3 does not start")?;
        ensure!(ran.status.success(), "{script}: {}", String::from_utf8_lossy(&ran.stderr));
        Ok(serde_json::from_slice(&std::fs::read(out)?)?)
    }
}

/// A Python of its own with these packages, made once.
pub fn python_with(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    let done = folder.join("ready");
    if !done.exists() {
        let made =
            Command::new("python3").args(["-m", "venv"]).arg(folder).status().context("python3 does not start")?;
        ensure!(made.success(), "no Python environment");
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let installed = Command::new(&python).args(install).args(packages).status()?;
        ensure!(installed.success(), "{} cannot be installed", packages.join(", "));
        std::fs::write(done, "")?;
    }
    Ok(python)
}
