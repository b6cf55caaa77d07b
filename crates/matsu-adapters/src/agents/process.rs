//! Starting processes for agents: the only place that does. A run goes through the shim; what is asked in passing
//! (a version, git) is short, bounded, and killed when its caller has stopped waiting.
#![expect(clippy::disallowed_methods, reason = "the one file that starts processes for agents")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use matsu_core::clock::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::sandbox::Sandbox;
use super::sandbox::step::{ConfinementStep, StepOrder, StepReport};
use super::sandbox::view::{Network, View};
use super::shim::order::{Order, Stdin};
use super::supervisor::order::Restart;

/// This very program, even if its file was replaced since it started.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// A trial that takes longer has failed.
const TRIAL_MAX: Duration = Duration::from_secs(10);

/// A shim and the ways to it. Dropping `control` makes it end its tree.
pub struct Shim {
    pub child: Child,
    pub control: UnixStream,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// `mark` is carried by the shim as well, so that whatever falls to it is below a process that carries it.
pub fn start_shim(mark: (&str, &str)) -> io::Result<Shim> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut child = Command::new(THIS_PROGRAM)
        .arg("__run")
        .env_clear()
        .env(mark.0, mark.1)
        .current_dir("/")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("a started program has no streams"));
    };
    Ok(Shim { child, control: UnixStream::from_std(ours)?, stdout, stderr })
}

/// Starts the supervisor of a run, which goes on when this process ends. It inherits the lock of the run. What is
/// returned is its first connection.
pub fn start_supervisor(mark: (&str, &str), folder: &Path, lock: File) -> io::Result<UnixStream> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let child = Command::new(THIS_PROGRAM)
        .arg("__supervise")
        .arg(folder)
        .env_clear()
        .env(mark.0, mark.1)
        .current_dir("/")
        .stdin(OwnedFd::from(theirs))
        .stdout(lock)
        .stderr(Stdio::null())
        .spawn()?;
    // Tokio collects it when it ends.
    drop(child);
    UnixStream::from_std(ours)
}

/// Starts a daemon, for a supervisor that has seen none for a while. A shell in between ends at once, and for that
/// moment orphans do not come to this process: the daemon is not below it, and does not end with the run.
pub fn start_daemon(order: &Restart) -> io::Result<()> {
    let log = File::options().create(true).append(true).open(&order.log)?;
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", "\"$@\" &", "sh"]).arg(&order.program).args(&order.args);
    command.env_clear().envs(&order.env).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    rustix::process::set_child_subreaper(None)?;
    let started = command.status();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    started.map(drop)
}

/// What the program of a run reads from, and the other end of it where that is a pipe.
pub fn input(stdin: &Stdin) -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    match stdin {
        Stdin::Nothing => Ok((File::open("/dev/null")?.into(), None)),
        Stdin::File(path) => Ok((File::open(path)?.into(), None)),
        Stdin::Pipe => {
            let (reader, writer) = io::pipe()?;
            Ok((reader.into(), Some(writer.into())))
        }
    }
}

/// The program of a run; called by the shim, whose streams it inherits.
pub fn start_program(order: &Order, stdin: OwnedFd) -> io::Result<Child> {
    Command::new(&order.program)
        .args(&order.args)
        .env_clear()
        .envs(&order.env)
        .current_dir(&order.directory)
        .stdin(stdin)
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .spawn()
}

/// The first step of a confinement; called by the shim, whose streams it inherits. What comes back is the way to it.
pub fn start_step(step: ConfinementStep) -> io::Result<(Child, std::os::unix::net::UnixStream)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    let mut command = Command::new(THIS_PROGRAM);
    command.args(step_arguments(step)).env_clear().current_dir("/").stdin(OwnedFd::from(theirs));
    let child = command.stdout(Stdio::inherit()).stderr(Stdio::inherit()).kill_on_drop(true).spawn()?;
    Ok((child, ours))
}

fn step_arguments(step: ConfinementStep) -> &'static [&'static str] {
    match step {
        ConfinementStep::Seal(Network::Shared) => &["__seal"],
        ConfinementStep::Seal(Network::None) => &["__seal", "--no-network"],
        ConfinementStep::Fence => &["__fence"],
    }
}

/// Replaces this process by the program of a run. Returns only if that failed.
pub fn become_program(order: &StepOrder, stdin: OwnedFd) -> io::Error {
    use std::os::unix::process::CommandExt;
    program_command(order, stdin).exec()
}

fn program_command(order: &StepOrder, stdin: OwnedFd) -> std::process::Command {
    let mut command = std::process::Command::new(&order.program);
    command.args(&order.args).env_clear().envs(&order.env).current_dir(&order.directory).stdin(stdin);
    command
}

