//! Settings of research.

use std::path::PathBuf;
use std::time::Duration;

use super::Config;

impl Config {
    pub fn research_folders(&self) -> Vec<PathBuf> {
        self.list("research.folders", ':').into_iter().map(PathBuf::from).collect()
    }

    /// The address of an engine on the network, by the name of its setting.
    pub fn engine_address(&self, setting: &str) -> Option<&str> {
        self.unless(setting, "off")
    }

    pub fn browser_debug(&self) -> Option<&str> {
        self.unless("research.browser_debug", "off")
    }

    pub fn contact(&self) -> Option<String> {
        self.unless("research.contact", "none").map(str::to_owned)
    }

    pub fn allowed_hosts(&self) -> Vec<String> {
        self.list("research.allow_hosts", ',')
    }

    pub fn primary_domains(&self) -> Vec<String> {
        self.list("research.primary_domains", ',')
    }

    pub fn fetch_step(&self) -> Duration {
        Duration::from_millis(self.layers.number("research.step_ms"))
    }

    pub fn fetch_daily_max(&self) -> Option<u32> {
        u32::try_from(self.layers.number("research.daily_max")).ok().filter(|most| *most > 0)
    }

    pub fn search_time_max(&self) -> Duration {
        Duration::from_secs(self.layers.number("research.search_time_max"))
    }

    pub fn auth_kept(&self) -> Duration {
        Duration::from_secs(self.layers.number("research.auth_kept"))
    }
}
