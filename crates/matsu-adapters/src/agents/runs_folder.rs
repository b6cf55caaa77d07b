//! The folders of runs. What a run sees of its own: `inside`, `tmp`, `home`. What only Matsu sees: `outside`, with the
//! record, the order, the lock, the control socket, the spool and the exit record.
//!
//! A folder stays until the end of its job is stored, so that whatever happens in between the next daemon finds how the
//! run ended and never begins it a second time.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use matsu_core::confinement::Confinement;
use matsu_core::id::{JobId, RunId, SessionId};
use matsu_core::receipt::CheckFacts;
use matsu_core::usage::Usage;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use tokio::net::UnixListener;

use super::place::Place;
use crate::agents::removal::remove_later;

/// A folder without a record that is younger than this may belong to a run that is just starting.
const LEFT_FOR: Duration = Duration::from_secs(600);

/// What a daemon must know to go on with a run that another one started. Not to be printed: it holds secrets.
#[derive(Clone, Serialize, Deserialize)]
pub struct RunRecord {
    pub run_id: RunId,
    /// Where its job is.
    pub store: String,
    pub job_id: JobId,
    /// The attempt that started it. Output of earlier attempts is not this run's.
    pub attempt: i64,
    pub session_id: SessionId,
    pub agent: String,
    pub level: Confinement,
    pub place: Place,
    pub usage_before: Option<Usage>,
    /// The name of the conversation, where Matsu chooses it.
    pub chosen_session: Option<String>,
    /// The conversation that it goes on with.
    pub resumed_session: Option<String>,
    pub token: String,
    pub socket_key: String,
    /// What the supervisor asks for at its control socket.
    pub secret: String,
    /// Which start of the machine it began in.
    pub boot_id: String,
    /// Set where the program is a check, and not the agent.
    #[serde(default)]
    pub check: Option<CheckFacts>,
}

/// All runs of one data directory.
pub struct RunsFolder {
    root: PathBuf,
    store: String,
    /// Records that were read: they never change, and a daemon that takes over many runs looks for each among all.
    known: Mutex<HashMap<PathBuf, Arc<RunRecord>>>,
}

impl RunsFolder {
    pub fn new(data_dir: &Path, store: &str) -> Self {
        Self { root: data_dir.join("runs"), store: store.to_owned(), known: Mutex::default() }
    }

    pub fn make(&self, run: &RunId) -> io::Result<RunFolder> {
        let folder = RunFolder::of(&self.root.join(run.as_str()));
        for part in [folder.inside(), folder.spool(), folder.tmp(), folder.home(), folder.root()] {
            make_private(&part)?;
        }
        Ok(folder)
    }

    /// What is left of the runs of a job, the newest first.
    pub fn of_job(&self, job: &JobId) -> Vec<(RunFolder, Arc<RunRecord>)> {
        let mut found: Vec<_> = self.all().into_iter().filter(|(_, record)| record.job_id == *job).collect();
        found.sort_by(|(_, a), (_, b)| b.run_id.as_str().cmp(a.run_id.as_str()));
        found
    }

    /// Every run of this store that has a record.
    pub fn all(&self) -> Vec<(RunFolder, Arc<RunRecord>)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *known);
        let mut found = Vec::new();
        for folder in self.folders() {
            let record = before.remove(folder.path()).or_else(|| folder.record().map(Arc::new));
            if let Some(record) = record {
                known.insert(folder.path().to_owned(), Arc::clone(&record));
                found.push((folder, record));
            }
        }
        found.retain(|(_, record)| record.store == self.store);
        found
    }

    /// Removes what has no record and is not being started.
    pub fn sweep(&self) {
        for folder in self.folders() {
            if folder.record().is_none() && !folder.is_held() && is_old(&folder.path) {
                folder.remove();
            }
        }
    }

    fn folders(&self) -> Vec<RunFolder> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Vec::new() };
        let folders = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| RunFolder { path: entry.path() }).collect()
    }
}

fn is_old(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > LEFT_FOR)
}

