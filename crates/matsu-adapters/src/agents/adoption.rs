//! Taking up a run that another daemon has started: its supervisor is asked, or what it has left is read.

use std::io;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::RunId;
use matsu_core::job::Lease;
use matsu_core::ports::agent::{LiveRun, StartError};
use matsu_core::run::KeptWork;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::git::Git;
use super::host::{CliHost, Way, check_definition};
use super::live::CliRun;
use super::orphans;
use super::runs_folder::{RunFolder, RunRecord, connect_in};
use super::supervisor::order::{Hello, Notice, VERSION, Word};
use super::worktree::{BundleLimits, Closed, Worktree};

/// A supervisor answers at once, unless the machine is very busy.
const WELCOME_WITHIN: Duration = Duration::from_secs(10);

/// How often a supervisor is asked that is there and does not answer.
const ASKED_TIMES: u32 = 6;

/// How long a run that is of no use any more may take to end.
const END_WITHIN: Duration = Duration::from_secs(8);

/// How often the lock of a supervisor that refuses is looked at until its run counts as lost.
const LOOKED_TIMES: u32 = 40;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Higher than any attempt, for a run whose job is over.
const LAST_ATTEMPT: i64 = i64::MAX;

/// # Errors
/// Nothing is left of the run, or its supervisor does not answer.
pub async fn adopt(host: &CliHost, lease: &Lease, run: &RunId, stored: u64) -> Result<CliRun, StartError> {
    let lost = |message: String| StartError { code: ErrorCode::SupervisorLost, message };
    let found = host.runs().of_job(&lease.job_id).into_iter().find(|(_, record)| record.run_id == *run);
    let (folder, record) = found.ok_or_else(|| lost(format!("the folder of run {run} is gone")))?;
    let definition = if record.check.is_some() { check_definition() } else { host.definition(&record.agent) };
    let definition = definition.ok_or_else(|| lost(format!("the definition of agent {} is gone", record.agent)))?;
    let way = if folder.is_held() {
        let reply = ask(&folder, &record, lease.attempt).await;
        // It may have ended meanwhile; then it has left a record.
        match reply {
            Ok((control, ran_seconds)) => Way { control: Some(control), ran_seconds },
            Err(_) if !folder.is_held() => Way::default(),
            Err(error) => return Err(lost(format!("the supervisor of run {run} does not answer: {error}"))),
        }
    } else {
        Way::default()
    };
    let worktree = tree_of(host, &record).map_err(lost)?;
    let mut followed = host.follow(&definition, RunRecord::clone(&record), folder, worktree, way);
    followed.replay(stored).map_err(|error| lost(format!("the output of run {run} cannot be read: {error}")))?;
    // A question that is still open is asked again, and stops its time again.
    followed.set_parked(false);
    Ok(followed)
}

/// As [`connect`], again for a minute: a machine that is very busy, or a supervisor that was stopped, ends no run.
async fn ask(folder: &RunFolder, record: &RunRecord, attempt: i64) -> io::Result<(UnixStream, u32)> {
    let (mut asked, mut looked) = (1, 0);
    loop {
        match connect(folder, record, attempt).await {
            Err(error) if is_worth_asking_again(&error) && asked < ASKED_TIMES && folder.is_held() => {
                tracing::warn!(run = %record.run_id, %error, "the supervisor of a run is contacted again");
                let marker = record.run_id.to_string();
                drop(tokio::task::spawn_blocking(move || orphans::wake(&marker)).await);
                asked += 1;
            }
            // The supervisor is gone, and processes of its run are just ending.
            Err(error)
                if error.kind() == io::ErrorKind::ConnectionRefused && folder.is_held() && looked < LOOKED_TIMES =>
            {
                Clock::system().sleep(LOOK_EVERY).await;
                looked += 1;
            }
            reply => return reply,
        }
    }
}

