//! A data directory of a test's own, a store in it or beside it, and the commands and daemons that use them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::api::{Api, until};
use crate::process::Process;
use crate::stores;

/// How long a daemon may take to open its listeners on a busy machine.
pub const START_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

pub struct Home {
    folder: TempDir,
    pub store: String,
    variables: Vec<(String, String)>,
    started: AtomicUsize,
}

/// What a command left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub fn good(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl Home {
    pub fn new(backend: Backend) -> Self {
        match backend {
            Backend::Sqlite => Self::sqlite(),
            Backend::Postgres => Self::with_store(stores::fresh_postgres_url()),
        }
    }

    pub fn sqlite() -> Self {
        let mut home = Self::with_store(String::new());
        home.store = format!("sqlite:{}", home.data("matsu.db").display());
        home
    }

    pub fn with_store(store: String) -> Self {
        let folder = tempfile::Builder::new().prefix("matsu-it").tempdir().unwrap();
        // Something to search, for tests that are about something else.
        let documents = folder.path().join("some documents");
        std::fs::create_dir(&documents).unwrap();
        let documents = documents.display().to_string();
        // A daemon that a command starts must not look for the port of the user's own.
        let variables = [("MATSU_RESEARCH_FOLDERS", documents.as_str()), ("MATSU_SERVER_PORT", "0")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { folder, store, variables, started: AtomicUsize::new(0) }
    }

    /// Another data directory on the same store.
    pub fn neighbour(&self) -> Self {
        let mut home = Self::with_store(self.store.clone());
        home.variables.clone_from(&self.variables);
        home
    }

    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Somewhere in this home, outside the data directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn data_dir(&self) -> PathBuf {
        self.path("data")
    }

    pub fn data(&self, name: &str) -> PathBuf {
        self.data_dir().join(name)
    }

    /// The program with nothing of this machine's user in its environment.
    pub fn bare(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_matsu"));
        command.env_clear().env("HOME", self.folder.path()).env("PATH", std::env::var("PATH").unwrap());
        command.envs(self.variables.iter().cloned()).args(args);
        command
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bare(args);
        command.arg("--data-dir").arg(self.data_dir());
        if !self.store.starts_with("sqlite:") {
            command.arg("--store").arg(&self.store);
        }
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        run(self.command(args))
    }

    pub fn run_json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).good().json()
    }

    pub fn start(&self, args: &[&str]) -> Process {
        self.start_command(self.command(args))
    }

    pub fn start_command(&self, command: Command) -> Process {
        let nth = self.started.fetch_add(1, Ordering::Relaxed);
        Process::start(command, self.path(&format!("log.{nth}")))
    }

    /// A daemon with the test jobs, its listeners open.
    pub fn serve(&self) -> Daemon {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, args: &[&str]) -> Daemon {
        let process = self.start(&[&["serve", "--test-jobs", "--port", "0"], args].concat());
        Daemon::announced(process, &self.data_dir())
    }

    pub fn work(&self) -> Process {
        self.start(&["worker", "--test-jobs"])
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // No supervisor that is left alone may start another daemon.
        let _ = std::fs::write(self.data("stopped"), "");
        // A daemon that a command has started outlives the command; it must not outlive the test.
        let server = std::fs::read_to_string(self.data("server.json")).unwrap_or_default();
        let server: Value = serde_json::from_str(&server).unwrap_or_default();
        let pid =
            server["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
        let line = |pid: rustix::process::Pid| std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
        let folder = self.folder.path().to_string_lossy().into_owned();
        if let Some(pid) = pid
            && line(pid).is_ok_and(|line| String::from_utf8_lossy(&line).contains(&folder))
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

pub fn run(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A daemon and the way in.
pub struct Daemon {
    pub process: Process,
    pub api: Api,
}

impl Daemon {
    /// Waits until the process has written where it is.
    #[track_caller]
    pub fn announced(mut process: Process, data_dir: &Path) -> Self {
        let api = until("the daemon announces itself", START_MAX, || {
            assert_eq!(process.has_ended(), None, "{}", process.printed());
            announced_by(data_dir, process.pid())
        });
        Self { process, api }
    }
}

/// The content of `server.json` and the token, if this process wrote them.
pub fn announced_by(data_dir: &Path, pid: u32) -> Option<Api> {
    let server = read_server_json(data_dir)?;
    if server["pid"] != pid {
        return None;
    }
    let address = server["address"].as_str()?.strip_prefix("http://")?.parse().ok()?;
    let token = std::fs::read_to_string(data_dir.join("token")).ok()?.trim().to_owned();
    Some(Api { address, token })
}

/// Whole or not at all.
pub fn read_server_json(data_dir: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(data_dir.join("server.json")).ok()?;
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("half a server.json: {error}: {text}")))
}
