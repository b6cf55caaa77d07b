//! What is known about the other end of the socket before it presents anything.
//!
//! None of this gives rights: they come from a secret. That a process belongs to a run can only take rights away: it
//! may not present a user's token. And a connection that the supervisor of a run forwards is that run's: no other token
//! is accepted there.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::extract::{Extension, Request};
use axum::middleware::Next;
use axum::response::Response;
use matsu_core::id::{JobId, RunId};
use matsu_runtime::agents::{Agents, RunHandle};
use matsu_runtime::chats::sessions::Sessions;
use matsu_runtime::tool::Workplace;
use serde::Deserialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use tokio::net::UnixStream;

use crate::app::App;

/// The variable that every process of a run inherits.
const MARKER: &str = "MATSU_RUN";

/// No tree of processes is deeper; a longer chain would be a loop.
const DEPTH_MAX: usize = 64;

/// The first line of a connection is short; a longer one is not from a client of ours.
pub const FIRST_LINE_BYTES_MAX: u64 = 64 * 1024;

/// A run that goes on is taken over within this time of the daemon's start.
const ADOPTION_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A process that has given up its environment has ended within this time.
const ENDING_MAX: Duration = Duration::from_millis(20);

/// What the kernel reports about the process that connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ancestry {
    /// No run of this store is above it, or this system cannot tell.
    #[default]
    Clear,
    /// It, or a process above it, carries the mark of a run of this store. The run, if it is under way here.
    OfRun(Option<RunId>),
    /// It has ended: it is not known which process holds the connection now.
    Gone,
}

/// The other end of one connection.
#[derive(Clone, Default)]
pub struct Peer {
    pub ancestry: Ancestry,
    /// The run whose supervisor forwarded the connection.
    pub socket_of: Option<RunHandle>,
    /// The run that calls, once its token was presented.
    pub run: Option<RunHandle>,
    /// The directory of a person at a terminal; a process of a run cannot decide where others may work.
    pub workplace: Workplace,
}

impl Peer {
    /// Whether a user's token may be presented here; else what to do instead.
    ///
    /// # Errors
    /// The connection belongs to a run, or its holder is not known.
    pub fn check_users_token(&self) -> Result<(), &'static str> {
        if self.socket_of.is_some() {
            return Err("this is the socket of a run, which takes the token of that run only; a run finds it in \
                        MATSU_SESSION_TOKEN");
        }
        match self.ancestry {
            Ancestry::Clear => Ok(()),
            Ancestry::OfRun(_) => Err("this process belongs to a run that Matsu started, and a run may not use a \
                                       user's token; use the run's own from MATSU_SESSION_TOKEN"),
            Ancestry::Gone => Err("the process that opened this connection has ended, so its holder is unknown; \
                                   connect again"),
        }
    }

    /// Whether the token of this run may be presented here.
    ///
    /// # Errors
    /// It is another run's socket.
    pub fn check_runs_token(&self, token: &str) -> Result<(), &'static str> {
        match &self.socket_of {
            Some(run) if !run.token.matches(token) => {
                Err("this is the socket of another run; a run presents its own token at its own socket")
            }
            _ => Ok(()),
        }
    }
}

/// Names the directory that a command was started in, as [`header_of`] writes it.
pub const DIRECTORY: &str = "matsu-directory";

