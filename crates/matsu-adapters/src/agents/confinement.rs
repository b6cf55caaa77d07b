//! How runs are confined on this machine: the level that it offers and allows, and from that the sandbox of one run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use matsu_core::confinement::Confinement;
use matsu_core::ports::agent::{Login, MachineConfinement};
use matsu_core::run::Mode;

use super::definition::Definition;
use super::environment;
use super::runs_folder::{RunFolder, make_private};
use super::sandbox::fence::Fence;
use super::sandbox::reach::{Folders, Machine, Reach};
use super::sandbox::state::{Keep, Original, Sessions, State, StatePaths};
use super::sandbox::trial::{self, Offer};
use super::sandbox::view::{Entry, Network, View};
use super::sandbox::{Sandbox, program};

/// Where a sealed run finds the folder with its socket; short, whatever the real path is.
const INSIDE: &str = "/run/matsu";

/// What the user allows (`agents.confine`, `agents.read`, `agents.allow`).
#[derive(Clone, Debug, Default)]
pub struct ConfineOptions {
    /// `None`: the strongest that the machine offers.
    pub level: Option<Confinement>,
    /// Files and folders that every run may read. May begin with `~/`.
    pub read: Vec<String>,
    /// Names of sockets of the machine that runs may reach: `ssh-agent`, `keyring`.
    pub allow: Vec<String>,
    /// The configuration.
    pub config_file: Option<PathBuf>,
}

#[derive(Debug)]
pub struct Confiner {
    options: ConfineOptions,
    machine: Machine,
    opened: Vec<Opened>,
    offer: OnceLock<Offer>,
}

/// A socket that the user opened by name, and the variable that leads to it.
#[derive(Debug)]
struct Opened {
    name: String,
    variable: (String, String),
    socket: PathBuf,
}

/// What one run is confined by.
pub struct Confined {
    pub level: Confinement,
    pub sandbox: Sandbox,
    pub keep: Vec<Keep>,
    /// Set for the program besides what its definition sets.
    pub env: BTreeMap<String, String>,
    /// What `{data_dir}` means to the program.
    pub data_dir: PathBuf,
}

/// What is to be confined.
pub struct Run<'a> {
    pub definition: &'a Definition,
    pub login: Login,
    /// The private configuration of the program, where it has one.
    pub home: &'a Path,
    pub program: &'a Path,
    pub mode: Mode,
    pub directory: &'a Path,
    pub own: Vec<PathBuf>,
    pub protected: Vec<PathBuf>,
    pub folder: &'a RunFolder,
    /// The vendor's id of the conversation, where it is known.
    pub session: Option<&'a str>,
}

impl Confiner {
    #[must_use]
    pub fn new(options: ConfineOptions, data_dir: &Path, matsu: &Path, environment: &BTreeMap<String, String>) -> Self {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let home = environment.get("HOME").filter(|home| home.starts_with('/')).map(PathBuf::from);
        let home = real(home.unwrap_or_else(|| PathBuf::from("/nonexistent")));
        let certificates = environment::CERTIFICATES.iter().filter_map(|name| environment.get(*name)).cloned();
        let read = options.read.iter().cloned().chain(certificates).map(|path| real(expand(&path, &home, &home)));
        let opened = opened(&options.allow, environment);
        let machine = Machine {
            data_dir: real(data_dir.to_owned()),
            config_file: options.config_file.clone().map(real),
            matsu: real(matsu.to_owned()),
            read: read.collect(),
            sockets: opened.iter().map(|opened| opened.socket.clone()).collect(),
            path: environment.get("PATH").cloned().unwrap_or_default(),
            home,
        };
        Self { options, machine, opened, offer: OnceLock::new() }
    }

    /// Where things lie on this machine, links resolved.
    #[must_use]
    pub fn layout(&self) -> &Machine {
        &self.machine
    }

    /// What the machine offers; tried at the first use.
    fn offer(&self) -> &Offer {
        self.offer.get_or_init(|| trial::try_all(&self.machine.data_dir, &self.machine.matsu))
    }

    /// What another one found out about the same machine.
    pub fn take_offer_of(&self, other: &Self) {
        if let Some(offer) = other.offer.get() {
            let _ = self.offer.set(offer.clone());
        }
    }

