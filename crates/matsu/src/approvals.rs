//! Permanent approvals, in a file of the data directory: for each project the tools that run without a question. The file
//! is written whole and swapped in, and only its owner can read it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use matsu_runtime::models::chat::StandingApprovals;

use crate::paths::Paths;
use crate::private_files::make_private_folder;

type ByProject = BTreeMap<String, BTreeSet<String>>;

/// The project of chats that belong to no directory.
pub const PAGE: &str = "page";

pub struct FileApprovals {
    file: PathBuf,
    pub project: String,
}

impl FileApprovals {
    pub fn of(paths: &Paths, project: impl Into<String>) -> Self {
        Self { file: paths.data_dir.join("approvals.json"), project: project.into() }
    }

    /// Of the project that a directory belongs to: the repository around it, else the directory itself.
    pub fn of_directory(paths: &Paths, directory: &Path) -> Self {
        let root = directory.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(directory);
        Self::of(paths, root.display().to_string())
    }

    fn read(&self) -> Result<ByProject> {
        match std::fs::read(&self.file) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).with_context(|| format!("{} cannot be read", self.file.display()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(ByProject::new()),
            Err(error) => Err(error).with_context(|| format!("cannot open {}", self.file.display())),
        }
    }

    fn write(&self, all: &ByProject) -> Result<()> {
        if let Some(folder) = self.file.parent() {
            make_private_folder(folder)?;
        }
        let next = self.file.with_extension("new");
        let _ = std::fs::remove_file(&next);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
        file.write_all(&serde_json::to_vec_pretty(all)?)?;
        file.sync_all()?;
        std::fs::rename(&next, &self.file).with_context(|| format!("cannot write {}", self.file.display()))
    }
}

impl StandingApprovals for FileApprovals {
    /// A file that cannot be read allows nothing.
    fn allows(&self, tool: &str) -> bool {
        match self.read() {
            Ok(all) => all.get(&self.project).is_some_and(|tools| tools.contains(tool)),
            Err(error) => {
                tracing::warn!(error = %format!("{error:#}"), "stored approvals cannot be read, so each tool call is asked about");
                false
            }
        }
    }

    fn remember(&self, tool: &str, allow: bool) -> Result<(), String> {
        let change = || {
            let mut all = self.read()?;
            let tools = all.entry(self.project.clone()).or_default();
            if allow {
                tools.insert(tool.to_owned());
            } else {
                tools.remove(tool);
            }
            self.write(&all)
        };
        change().map_err(|error| format!("{error:#}"))
    }

    fn all(&self) -> Vec<String> {
        self.read().ok().and_then(|mut all| all.remove(&self.project)).unwrap_or_default().into_iter().collect()
    }
}