/// A path as the value of a header: bytes that a header cannot have, and `%` itself, as `%` and two digits.
#[must_use]
pub fn header_of(path: &Path) -> String {
    let is_plain = |byte: u8| (byte.is_ascii_graphic() || byte == b' ') && byte != b'%';
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.map(|byte| if is_plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The path that such a value names. Bytes that are no text are taken as they are, too.
fn path_of(value: &[u8]) -> PathBuf {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut bytes, mut rest) = (Vec::with_capacity(value.len()), value);
    while let [first, after @ ..] = rest {
        let pair = after.first().and_then(digit).zip(after.get(1).and_then(digit)).filter(|_| *first == b'%');
        match pair {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Notes the client's directory, for the guard and the handlers behind it.
pub async fn note(Extension(peer): Extension<Peer>, mut request: Request, next: Next) -> Response {
    let directory = request.headers().get(DIRECTORY).map(|value| path_of(value.as_bytes()));
    let directory = directory.filter(|_| peer.socket_of.is_none());
    let workplace = Workplace { roots: directory.iter().cloned().collect(), cwd: directory, project: None };
    request.extensions_mut().insert(Peer { workplace, ..peer });
    next.run(request).await
}

/// What the supervisor of a run writes before the bytes of its client.
#[derive(Deserialize)]
struct Forward {
    matsu_run: RunId,
    key: String,
}

/// A connection and what it began with.
pub struct Arrived {
    pub peer: Peer,
    /// A line that was read and is not the supervisor's: the preamble of a relay.
    pub preamble: Option<String>,
}

/// Reads the supervisor's line, if there is one. `None`: nothing came, or what came is refused.
///
/// # Errors
/// A stream that breaks.
pub async fn arrive<R>(app: &App, peer: Peer, reader: &mut R) -> io::Result<Option<Arrived>>
where
    R: AsyncBufRead + Unpin,
{
    match reader.fill_buf().await? {
        [] => return Ok(None),
        [b'{', ..] => {}
        _ => return Ok(Some(Arrived { peer, preamble: None })),
    }
    let line = first_line(reader).await?;
    let Ok(forward) = serde_json::from_str::<Forward>(&line) else {
        return Ok(Some(Arrived { peer, preamble: Some(line) }));
    };
    let run = live_run(app, &forward.matsu_run).await.filter(|run| run.socket_key.matches(&forward.key));
    let Some(run) = run else {
        tracing::warn!(run = %forward.matsu_run, "a connection was forwarded for a run that is over, or with a wrong key");
        return Ok(None);
    };
    let peer = Peer { socket_of: Some(run), ..Peer::default() };
    match reader.fill_buf().await? {
        [] => Ok(None),
        [b'{', ..] => Ok(Some(Arrived { peer, preamble: Some(first_line(reader).await?) })),
        _ => Ok(Some(Arrived { peer, preamble: None })),
    }
}

/// A run that was started by another daemon may not have been taken over yet.
async fn live_run(app: &App, id: &RunId) -> Option<RunHandle> {
    let runtime = app.runtime();
    let until = runtime.clock().instant() + ADOPTION_MAX;
    loop {
        if let Some(run) = Agents::of(runtime).live_runs().by_id(id) {
            return Some(run);
        }
        let now = runtime.clock().now();
        let is_live = matches!(Sessions::of(runtime).of_run(id).await, Ok(Some(session)) if session.is_live(now));
        if !is_live || runtime.clock().instant() >= until {
            return None;
        }
        runtime.clock().sleep(LOOK_EVERY).await;
    }
}

/// Whether the first line of a connection is that of a run's supervisor.
#[must_use]
pub fn is_of_supervisor(line: &str) -> bool {
    serde_json::from_str::<Forward>(line).is_ok()
}

async fn first_line<R: AsyncBufRead + Unpin>(reader: &mut R) -> io::Result<String> {
    let mut line = String::new();
    reader.take(FIRST_LINE_BYTES_MAX).read_line(&mut line).await?;
    Ok(line)
}

/// What the kernel reports about the process that connected.
pub async fn ancestry(app: &App, stream: &UnixStream) -> Ancestry {
    let Some(pid) = stream.peer_cred().ok().and_then(|peer| peer.pid()) else { return Ancestry::Clear };
    // Zero: it is outside of what this process can see, as when the socket is shared with another container.
    if pid == 0 || !std::path::Path::new("/proc/self/stat").exists() {
        return Ancestry::Clear;
    }
    let Some(peer) = Process::read(pid).filter(|process| !process.has_ended) else { return Ancestry::Gone };
    let mut process = peer;
    for _ in 0..DEPTH_MAX {
        if let Some(found) = mark_of(&environment_of(process.pid))
            && let Some(ancestry) = whose(app, &found).await
        {
            return ancestry;
        }
        if process.parent <= 1 {
            break;
        }
        // A parent that ends meanwhile has left its children to another: what was read is no longer true.
        let Some(parent) = Process::read(process.parent) else { return Ancestry::Gone };
        process = parent;
    }
    // A process that is just ending has no environment any more, and so no mark; it is gone a moment later.
    if environment_of(pid).is_empty() {
        app.runtime().clock().sleep(ENDING_MAX).await;
    }
    match Process::read(pid) {
        Some(now) if !now.has_ended && now.started == peer.started => Ancestry::Clear,
        _ => Ancestry::Gone,
    }
}

/// Whose mark it is. `None`: a run of another store, which means nothing here.
async fn whose(app: &App, mark: &str) -> Option<Ancestry> {
    let runtime = app.runtime();
    let run = RunId::from_text(mark);
    if Agents::of(runtime).live_runs().by_id(&run).is_some() {
        return Some(Ancestry::OfRun(Some(run)));
    }
    // A store that does not answer is taken to know it.
    if !matches!(Sessions::of(runtime).of_run(&run).await, Ok(None)) {
        return Some(Ancestry::OfRun(None));
    }
    let (job, attempt) = mark.rsplit_once('.')?;
    if let Some(run) = attempt.parse().ok().and_then(|attempt| Agents::of(runtime).live_runs().find(job, attempt)) {
        return Some(Ancestry::OfRun(Some(run.run_id)));
    }
    Agents::of(runtime).knows_job(&JobId::from_text(job)).await.then_some(Ancestry::OfRun(None))
}

fn environment_of(pid: i32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

fn mark_of(environment: &[u8]) -> Option<String> {
    let mut entries = environment.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
    entries.find_map(|entry| entry.strip_prefix(MARKER)?.strip_prefix('=')).map(str::to_owned)
}

/// What the kernel reports about one process.
#[derive(Clone, Copy)]
struct Process {
    pid: i32,
    parent: i32,
    /// Ticks since the start of the machine; another process with the same number has started later.
    started: u64,
    has_ended: bool,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `pid (name) state parent …`, the start is field 22. The name may hold anything.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
        let has_ended = matches!(fields.next()?, "Z" | "X" | "x");
        let parent = fields.next()?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self { pid, parent, started, has_ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestry_only_takes_rights_away() {
        let peer = |ancestry| Peer { ancestry, ..Peer::default() };
        assert!(peer(Ancestry::Clear).check_users_token().is_ok());
        for ancestry in [Ancestry::OfRun(None), Ancestry::OfRun(Some(RunId::from_text("run_1"))), Ancestry::Gone] {
            assert!(peer(ancestry.clone()).check_users_token().is_err(), "{ancestry:?}");
        }
    }

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let stat = "7 (a) R 1 (b) S 42 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 1";
        let read = Process::parse(7, stat).unwrap();
        assert_eq!((read.pid, read.parent, read.started, read.has_ended), (7, 42, 98765, false));
        assert!(Process::parse(7, &stat.replace(" S 42", " Z 42")).unwrap().has_ended);
        assert!(Process::parse(7, "7 (a) S").is_none());
        let own = Process::read(std::process::id().cast_signed()).unwrap();
        assert!(own.parent > 0 && own.started > 0);
    }

    #[test]
    fn a_directory_of_any_name_passes_through_a_header() {
        for name in ["/tmp/x", "/tmp/日本 語", "/tmp/100%41", "/tmp/a\nb", "/tmp/%"] {
            let header = header_of(Path::new(name));
            assert!(axum::http::HeaderValue::from_str(&header).is_ok(), "{header}");
            assert_eq!(path_of(header.as_bytes()), Path::new(name));
        }
        let odd = PathBuf::from(OsString::from_vec(b"/tmp/\xff\xfe".to_vec()));
        assert_eq!(path_of(header_of(&odd).as_bytes()), odd);
        assert_eq!(path_of("/tmp/日本".as_bytes()), Path::new("/tmp/日本"));
    }

    #[test]
    fn the_line_of_a_supervisor_and_the_preamble_of_a_relay_are_distinguished() {
        let forward = r#"{"matsu_run":"run_1","key":"k"}"#;
        assert!(serde_json::from_str::<Forward>(forward).is_ok_and(|read| read.matsu_run.as_str() == "run_1"));
        let preamble = r#"{"version":"1","instance":"i","tools":"core","hold":null,"key":"k"}"#;
        assert!(serde_json::from_str::<Forward>(preamble).is_err());
    }
}