/// One that refuses has answered.
fn is_worth_asking_again(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

/// The tree that a run works in, if it has one and it is still there.
fn tree_of(host: &CliHost, record: &RunRecord) -> Result<Option<Worktree>, String> {
    let Some(path) = &record.place.worktree else { return Ok(None) };
    let options = host.options();
    let git = Git::find(&options.environment)?;
    let (job, marker) = (record.job_id.as_str(), record.run_id.as_str());
    let limits = BundleLimits { bytes_max: options.bundle_bytes_max, within: options.bundle_within };
    Ok(git.reopen(&options.data_dir, path, job, marker, host.confiner(), limits))
}

/// Ends a run whose job is over, keeps what it has written as its branch, and removes its folder.
pub async fn give_up(host: &CliHost, folder: &RunFolder, record: &RunRecord) -> Option<KeptWork> {
    end(folder, record, host.options().clock).await;
    let mut kept = None;
    let closed = match tree_of(host, record) {
        _ if !folder.begun().exists() => None,
        Ok(Some(tree)) => Some(tree.close(&format!("{} ({})", record.agent, record.run_id), &folder.closed()).await),
        // An earlier daemon may have closed it.
        _ => Closed::read(&folder.closed()),
    };
    if let Some(closed) = closed {
        let mut place = record.place.clone();
        if let Some(changes) = &closed.changes {
            tracing::info!(run = %record.run_id, changes.branch, "a run whose job has ended was stopped; its work is kept");
            place.ended_with(changes);
        }
        let place = serde_json::to_string(&place).ok();
        let (agent, changes, left_work) = (record.agent.clone(), closed.changes, closed.left);
        kept = Some(KeptWork { agent, changes, left_work, place });
    }
    folder.remove();
    kept
}

/// Becomes the daemon of a supervisor, if no later attempt is.
async fn connect(folder: &RunFolder, record: &RunRecord, attempt: i64) -> io::Result<(UnixStream, u32)> {
    let stream = connect_in(&folder.outside(), "control.sock")?;
    stream.set_nonblocking(true)?;
    let mut stream = UnixStream::from_std(stream)?;
    let mut hello = serde_json::to_vec(&Hello { version: VERSION, secret: record.secret.clone(), attempt })
        .map_err(io::Error::other)?;
    hello.push(b'\n');
    let exchange = async {
        stream.write_all(&hello).await?;
        // Byte by byte: what comes after the answer belongs to the one that follows.
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0_u8; 1];
            stream.read_exact(&mut byte).await?;
            line.extend(byte);
        }
        match serde_json::from_slice(&line).map_err(io::Error::other)? {
            Notice::Welcome { ran_seconds, .. } => Ok(ran_seconds),
            Notice::Refused { why } => Err(io::Error::other(why)),
            Notice::Started | Notice::Grew { .. } | Notice::Ended => Err(io::Error::other("no reply to the handshake")),
        }
    };
    let answered = Clock::system().within(WELCOME_WITHIN, exchange).await;
    let ran_seconds =
        answered.unwrap_or_else(|| Err(io::Error::new(io::ErrorKind::TimedOut, "no answer within 10 s")))?;
    Ok((stream, ran_seconds))
}

/// Ends a run that still works although its job is over.
pub async fn end(folder: &RunFolder, record: &RunRecord, clock: Clock) {
    if !folder.is_held() {
        return;
    }
    let ended = async {
        let (mut stream, _) = connect(folder, record, LAST_ATTEMPT).await?;
        let mut word = serde_json::to_vec(&Word::End).map_err(io::Error::other)?;
        word.push(b'\n');
        stream.write_all(&word).await?;
        // Until it closes the connection.
        let mut lines = BufReader::new(stream).lines();
        while lines.next_line().await?.is_some() {}
        io::Result::Ok(())
    };
    if !matches!(clock.within(END_WITHIN, ended).await, Some(Ok(()))) {
        tracing::warn!(run = %record.run_id, "a supervisor whose job has ended did not stop; its processes are killed");
        drop(orphans::end(record.run_id.to_string(), clock).await);
    }
}
