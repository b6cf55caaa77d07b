//! What is written into the files of clients and services, which start this program without the environment and the
//! flags of the process that writes them.

use std::path::Path;

use anyhow::{Result, ensure};

use super::layers::Source;
use super::{Config, without_password};

impl Config {
    /// The data directory, if a program that is started without this environment and these flags would use another.
    pub fn unusual_data_dir(&self) -> Option<&Path> {
        let usual = self.environment.get("HOME").map(|home| Path::new(home).join(".local/share/matsu"));
        Some(self.paths.data_dir.as_path()).filter(|folder| usual.as_deref() != Some(folder))
    }

    /// The store, if a flag or the environment names it: it is written into `file`, whose program is started without
    /// them.
    ///
    /// # Errors
    /// It is a PostgreSQL server, whose address has a password.
    pub fn store_to_write(&self, file: &str) -> Result<Option<&str>> {
        let source = self.layers.source("store.url");
        let name = match source {
            Source::Default | Source::File(_) => return Ok(None),
            Source::Flag => "--store",
            Source::Environment(variable) => variable.as_str(),
        };
        let url = self.store_url();
        ensure!(
            !url.starts_with("postgres"),
            "{name} {}: {file} must not contain a password; set store.url in the configuration file instead",
            without_password(url)
        );
        Ok(Some(url))
    }
}
