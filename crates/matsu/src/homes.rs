//! The folders in which AI clients keep their settings.

use std::path::PathBuf;

/// Where this user's programs and their files are.
#[derive(Clone, Debug)]
pub struct Homes {
    pub home: PathBuf,
    /// `$CLAUDE_CONFIG_DIR`, if set.
    pub claude: Option<PathBuf>,
    /// `$CODEX_HOME`, if set.
    pub codex: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME` or what stands for it.
    pub config: PathBuf,
    /// The folders of `$PATH`.
    pub path: Vec<PathBuf>,
}

impl Homes {
    pub fn claude_folder(&self) -> PathBuf {
        self.claude.clone().unwrap_or_else(|| self.home.join(".claude"))
    }

    pub fn codex_folder(&self) -> PathBuf {
        self.codex.clone().unwrap_or_else(|| self.home.join(".codex"))
    }

    pub fn has_command(&self, name: &str) -> bool {
        self.path.iter().any(|folder| folder.join(name).is_file())
    }
}
