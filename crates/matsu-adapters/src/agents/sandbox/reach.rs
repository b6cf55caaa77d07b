//! What one run can reach, in one place: from this a sealed run gets its view and a fenced run its rules.

use std::path::{Path, PathBuf};

use super::fence::Fence;
use super::program;
use super::state::State;
use super::view::{Entry, Network, View};

/// Below a home folder: what holds logins of other programs. It does not exist for a sealed run, even if its working
/// directory contains it.
const CREDENTIALS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".password-store",
    ".mozilla",
    ".thunderbird",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/google-chrome",
    ".config/chromium",
    ".config/op",
    ".local/share/keyrings",
    ".bash_history",
    ".zsh_history",
    ".python_history",
];

/// Below a home folder: settings of git, without its logins.
const GIT_SETTINGS: &[&str] = &[".gitconfig", ".config/git/config", ".config/git/ignore"];

/// Below a home folder: toolchains that projects are built with. The default of `agents.read`.
pub const TOOLCHAINS: &[&str] = &[
    "~/.cargo/bin",
    "~/.cargo/registry",
    "~/.cargo/git",
    "~/.cargo/env",
    "~/.cargo/config.toml",
    "~/.rustup",
    "~/.nvm",
    "~/.volta",
    "~/.fnm",
    "~/.bun/bin",
    "~/.deno/bin",
    "~/.pyenv",
    "~/.rbenv",
    "~/.asdf",
    "~/.sdkman",
    "~/.local/bin",
    "~/.local/share/uv",
    "~/.local/share/mise",
    "~/.local/share/pnpm",
    "~/go",
];

/// The machine that runs are started on.
#[derive(Clone, Debug)]
pub struct Machine {
    pub home: PathBuf,
    pub data_dir: PathBuf,
    /// Where the configuration lies, with its keys.
    pub config_dir: Option<PathBuf>,
    /// This program.
    pub matsu: PathBuf,
    /// Folders and files that every run may read (`agents.read`).
    pub read: Vec<PathBuf>,
    /// Sockets that the user opened by name (`agents.allow`).
    pub sockets: Vec<PathBuf>,
    /// PATH, for interpreters.
    pub path: String,
}

/// One run on it.
#[derive(Clone, Debug)]
pub struct Reach<'a> {
    pub machine: &'a Machine,
    pub program: &'a Path,
    pub directory: &'a Path,
    /// The run may write in its directory.
    pub writes: bool,
    /// Folders of Matsu's own that belong to this run alone.
    pub own: Vec<PathBuf>,
    /// Read-only, even where the directory around it is writable.
    pub protected: Vec<PathBuf>,
    pub state: &'a State,
    pub folders: &'a Folders,
    pub network: Network,
}

/// Where the parts of a sealed run lie on disk.
#[derive(Clone, Debug)]
pub struct Folders {
    pub root: PathBuf,
    pub tmp: PathBuf,
    /// What the run has for a home folder.
    pub home: PathBuf,
}

impl Reach<'_> {
    /// What a sealed run sees. Later entries cover earlier ones: first what may be seen, then what must not be, then
    /// the run's own folders, some of which lie inside a covered one.
    #[must_use]
    pub fn view(&self) -> View {
        let machine = self.machine;
        let mut entries = vec![Entry::Place { source: self.folders.home.clone(), target: machine.home.clone() }];
        entries.extend(GIT_SETTINGS.iter().map(|name| Entry::Read(machine.home.join(name))));
        entries.extend(machine.read.iter().cloned().map(Entry::Read));
        entries.extend(program::needs(self.program, &machine.path, &machine.home));
        let (hidden, is_hidden) = (self.hidden(), |path: &Path| self.is_hidden(path));
        entries.push(Entry::Read(machine.matsu.clone()));
        let directory = self.directory_entry();
        if !is_hidden(self.directory) {
            entries.push(directory.clone());
        }
        entries.extend(hidden.into_iter().map(Entry::Cover));
        if is_hidden(self.directory) {
            entries.push(directory);
        }
        entries.extend(self.own.iter().cloned().map(Entry::Write));
        entries.extend(self.protected.iter().cloned().map(Entry::Read));
        entries.extend(self.state.entries());
        entries.extend(machine.sockets.iter().cloned().map(Entry::Write));
        View { root: self.folders.root.clone(), tmp: self.folders.tmp.clone(), entries, network: self.network }
    }

    fn directory_entry(&self) -> Entry {
        if self.writes { Entry::Write(self.directory.to_owned()) } else { Entry::Read(self.directory.to_owned()) }
    }

    fn hidden(&self) -> Vec<PathBuf> {
        let machine = self.machine;
        let own = [Some(machine.data_dir.clone()), machine.config_dir.clone()].into_iter().flatten();
        own.chain(CREDENTIALS.iter().map(|name| machine.home.join(name))).collect()
    }

    fn is_hidden(&self, path: &Path) -> bool {
        self.hidden().iter().any(|hidden| path.starts_with(hidden))
    }

    /// What a fenced run may open. Its directory must not contain Matsu's own: Landlock cannot take a part out.
    #[must_use]
    pub fn fence(&self) -> Fence {
        let machine = self.machine;
        let mut read: Vec<PathBuf> = GIT_SETTINGS.iter().map(|name| machine.home.join(name)).collect();
        read.extend(machine.read.iter().cloned());
        read.push(machine.matsu.clone());
        for entry in program::needs(self.program, &machine.path, &machine.home) {
            if let Entry::Read(path) = entry {
                read.push(path);
            }
        }
        read.push(self.directory.to_owned());
        read.extend(self.protected.iter().cloned());
        let mut write = vec![self.folders.tmp.clone()];
        write.extend(self.own.iter().cloned());
        write.extend(self.state.paths());
        if self.writes {
            write.extend(self.writable_parts());
        }
        Fence { read, write, network: self.network }
    }

    /// Landlock allows a folder with all that is below it. A directory with a protected part in it is therefore
    /// allowed entry by entry, and new names directly in it cannot be made.
    fn writable_parts(&self) -> Vec<PathBuf> {
        if !self.protected.iter().any(|path| path.starts_with(self.directory)) {
            return vec![self.directory.to_owned()];
        }
        let Ok(entries) = std::fs::read_dir(self.directory) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.filter(|path| !self.protected.iter().any(|kept| kept.starts_with(path))).collect()
    }
}
