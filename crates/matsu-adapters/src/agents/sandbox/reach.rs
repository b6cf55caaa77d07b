//! What one run can reach, in one place: from this a sealed run gets its view and a fenced run its rules.

use std::collections::BTreeSet;
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
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub home: PathBuf,
    pub data_dir: PathBuf,
    /// The configuration, with its keys.
    pub config_file: Option<PathBuf>,
    /// This program.
    pub matsu: PathBuf,
    /// Folders and files that every run may read (`agents.read`).
    pub read: Vec<PathBuf>,
    /// Sockets that the user opened by name (`agents.allow`).
    pub sockets: Vec<PathBuf>,
    /// PATH, for interpreters.
    pub path: String,
}

/// Below the data directory: folders that hold one folder for each run.
const OF_RUNS: &[&str] = &["worktrees", "scratch"];

impl Machine {
    /// Matsu's own folders.
    pub fn own(&self) -> impl Iterator<Item = &Path> {
        [Some(self.data_dir.as_path()), self.config_dir()].into_iter().flatten()
    }

    fn config_dir(&self) -> Option<&Path> {
        self.config_file.as_deref().and_then(Path::parent)
    }

    /// What no run sees, wherever it runs.
    fn hidden(&self) -> Vec<PathBuf> {
        let credentials = CREDENTIALS.iter().map(|name| self.home.join(name));
        self.own().map(Path::to_owned).chain(credentials).collect()
    }

    /// Whether no run sees this, or something in it.
    #[must_use]
    pub fn hides(&self, path: &Path) -> bool {
        self.hidden().iter().any(|hidden| path.starts_with(hidden) || hidden.starts_with(path))
    }

    /// Whether the user lets every run read this.
    #[must_use]
    pub fn is_read(&self, path: &Path) -> bool {
        self.read.iter().any(|read| path.starts_with(read)) && !self.own().any(|own| path.starts_with(own))
    }

    /// Whether a folder was made for a run.
    #[must_use]
    pub fn is_made_for_runs(&self, folder: &Path) -> bool {
        let is_below = |name| folder.strip_prefix(self.data_dir.join(name)).is_ok_and(|rest| rest != Path::new(""));
        OF_RUNS.iter().any(is_below)
    }

    /// Whether a run that may be anywhere in `root` may be in `directory`. What is hidden stays so, unless the root
    /// itself lies in there: then the user has chosen it, or it was made for the run that asks. Matsu's data directory
    /// cannot be chosen.
    #[must_use]
    pub fn admits(&self, root: &Path, directory: &Path) -> bool {
        if directory.starts_with(&self.data_dir) {
            return self.is_made_for_runs(root);
        }
        self.hidden().iter().filter(|hidden| directory.starts_with(hidden)).all(|hidden| root.starts_with(hidden))
    }
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
        let hidden = machine.hidden();
        let is_hidden = hidden.iter().any(|hidden| self.directory.starts_with(hidden));
        entries.push(Entry::Read(machine.matsu.clone()));
        let directory = self.directory_entry();
        if !is_hidden {
            entries.push(directory.clone());
            entries.extend(self.pinned());
        }
        entries.extend(hidden.into_iter().map(Entry::Cover));
        if is_hidden {
            entries.push(directory);
            entries.extend(self.pinned());
            entries.extend(machine.config_file.clone().map(Entry::Cover));
        }
        entries.extend(self.own.iter().cloned().map(Entry::Write));
        entries.extend(self.protected.iter().cloned().map(|path| Entry::Real { path, writes: false }));
        entries.extend(self.state.entries());
        entries.extend(machine.sockets.iter().cloned().map(Entry::Write));
        View { root: self.folders.root.clone(), tmp: self.folders.tmp.clone(), entries, network: self.network }
    }

    /// The folders between the directory and what is protected in it. As mounts of their own they cannot be renamed, so
    /// nothing else can be put where the protected part was.
    fn pinned(&self) -> Vec<Entry> {
        let mut between = BTreeSet::new();
        for path in self.protected.iter().filter(|_| self.writes) {
            let above = path.ancestors().skip(1).take_while(|above| *above != self.directory);
            between.extend(above.filter(|above| above.starts_with(self.directory)).map(Path::to_owned));
        }
        between.into_iter().map(|path| Entry::Real { path, writes: true }).collect()
    }

    fn directory_entry(&self) -> Entry {
        Entry::Real { path: self.directory.to_owned(), writes: self.writes }
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
        let mut real = self.protected.clone();
        real.push(self.directory.to_owned());
        if self.writes {
            let parts = self.writable_parts();
            real.extend(parts.iter().cloned());
            write.extend(parts);
        }
        Fence { read, write, real, network: self.network }
    }

    /// Landlock allows a folder with all that is below it. A directory with a protected part in it is therefore
    /// allowed entry by entry, and new names directly in it cannot be made. A link is none of its parts: it would allow
    /// what it leads to.
    fn writable_parts(&self) -> Vec<PathBuf> {
        if !self.protected.iter().any(|path| path.starts_with(self.directory)) {
            return vec![self.directory.to_owned()];
        }
        let Ok(entries) = std::fs::read_dir(self.directory) else { return Vec::new() };
        let entries = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| !self.protected.iter().any(|kept| kept.starts_with(path))).collect()
    }
}
