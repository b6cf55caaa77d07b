//! A data directory of a test's own, and the processes that use it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::http::Http;

pub use matsu_testkit::until::until;

/// How long a daemon may take to open its listeners on a busy machine.
const START_MAX: Duration = Duration::from_secs(30);

pub struct Home {
    folder: TempDir,
    settings: Vec<(String, String)>,
    /// Another user than the one who runs the tests, and the program where this user can start it.
    user: Option<(u32, PathBuf)>,
    /// Where that program lies: outside of what the user owns.
    _programs: Option<TempDir>,
}

impl Home {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("matsu-clients").tempdir().unwrap();
        for name in ["signals", "some documents"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, settings: Vec::new(), user: None, _programs: None }
    }

    /// A file that runs see as soon as it is there.
    pub fn signal(&self, name: &str) -> PathBuf {
        self.path("signals").join(name)
    }

    /// A home whose processes run as an ordinary user. Only root can do that.
    pub fn of_user(user: u32) -> Self {
        let mut home = Self::new();
        let folder = tempfile::Builder::new().prefix("matsu-program").tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = folder.path().join("matsu");
        // A link costs nothing; on another file system it must be a copy.
        if std::fs::hard_link(env!("CARGO_BIN_EXE_matsu"), &program).is_err() {
            std::fs::copy(env!("CARGO_BIN_EXE_matsu"), &program).unwrap();
        }
        home.user = Some((user, program));
        home._programs = Some(folder);
        home.give_away();
        home
    }

    /// Everything in this home belongs to its user from now on.
    pub fn give_away(&self) {
        let Some((user, _)) = &self.user else { return };
        let owner = format!("{user}:{user}");
        let given = Command::new("chown").args(["-R", "-h", &owner]).arg(self.folder.path()).status().unwrap();
        assert!(given.success(), "chown {owner}");
    }

    /// With this setting for every process of this home.
    pub fn set(&mut self, variable: &str, value: &str) {
        self.settings.push((variable.to_owned(), value.to_owned()));
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().map(|(variable, value)| (variable.as_str(), value.as_str()))
    }

    /// Somewhere in this home.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The program with nothing of this machine's user in its environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let program = self.user.as_ref().map_or(Path::new(env!("CARGO_BIN_EXE_matsu")), |(_, program)| program);
        let mut command = self.of_its_user(program);
        // Runs see nothing that is not named: the scripts of the tests, what a test sends a run while it works, and a
        // Python of the user's own.
        let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
        let pyenv = std::env::var("HOME").unwrap_or_default() + "/.pyenv";
        command.env("MATSU_AGENTS_READ", format!("{tests}:{}:{pyenv}", self.path("signals").display()));
        // Something to search, for tests that are about something else.
        command.env("MATSU_RESEARCH_FOLDERS", self.path("some documents"));
        command.envs(self.settings()).env("MATSU_SERVER_PORT", "0").arg("--data-dir").arg(self.data_dir()).args(args);
        command
    }

    /// Any program as the user of this home starts it.
    pub fn of_its_user(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = match &self.user {
            None => Command::new(program),
            Some((user, _)) => {
                let user = user.to_string();
                let mut command = Command::new("setpriv");
                command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]).arg(program);
                command
            }
        };
        command.env_clear().env("HOME", self.folder.path()).env("PATH", std::env::var("PATH").unwrap());
        command
    }

    pub fn serve(&self) -> Daemon {
        self.serve_with(&[])
    }

    /// With settings in its environment.
    pub fn serve_with(&self, settings: &[(&str, &str)]) -> Daemon {
        let log = std::fs::File::create(self.folder.path().join("daemon.log")).unwrap();
        let mut command = self.command(&["serve", "--test-jobs"]);
        command.envs(settings.iter().copied());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let pid = child.id();
        let mut daemon = Daemon { child, log: self.folder.path().join("daemon.log"), http: None };
        daemon.http = Some(until("the daemon announces itself", START_MAX, || {
            self.announced().filter(|(announced, _)| *announced == pid).map(|(_, http)| http)
        }));
        daemon
    }

    /// The process that serves this directory, and how to reach it.
    pub fn announced(&self) -> Option<(u32, Http)> {
        let server = read(&self.data_dir().join("server.json"))?;
        let server: Value = serde_json::from_str(&server).ok()?;
        let pid = u32::try_from(server["pid"].as_u64()?).ok()?;
        let address = server["address"].as_str()?.strip_prefix("http://")?.parse().ok()?;
        let token = read(&self.data_dir().join("token"))?.trim().to_owned();
        Some((pid, Http { address, token }))
    }

    /// The daemon that a relay of this home has started.
    pub fn relayed(&self) -> (u32, Http) {
        until("a daemon was started", START_MAX, || self.announced())
    }

    pub fn run(&self, args: &[&str]) -> Value {
        let output = self.command(&[args, &["--json"]].concat()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // No supervisor that is left alone may start another daemon.
        let _ = std::fs::write(self.data_dir().join("stopped"), "");
        // The folder is removed below, and the mark with it.
        supervisors_in(self.folder.path()).into_iter().for_each(kill);
        // A daemon that a relay started outlives its relay; it must not outlive the test.
        if let Some((pid, _)) = self.announced() {
            kill(pid);
        }
        // Nor one that was just being started, and has not announced itself yet.
        daemons_in(self.folder.path()).into_iter().for_each(kill);
    }
}

/// Whatever serves below this folder.
fn daemons_in(folder: &Path) -> Vec<u32> {
    processes_in(folder, "serve")
}

/// The supervisors of runs below this folder.
pub fn supervisors_in(folder: &Path) -> Vec<u32> {
    processes_in(folder, "__supervise")
}

/// Processes that were started with this word and name this folder.
fn processes_in(folder: &Path, word: &str) -> Vec<u32> {
    let folder = folder.to_string_lossy();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_one = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command);
        command.contains(&*folder) && command.split('\0').any(|part| part == word)
    };
    pids.filter(is_one).collect()
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// A store on the tests' PostgreSQL that no other home has.
pub fn postgres_store(home: &Home) -> String {
    let base = std::env::var("MATSU_TEST_POSTGRES")
        .expect("MATSU_TEST_POSTGRES names a server; use `make test` or `scripts/postgres.sh run cargo test`");
    let mark = if base.contains('?') { '&' } else { '?' };
    // Its folder has a name that no other one has.
    let folder = home.folder().file_name().unwrap().to_str().unwrap().replace('-', "_").to_lowercase();
    format!("{base}{mark}schema={folder}_{}", std::process::id())
}

/// As a power cut would.
pub fn kill(pid: u32) {
    send(pid, Signal::KILL);
}

pub fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = kill_process(pid, signal);
}

pub struct Daemon {
    child: Child,
    log: PathBuf,
    http: Option<Http>,
}

impl Daemon {
    pub fn http(&self) -> &Http {
        self.http.as_ref().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Processor time it has used so far.
    pub fn cpu_seconds(&self) -> f64 {
        let stat = read(Path::new(&format!("/proc/{}/stat", self.child.id()))).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        ticks / 100.0
    }

    /// What it wrote to its log.
    pub fn printed(&self) -> String {
        read(&self.log).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- what the daemon said:\n{}", self.printed());
        }
    }
}
