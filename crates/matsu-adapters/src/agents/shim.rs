//! The run shim, `matsu __run`: the parent of everything that one run starts.
//!
//! It is a child subreaper in a session of its own, so that no descendant can leave it, whatever it does. It ends when
//! its program has ended, when the daemon asks for it, or when the daemon is gone; in each case only after every
//! descendant is gone too. It holds the run's lock file until then. It is not confined itself: it confines the program,
//! passes on what comes over the run's socket, and keeps the files of its conversation. The program inherits its stdout
//! and stderr.

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
use tokio::net::unix::pipe::Sender;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::sandbox::state;
use order::{Order, Report, Word};
use program::{Exit, Program};

/// What `matsu __run` does. Its stdin is a socket to the daemon.
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
    let mut words = BufReader::new(reader).lines();
    let Some(line) = words.next_line().await? else { return Ok(()) };
    let order: Order = serde_json::from_str(&line).map_err(io::Error::other)?;
    let _lock = hold(&order.lock)?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Fails only for who leads a session already, which is just as good.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    if let Some(Err(error)) = order.socket.as_ref().map(socket::open) {
        return report(&mut writer, &Report::Failed { error: format!("its socket: {error}") }).await;
    }
    let mut program = match Program::start(&order, None).await {
        Ok(program) => program,
        Err(error) => return report(&mut writer, &Report::Failed { error: error.to_string() }).await,
    };
    report(&mut writer, &Report::Started { pid: program.id().unwrap_or(0) }).await?;
    let exit = watch(&mut program, &mut words, &mut terminate).await;
    let ended = ending::end_tree(&mut program, exit, order.stop_signal).await;
    order.keep.iter().for_each(state::keep_sessions);
    report(&mut writer, &ended).await
}

/// Until the program has ended, or is to be ended: `None`.
async fn watch(
    program: &mut Program,
    words: &mut Lines<BufReader<OwnedReadHalf>>,
    terminate: &mut Signal,
) -> Option<Exit> {
    let clock = Clock::system();
    let id = program.id();
    let mut input = program.take_input();
    let mut unwritten: Vec<u8> = Vec::new();
    loop {
        tokio::select! {
            exit = program.ended() => return Some(exit),
            word = words.next_line() => match word {
                Ok(Some(line)) => match serde_json::from_str(&line) {
                    Ok(Word::Input { text }) => unwritten.extend(text.as_bytes()),
                    Ok(Word::CloseInput) => input = None,
                    Ok(Word::End) | Err(_) => return None,
                },
                // The daemon is gone.
                Ok(None) | Err(_) => return None,
            },
            _ = terminate.recv() => return None,
            written = write_some(&mut input, &unwritten), if !unwritten.is_empty() && input.is_some() => match written {
                Ok(bytes) => drop(unwritten.drain(..bytes)),
                // The program does not read any more; its end will show whether that is an error.
                Err(_) => input = None,
            },
            () = clock.sleep(TICK) => tree::reap_adopted(id),
        }
    }
}

async fn write_some(input: &mut Option<Sender>, bytes: &[u8]) -> io::Result<usize> {
    match input {
        Some(input) => input.write(bytes).await,
        None => std::future::pending().await,
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
