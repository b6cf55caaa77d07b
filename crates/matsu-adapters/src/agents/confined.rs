//! One command inside a separate confinement: what it may write is named, it has no network, and it ends within its
//! time limit together with everything that it started. Git on files that a run could write goes through here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Clock;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::ChildStdout;

use super::command_line::MARKER;
use super::confinement::{Command, Confiner};
use super::process::{self, Shim};
use super::shim::order::{EndWord, Order, Report, Stdin};

const ERROR_BYTES_MAX: u64 = 64 * 1024;

/// What the command sees besides the system's own folders.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
}

/// Where confined commands of one run are kept apart from everything else.
#[derive(Clone, Debug)]
pub struct Cell {
    pub confiner: Arc<Confiner>,
    /// The run that the command works for.
    pub marker: String,
    /// A folder of the daemon's own for this run.
    pub scratch: PathBuf,
}

/// A command.
pub struct Work<'a> {
    pub program: &'a Path,
    pub args: Vec<String>,
    /// All of it; nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub directory: &'a Path,
    pub stdin: Stdin,
    pub within: Duration,
    pub bytes_max: u64,
    /// Where its output goes; without a file it is kept in memory.
    pub into: Option<&'a Path>,
}

/// How it ended.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    /// Empty if it went into a file.
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// Runs it, and is over when its last process is.
///
/// # Errors
/// It could not be confined or started, took too long, or printed too much.
pub async fn confined(cell: &Cell, work: Work<'_>, view: View) -> Result<Done, String> {
    let command = Command { program: work.program, scratch: &cell.scratch, read: &view.read, write: &view.write };
    let sandbox = cell.confiner.command(&command)?;
    let order = Order {
        program: work.program.to_owned(),
        args: work.args.clone(),
        env: work.env.clone(),
        directory: work.directory.to_owned(),
        stdin: work.stdin.clone(),
        lock: cell.scratch.join("lock"),
        sandbox,
        keep: Vec::new(),
        socket: None,
        stop_signal: EndWord::Term,
    };
    run(cell, &order, work.within, work.bytes_max, work.into).await
}

/// Runs a command whose confinement is made already, and is over when its last process is.
///
/// # Errors
/// As [`confined`].
pub async fn run(
    cell: &Cell,
    order: &Order,
    within: Duration,
    bytes_max: u64,
    into: Option<&Path>,
) -> Result<Done, String> {
    let shim = process::start_shim((MARKER, &cell.marker)).map_err(|error| error.to_string())?;
    let Shim { mut child, control, stdout, stderr } = shim;
    let (reader, mut writer) = control.into_split();
    let mut line = serde_json::to_vec(order).map_err(|error| error.to_string())?;
    line.push(b'\n');
    writer.write_all(&line).await.map_err(|error| error.to_string())?;
    let reports = async {
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            match serde_json::from_str(&line) {
                Ok(Report::Ended { code, .. }) => return Ok(code),
                Ok(Report::Failed { error }) => return Err(format!("it could not be started: {error}")),
                Err(_) => {}
            }
        }
        Err("its shim was ended".to_owned())
    };
    let output = async {
        let out = keep(stdout, bytes_max, into).await;
        match out {
            Ok(out) => {
                let ((err, _), code) = tokio::join!(process::read_some(Some(stderr), ERROR_BYTES_MAX), reports);
                let stderr = String::from_utf8_lossy(&err).into_owned();
                code.map(|code| Done { code, stdout: out, stderr })
            }
            Err(why) => Err(why),
        }
    };
    let done = Clock::system().within(within, output).await;
    // When this end is closed, the shim ends whatever is left.
    drop(writer);
    let _ = child.wait().await;
    done.unwrap_or_else(|| Err(format!("it took longer than {} seconds", within.as_secs())))
}

/// The output, in a file or in memory.
async fn keep(mut stdout: ChildStdout, bytes_max: u64, into: Option<&Path>) -> Result<Vec<u8>, String> {
    let too_much = || format!("it printed more than {bytes_max} bytes");
    let Some(path) = into else {
        let (bytes, is_cut) = process::read_some(Some(stdout), bytes_max).await;
        return if is_cut { Err(too_much()) } else { Ok(bytes) };
    };
    let mut file = tokio::fs::File::create(path).await.map_err(|error| error.to_string())?;
    let mut left = bytes_max;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = stdout.read(&mut buffer).await.map_err(|error| error.to_string())?;
        if read == 0 {
            return file.flush().await.map(|()| Vec::new()).map_err(|error| error.to_string());
        }
        left = left.checked_sub(read as u64).ok_or_else(too_much)?;
        file.write_all(&buffer[..read]).await.map_err(|error| error.to_string())?;
    }
}