/// A socket in a folder, for its user alone. The folder's path may be longer than an address can be, about 100 bytes,
/// so the socket is bound by way of the folder's descriptor.
pub fn bind_in(folder: &Path, name: &str) -> io::Result<UnixListener> {
    let folder = rustix::fs::open(folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// The other end of [`bind_in`].
pub fn connect_in(folder: &Path, name: &str) -> io::Result<std::os::unix::net::UnixStream> {
    let folder = rustix::fs::open(folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    std::os::unix::net::UnixStream::connect(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
}

/// A folder for its user alone.
pub fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Such a file that is there whole or not at all, also after a loss of power.
pub fn write_durably(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_added_extension("new");
    write_private(&unfinished, text)?;
    File::open(&unfinished)?.sync_all()?;
    fs::rename(unfinished, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// A file for its user alone, with the folders above it.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    if let Some(folder) = path.parent() {
        make_private(folder)?;
    }
    let mut file = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// One run's folder.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    fn of(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// A folder that a daemon has made.
    pub fn at(path: &Path) -> Self {
        Self::of(path)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run sees of it: its prompt, its files, its socket.
    pub fn inside(&self) -> PathBuf {
        self.path.join("inside")
    }

    /// What only Matsu sees.
    pub fn outside(&self) -> PathBuf {
        self.path.join("outside")
    }

    pub fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// What a sealed run has for a home folder.
    pub fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// The fresh checkout that a check works in.
    pub fn tree(&self) -> PathBuf {
        self.path.join("tree")
    }

    /// Where the view of a sealed run is built.
    pub fn root(&self) -> PathBuf {
        self.path.join("root")
    }

    /// What the supervisor is to do.
    pub fn order(&self) -> PathBuf {
        self.outside().join("order.json")
    }

    /// There is one once the program may have begun.
    pub fn begun(&self) -> PathBuf {
        self.outside().join("begun")
    }

    pub fn exit_record(&self) -> PathBuf {
        self.outside().join("exit.json")
    }

    /// What a daemon knew of a long stream whose beginning is removed.
    pub fn snapshot(&self) -> PathBuf {
        self.outside().join("stream.json")
    }

    /// What was taken over of the run's tree.
    pub fn closed(&self) -> PathBuf {
        self.outside().join("closed.json")
    }

    pub fn spool(&self) -> PathBuf {
        self.outside().join("spool")
    }

    fn lock_path(&self) -> PathBuf {
        self.outside().join("lock")
    }

    /// Takes the lock for the supervisor, before anything else can be seen of the run.
    pub fn lock(&self) -> io::Result<File> {
        let mut options = fs::OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(self.lock_path())?;
        file.try_lock().map_err(io::Error::other)?;
        Ok(file)
    }

    /// Whether a supervisor is at work.
    pub fn is_held(&self) -> bool {
        // Shared, so that two that look do not take each other for the supervisor.
        match File::open(self.lock_path()) {
            Ok(file) => matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)),
            // Any other error, as of too many open files, says nothing about the supervisor: it is not taken for gone.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    pub fn write_record(&self, record: &RunRecord) -> io::Result<()> {
        let text = serde_json::to_string(record).map_err(io::Error::other)?;
        // A machine that loses power must find it again: without a record the run would count as never begun.
        write_durably(&self.outside().join("run.json"), &text)
    }

    pub fn record(&self) -> Option<RunRecord> {
        serde_json::from_str(&fs::read_to_string(self.outside().join("run.json")).ok()?).ok()
    }

    pub fn remove(&self) {
        // The layers of an ordinary user hold a folder that its owner must open first.
        let data_dir = self.path.parent().and_then(Path::parent).unwrap_or(&self.path);
        let _ = remove_later(&self.path, data_dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_held_while_its_lock_is() {
        let folder = tempfile::tempdir().unwrap();
        let runs = RunsFolder::new(folder.path(), "store");
        let made = runs.make(&RunId::from_text("run_1")).unwrap();
        assert!(!made.is_held());
        let lock = made.lock().unwrap();
        assert!(made.is_held());
        assert!(made.lock().is_err(), "it is locked once");
        let inherited = lock.try_clone().unwrap();
        drop(lock);
        assert!(made.is_held(), "a process that inherits it holds it");
        drop(inherited);
        assert!(!made.is_held());
        runs.sweep();
        assert!(made.inside().exists(), "it may be just starting");
        made.remove();
        assert!(!made.inside().exists());
    }
}