    /// The level of runs in a mode.
    ///
    /// # Errors
    /// Why none can be had, and the setting that allows runs without one.
    pub fn level(&self, mode: Mode) -> Result<Confinement, String> {
        if mode == Mode::Full || self.options.level == Some(Confinement::Open) {
            return Ok(Confinement::Open);
        }
        let offer = self.offer();
        let wants = |level| self.options.level.is_none_or(|wanted| wanted == level);
        let mut reasons = Vec::new();
        for (level, refusal) in [(Confinement::Sealed, &offer.sealed), (Confinement::Fenced, &offer.fenced)] {
            match refusal {
                None if wants(level) => return Ok(level),
                Some(why) if wants(level) => reasons.push(format!("runs cannot be {level} here: {why}")),
                _ => {}
            }
        }
        let reasons = reasons.join("; ");
        // A level that was asked for by name is not replaced by a weaker one.
        let other = match self.options.level {
            Some(Confinement::Sealed) if offer.fenced.is_none() => "to \"fenced\" for the level that it offers, or ",
            Some(Confinement::Fenced) if offer.sealed.is_none() => "to \"sealed\" for the level that it offers, or ",
            _ => "",
        };
        Err(format!("{reasons}. Set agents.confine {other}to \"open\" to run agents without confinement"))
    }

    /// The level of runs on this machine, and why it is not a stronger one.
    #[must_use]
    pub fn machine(&self) -> MachineConfinement {
        let level = self.level(Mode::ReadOnly);
        let not_covered = level.as_ref().map(|level| self.not_covered(*level, None)).unwrap_or_default();
        // A level that the user chose needs no reason.
        let is_weaker = self.options.level.is_none() && level == Ok(Confinement::Fenced);
        let weaker_because = self.offer().sealed.as_ref().filter(|_| is_weaker);
        let weaker_because = weaker_because.map(|why| format!("runs cannot be sealed here: {why}"));
        MachineConfinement { level, not_covered, weaker_because }
    }

    /// Whether a sandbox of a program's own works inside a level.
    #[must_use]
    pub fn can_nest(&self, level: Confinement) -> bool {
        match level {
            Confinement::Sealed => self.offer().can_nest,
            // Landlock's rules for files keep a program from mounting.
            Confinement::Fenced => false,
            Confinement::Open => true,
        }
    }

    /// What a level does not cover on this machine, in plain words; for runs of one agent or of any.
    #[must_use]
    pub fn not_covered(&self, level: Confinement, definition: Option<&Definition>) -> Vec<String> {
        let mut gaps = vec!["the network, loopback included"];
        match level {
            Confinement::Sealed if self.offer().scopes => {}
            Confinement::Sealed => gaps.push("abstract sockets of other programs"),
            Confinement::Fenced => {
                gaps.push("files below /etc that only the user who runs Matsu can read");
                gaps.push("modes, times, attributes and access lists of the user's files (chmod, touch, setfattr)");
                gaps.push("names and sizes of the user's files, and when they are used (stat, inotify)");
                gaps.push("the processor affinity of other processes of the same user");
                gaps.push("the settings of the agent's own program");
                gaps.push("sockets of other programs in the file system");
                gaps.push("the list of processes");
                if !self.offer().scopes {
                    gaps.push("signals to other processes of the same user");
                }
            }
            Confinement::Open => gaps = vec!["anything that the user who runs Matsu can do"],
        }
        let opened = self.opened.iter().map(|opened| format!("{} (agents.allow)", opened.name));
        let has_own =
            |definition: &&Definition| definition.modes.values().any(|mode| !mode.args_without_sandbox.is_empty());
        let lost = definition.filter(has_own).filter(|_| !self.can_nest(level)).map(|definition| {
            format!(
                "everything that only the sandbox of {} itself would stop (it cannot work here and is off)",
                definition.name
            )
        });
        gaps.into_iter().map(str::to_owned).chain(lost).chain(opened).collect()
    }

