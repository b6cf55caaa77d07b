//! Who is at the other end of the socket: a process of a run is that run, whatever it says of itself.

use std::path::PathBuf;

use axum::extract::{Extension, Request};
use axum::middleware::Next;
use axum::response::Response;
use matsu_core::id::JobId;
use matsu_runtime::agents::RunSeat;
use matsu_runtime::tool::Workplace;
use tokio::net::UnixStream;

use crate::app::App;

/// The variable that every process of a run inherits: job and attempt.
const MARKER: &str = "MATSU_RUN";

/// No tree of processes is deeper; a longer chain would be a loop.
const DEPTH_MAX: usize = 64;

/// What a connection on the socket says about its other end.
#[derive(Clone, Default)]
pub struct Peer {
    pub run: Option<RunSeat>,
    /// The directory of a person at a terminal; a process of a run has no say in where others may work.
    pub workplace: Workplace,
}

/// Names the directory that a command was started in.
pub const DIRECTORY: &str = "matsu-directory";

/// Notes what the connection says, for the handlers behind it.
pub async fn note(Extension(run): Extension<Option<RunSeat>>, mut request: Request, next: Next) -> Response {
    let directory = request.headers().get(DIRECTORY).and_then(|value| value.to_str().ok()).map(PathBuf::from);
    let directory = directory.filter(|_| run.is_none());
    let workplace = Workplace { roots: directory.iter().cloned().collect(), cwd: directory };
    request.extensions_mut().insert(Peer { run, workplace });
    next.run(request).await
}

/// Whose process is at the other end of the socket.
pub enum Whose {
    /// The store's own user's.
    Users,
    Runs(RunSeat),
    /// A run's that is over; it has nothing to say here any more.
    Leftover,
}

/// It, or a process above it, carries a run's mark.
pub async fn whose(app: &App, stream: &UnixStream) -> Whose {
    let Some(mut pid) = stream.peer_cred().ok().and_then(|peer| peer.pid()) else { return Whose::Users };
    for _ in 0..DEPTH_MAX {
        if let Some((job, attempt)) = mark_of(pid) {
            if let Some(run) = app.runtime().live_runs().find(&job, attempt) {
                return Whose::Runs(run);
            }
            // A mark of another store's run means nothing here.
            if app.runtime().knows_job(&JobId::from_text(job)).await {
                return Whose::Leftover;
            }
        }
        match parent_of(pid).filter(|parent| *parent > 1) {
            Some(parent) => pid = parent,
            None => break,
        }
    }
    Whose::Users
}

fn mark_of(pid: i32) -> Option<(String, i64)> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut entries = environment.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
    let mark = entries.find_map(|entry| entry.strip_prefix(MARKER)?.strip_prefix('='))?;
    let (job, attempt) = mark.rsplit_once('.')?;
    Some((job.to_owned(), attempt.parse().ok()?))
}

/// `pid (name) state ppid …`
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.get(stat.rfind(')')? + 1..)?.split_whitespace().nth(1)?.parse().ok()
}
