//! The shim, `matsu __run`: the parent of one confined command, such as git on files that a run could write
//! (`confined.rs`). A run of an agent has a supervisor instead (`supervisor.rs`), which outlives the daemon; both use the
//! modules of this folder.
//!
//! The shim is a child subreaper in its own session, so that no descendant can leave it. It ends when its program has
//! ended, when the daemon asks for it, or when the daemon has ended; in each case only after every descendant has ended.
//! It holds its lock file until then. It is not confined itself; it confines the program. The program inherits its
//! stdout and stderr.

pub(super) mod ending;
pub mod order;
pub(super) mod program;
pub(super) mod socket;
pub mod tree;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use matsu_core::clock::Clock;
use matsu_core::limits::TICK;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{Signal, SignalKind, signal};

use order::{Order, Report};
use program::{Exit, Program};

/// What `matsu __run` does. Its stdin is a socket to the process that started it.
#[must_use]
pub fn run() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(supervise())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

async fn supervise() -> io::Result<()> {
    let socket = std::os::unix::net::UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.set_nonblocking(true)?;
    let (reader, mut writer) = UnixStream::from_std(socket)?.into_split();
    let mut lines = BufReader::new(reader).lines();
    let Some(line) = lines.next_line().await? else { return Ok(()) };
    let order: Order = serde_json::from_str(&line).map_err(io::Error::other)?;
    let _lock = hold(&order.lock)?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Fails only for a process that leads a session already, which is just as good.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut program = match Program::start(&order, None).await {
        Ok(program) => program,
        Err(error) => return report(&mut writer, &Report::Failed { error: error.to_string() }).await,
    };
    let exit = watch(&mut program, &mut lines, &mut terminate).await;
    let ended = ending::end_tree(&mut program, exit, order.stop_signal).await;
    report(&mut writer, &ended).await
}

/// Until the program has ended, or is to be ended: `None`.
async fn watch(
    program: &mut Program,
    lines: &mut Lines<BufReader<OwnedReadHalf>>,
    terminate: &mut Signal,
) -> Option<Exit> {
    let clock = Clock::system();
    let id = program.id();
    loop {
        tokio::select! {
            exit = program.ended() => return Some(exit),
            // Nothing is sent after the order: the other end was closed.
            _ = lines.next_line() => return None,
            _ = terminate.recv() => return None,
            () = clock.sleep(TICK) => tree::reap_adopted(id),
        }
    }
}

/// The lock ends with this process, after its tree.
fn hold(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    file.try_lock().map_err(io::Error::other)?;
    Ok(file)
}

async fn report(writer: &mut OwnedWriteHalf, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report).map_err(io::Error::other)?;
    line.push(b'\n');
    writer.write_all(&line).await
}