    /// Whether a run can be confined in its directory, before it is queued.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&self, mode: Mode, directory: Option<&Path>) -> Result<Confinement, String> {
        let level = self.level(mode)?;
        match directory {
            Some(directory) if level != Confinement::Open => self.admit_directory(level, directory)?,
            _ => {}
        }
        Ok(level)
    }

    fn admit_directory(&self, level: Confinement, directory: &Path) -> Result<(), String> {
        if directory == Path::new("/") {
            return Err("the working directory is /, which cannot be confined; start it in a project folder".to_owned());
        }
        let machine = &self.machine;
        if directory.starts_with(&machine.data_dir) && !machine.is_made_for_runs(directory) {
            return Err(format!(
                "the working directory {} belongs to Matsu itself; start it in a project folder",
                directory.display()
            ));
        }
        if level != Confinement::Fenced {
            return Ok(());
        }
        let holder = |folder: &Path| machine.own().find(|own| own.starts_with(folder));
        if let Some(own) = holder(directory) {
            return Err(format!(
                "the working directory {} contains {}, which a run must not read and Landlock cannot hide; start it in \
                 a project folder",
                directory.display(),
                own.display()
            ));
        }
        match machine.read.iter().find_map(|read| holder(read).map(|own| (read, own))) {
            Some((read, own)) => Err(format!(
                "agents.read names {}, which contains {}; a run must not read that, and Landlock cannot hide it: name \
                 the folders below it instead",
                read.display(),
                own.display()
            )),
            None => Ok(()),
        }
    }

    /// The sandbox of one run.
    ///
    /// # Errors
    /// Why it cannot be confined.
    pub fn confine(&self, run: &Run<'_>) -> Result<Confined, String> {
        let level = self.admit(run.mode, Some(run.directory))?;
        let mut env = BTreeMap::new();
        let inside = run.folder.inside();
        env.insert("TMPDIR".to_owned(), run.folder.tmp().display().to_string());
        if level == Confinement::Open {
            return Ok(Confined { level, sandbox: Sandbox::Open, keep: Vec::new(), env, data_dir: inside });
        }
        env.extend(self.opened.iter().map(|opened| opened.variable.clone()));
        let is_sealed = level == Confinement::Sealed;
        let paths = self.state_paths(run);
        let state =
            if is_sealed { State::prepare(&paths, &run.folder.outside(), run.session) } else { State::plain(&paths) };
        let state =
            state.map_err(|error| format!("the state of {} cannot be prepared: {error}", run.definition.name))?;
        let folders = Folders { root: run.folder.root(), tmp: run.folder.tmp(), home: run.folder.home() };
        let mut own = run.own.clone();
        own.push(inside.clone());
        let reach = Reach {
            machine: &self.machine,
            program: run.program,
            directory: run.directory,
            writes: run.mode.writes(),
            own,
            protected: run.protected.clone(),
            state: &state,
            folders: &folders,
            network: Network::Shared,
        };
        if !is_sealed {
            let sandbox = Sandbox::Fenced(reach.fence());
            return Ok(Confined { level, sandbox, keep: Vec::new(), env, data_dir: inside });
        }
        let mut view = reach.view();
        view.entries.push(Entry::Place { source: inside, target: PathBuf::from(INSIDE) });
        env.insert("TMPDIR".to_owned(), "/tmp".to_owned());
        Ok(Confined { level, sandbox: Sandbox::Sealed(view), keep: state.keep(), env, data_dir: INSIDE.into() })
    }

    fn state_paths(&self, run: &Run<'_>) -> StatePaths {
        let Some(login) = &run.definition.login else { return StatePaths::default() };
        // A run with a key has a configuration of its own and does not see the user's.
        let is_private = run.login == Login::Key;
        let path = |name: &str| expand(name, &self.machine.home, run.home);
        let is_meant = |name: &&String| name.starts_with("{home}") || !is_private;
        let mut state: Vec<PathBuf> = login.state.iter().filter(is_meant).map(|name| path(name)).collect();
        if is_private {
            state.push(run.home.to_owned());
        }
        let originals = login.originals.iter().filter(is_meant).map(|name| match name.strip_suffix('/') {
            Some(folder) => Original::Folder(path(folder)),
            None => Original::File(path(name)),
        });
        let sessions = login.sessions.iter().filter(is_meant).map(|name| Sessions::parse(&path(name)));
        StatePaths { state, originals: originals.collect(), sessions: sessions.collect() }
    }

    /// The sandbox of a check, and of setup: it writes in its own checkout and in `more`, reads what runs read, and has no
    /// login and no socket.
    ///
    /// # Errors
    /// This machine cannot confine it, or the disk.
    pub fn check(
        &self,
        folders: &Folders,
        tree: &Path,
        borrowed: &[PathBuf],
        more: &[PathBuf],
        network: Network,
    ) -> Result<Confined, String> {
        let level = self.level(Mode::ReadOnly)?;
        let mut env = BTreeMap::from([("TMPDIR".to_owned(), folders.tmp.display().to_string())]);
        let (keep, data_dir) = (Vec::new(), folders.tmp.clone());
        if level == Confinement::Open {
            return Ok(Confined { level, sandbox: Sandbox::Open, keep, env, data_dir });
        }
        let state = State::plain(&StatePaths::default()).map_err(|error| error.to_string())?;
        let machine = Machine { sockets: Vec::new(), ..self.machine.clone() };
        let reach = Reach {
            machine: &machine,
            program: Path::new("/bin/sh"),
            directory: tree,
            writes: true,
            own: more.iter().cloned().chain([tree.to_owned()]).collect(),
            protected: borrowed.to_vec(),
            state: &state,
            folders,
            network,
        };
        let sandbox = match level {
            Confinement::Sealed => {
                env.insert("TMPDIR".to_owned(), "/tmp".to_owned());
                Sandbox::Sealed(reach.view())
            }
            _ => Sandbox::Fenced(reach.fence()),
        };
        Ok(Confined { level, sandbox, keep, env, data_dir })
    }

    /// The sandbox of a short command on files that a run could write: no network, no login, and of the machine only
    /// what is named. `scratch` is an empty folder of the command's own.
    ///
    /// # Errors
    /// This machine cannot confine it, or the disk.
    pub fn command(&self, command: &Command<'_>) -> Result<Sandbox, String> {
        let level = self.level(Mode::ReadOnly)?;
        let path = |name: &str| command.scratch.join(name);
        for name in ["root", "tmp", "home"] {
            make_private(&path(name)).map_err(|error| error.to_string())?;
        }
        let machine = &self.machine;
        let needs = program::needs(command.program, &machine.path, &machine.home);
        if level != Confinement::Sealed {
            let installed = needs.into_iter().filter_map(|entry| match entry {
                Entry::Read(path) => Some(path),
                _ => None,
            });
            let write = command.write.iter().cloned().chain([path("tmp")]).collect();
            let read = command.read.iter().cloned().chain(installed).collect();
            return Ok(Sandbox::Fenced(Fence { read, write, real: Vec::new(), network: Network::None }));
        }
        let mut entries = vec![Entry::Place { source: path("home"), target: machine.home.clone() }];
        entries.extend(needs);
        entries.extend(command.read.iter().cloned().map(Entry::Read));
        entries.extend(command.write.iter().cloned().map(Entry::Write));
        Ok(Sandbox::Sealed(View { root: path("root"), tmp: path("tmp"), entries, network: Network::None }))
    }
}