/// The first process in the namespaces that this process has just made; awaited to its end.
pub fn start_init() -> io::Result<ExitCode> {
    let mut command = std::process::Command::new(THIS_PROGRAM);
    let status = command.arg("__init").env_clear().stdin(Stdio::inherit()).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The program of a sealed run, by the first process of its namespace, which collects it. Its id there.
pub fn start_in_view(order: &StepOrder, stdin: OwnedFd) -> io::Result<u32> {
    program_command(order, stdin).spawn().map(|child| child.id())
}

/// Starts a short program in a view, which must succeed. Blocks for some milliseconds.
pub fn try_view(view: View, program: &Path, args: &[&str]) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(text)?;
    ours.set_read_timeout(Some(TRIAL_MAX)).map_err(text)?;
    let mut command = std::process::Command::new(THIS_PROGRAM);
    command.arg("__seal").env_clear().current_dir("/").stdin(OwnedFd::from(theirs));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(text)?;
    drop(command);
    let (program, args) = (program.to_owned(), args.iter().map(|arg| (*arg).to_owned()).collect());
    let sandbox = Sandbox::Sealed(view);
    let order = StepOrder { sandbox, program, args, env: BTreeMap::new(), directory: PathBuf::from("/") };
    let sent = File::open("/dev/null").and_then(|null| order.send(&ours, &null.into(), None));
    let found = sent.map_err(text).and_then(|()| trial_report(&ours));
    let _ = child.kill();
    let _ = child.wait();
    found
}

fn trial_report(socket: &std::os::unix::net::UnixStream) -> Result<(), String> {
    for line in io::BufRead::lines(io::BufReader::new(socket)) {
        let line = line.map_err(|error| error.to_string())?;
        match serde_json::from_str(&line).map_err(|error| error.to_string())? {
            StepReport::Started => {}
            StepReport::Failed { error } => return Err(error),
            StepReport::Exited { code: Some(0), .. } => return Ok(()),
            StepReport::Exited { code, signal } => return Err(format!("a program ended with {code:?} {signal:?}")),
        }
    }
    Err("the set-up ended without a report".to_owned())
}

/// Something short to ask a program.
pub struct Ask<'a> {
    pub program: &'a Path,
    pub args: Vec<String>,
    /// All of it; nothing is inherited.
    pub env: &'a BTreeMap<String, String>,
    pub directory: Option<&'a Path>,
    pub stdin: Input,
    pub within: Duration,
    /// Of its output; what is over is not read.
    pub bytes_max: u64,
    /// Of its address space.
    pub memory_max: Option<u64>,
}

impl<'a> Ask<'a> {
    /// Enough for a version or some paths.
    pub const OUTPUT_BYTES_MAX: u64 = 64 * 1024;

    /// Without arguments or input, with little time and output.
    pub fn new(program: &'a Path, env: &'a BTreeMap<String, String>) -> Self {
        let (within, bytes_max) = (Duration::from_secs(5), Self::OUTPUT_BYTES_MAX);
        let (args, stdin) = (Vec::new(), Input::Nothing);
        Self { program, args, env, directory: None, stdin, within, bytes_max, memory_max: None }
    }
}

/// What a program reads.
#[derive(Debug, Default)]
pub enum Input {
    #[default]
    Nothing,
    Bytes(Vec<u8>),
    /// From where the file stands.
    File(File),
}

/// Errors are words; output is bytes, whatever they are.
#[derive(Debug)]
pub struct Answered {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// There was more output.
    pub is_cut: bool,
}

/// `None`: it did not answer in time, or could not be started.
pub async fn ask(ask: Ask<'_>) -> Option<Answered> {
    let mut command = Command::new(ask.program);
    command.args(&ask.args).env_clear().envs(ask.env).current_dir(ask.directory.unwrap_or(Path::new("/")));
    let (stdin, bytes) = match ask.stdin {
        Input::Nothing => (Stdio::null(), None),
        Input::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
        Input::File(file) => (Stdio::from(file), None),
    };
    // Its own group, so that whatever it starts can be ended with it.
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = command.spawn().ok()?;
    let group = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
    if let (Some(bytes), Some(pid)) = (ask.memory_max, group) {
        let limit = rustix::process::Rlimit { current: Some(bytes), maximum: Some(bytes) };
        let _ = rustix::process::prlimit(Some(pid), rustix::process::Resource::As, limit);
    }
    let exchange = async {
        let (stdout, stderr, stdin) = (child.stdout.take(), child.stderr.take(), child.stdin.take());
        let say = async {
            if let (Some(mut stdin), Some(bytes)) = (stdin, bytes) {
                let _ = stdin.write_all(&bytes).await;
            }
        };
        let ((), (out, is_cut), (err, _)) =
            tokio::join!(say, read_some(stdout, ask.bytes_max), read_some(stderr, ERROR_BYTES_MAX));
        let status = child.wait().await.ok()?;
        let stderr = String::from_utf8_lossy(&err).into_owned();
        Some(Answered { code: status.code(), stdout: out, stderr, is_cut })
    };
    let answered = Clock::system().within(ask.within, exchange).await.flatten();
    if answered.is_none()
        && let Some(group) = group
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    answered
}

/// What is said about an error is short.
const ERROR_BYTES_MAX: u64 = 64 * 1024;

/// The first bytes of a stream, and whether there were more. The stream is closed then, which ends its writer.
pub async fn read_some(stream: Option<impl AsyncReadExt + Unpin>, bytes_max: u64) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let _ = stream.take(bytes_max + 1).read_to_end(&mut bytes).await;
    }
    let is_cut = bytes.len() as u64 > bytes_max;
    bytes.truncate(usize::try_from(bytes_max).unwrap_or(usize::MAX));
    (bytes, is_cut)
}

/// Where a command lies: a path as it is, a name as the PATH says.
pub fn find(command: &str, path: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if command.contains('/') {
        let path = PathBuf::from(command);
        return is_program(&path).then_some(path);
    }
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    folders.map(|folder| Path::new(folder).join(command)).find(|path| is_program(path))
}