/// A short command of the daemon's own, such as git.
pub struct Command<'a> {
    pub program: &'a Path,
    pub scratch: &'a Path,
    pub read: &'a [PathBuf],
    pub write: &'a [PathBuf],
}

fn expand(path: &str, home: &Path, private: &Path) -> PathBuf {
    if let Some(rest) = path.strip_prefix("{home}") {
        return private.join(rest.trim_start_matches('/'));
    }
    path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |rest| home.join(rest))
}

/// `ssh-agent` and `keyring` by the variables that lead to them.
fn opened(allow: &[String], environment: &BTreeMap<String, String>) -> Vec<Opened> {
    let variables = [("ssh-agent", "SSH_AUTH_SOCK"), ("keyring", "DBUS_SESSION_BUS_ADDRESS")];
    let named = variables.iter().filter(|(name, _)| allow.iter().any(|allowed| allowed == name));
    let found = named.filter_map(|(name, variable)| {
        let value = environment.get(*variable)?.clone();
        // A plain path, or `unix:path=PATH,guid=…`.
        let path = value.split("path=").last().and_then(|rest| rest.split(',').next()).unwrap_or(&value);
        let socket = PathBuf::from(path);
        Some(Opened { name: (*name).to_owned(), socket, variable: ((*variable).to_owned(), value) })
    });
    found.collect()
}
