//! The folder of a run: what it sees (`inside`, `tmp`, `home`), what only Matsu sees (`outside`), and beside it the
//! lock that its shim holds.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use matsu_core::id::JobId;
use matsu_core::job::Lease;

use super::git::remove_folder;

/// Leftovers younger than this may belong to a run that is just starting.
const LEFT_FOR: Duration = Duration::from_secs(600);

/// All runs of one data directory.
#[derive(Clone, Debug)]
pub struct RunsFolder {
    root: PathBuf,
}

impl RunsFolder {
    pub fn new(data_dir: &Path) -> Self {
        Self { root: data_dir.join("runs") }
    }

    pub fn lock(&self, lease: &Lease) -> PathBuf {
        self.root.join(format!("{}.{}.lock", lease.job_id, lease.attempt))
    }

    pub fn make(&self, lease: &Lease) -> io::Result<RunFolder> {
        let path = self.root.join(format!("{}.{}", lease.job_id, lease.attempt));
        let folder = RunFolder { path };
        for part in [folder.inside(), folder.outside(), folder.tmp(), folder.home(), folder.root()] {
            make_private(&part)?;
        }
        Ok(folder)
    }

    /// Runs whose shim still holds its lock, and runs whose shim does not.
    pub fn held_and_left(&self) -> (Vec<Lease>, Vec<Lease>) {
        let (held, left): (Vec<_>, Vec<_>) = self.locks().into_iter().partition(|(path, _)| is_held(path));
        let leases = |locks: Vec<(PathBuf, Lease)>| locks.into_iter().map(|(_, lease)| lease).collect();
        (leases(held), leases(left))
    }

    /// Removes what runs have left whose shim is gone, from the last life of this directory.
    pub fn sweep(&self) {
        for (path, lease) in self.locks() {
            if !is_held(&path) && is_old(&path) {
                let _ = fs::remove_file(&path);
                let _ = remove_folder(&self.root.join(format!("{}.{}", lease.job_id, lease.attempt)));
            }
        }
    }

    fn locks(&self) -> Vec<(PathBuf, Lease)> {
        let Ok(entries) = fs::read_dir(&self.root) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.filter_map(|path| lease_of(&path).map(|lease| (path, lease))).collect()
    }
}

fn lease_of(path: &Path) -> Option<Lease> {
    let (job, attempt) = path.file_name()?.to_str()?.strip_suffix(".lock")?.rsplit_once('.')?;
    Some(Lease { job_id: JobId::from_text(job), attempt: attempt.parse().ok()? })
}

fn is_held(path: &Path) -> bool {
    // Shared, so that two who look do not take each other for the shim.
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn is_old(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > LEFT_FOR)
}

/// A folder for its user alone.
pub fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
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

/// One run's folder; goes with it.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// What the run sees of it: its prompt, its files, its socket.
    pub fn inside(&self) -> PathBuf {
        self.path.join("inside")
    }

    /// What only Matsu sees: the layers of its state.
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

    /// Where the view of a sealed run is built.
    pub fn root(&self) -> PathBuf {
        self.path.join("root")
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // The layers of an ordinary user hold a folder that its owner must open first.
        let _ = remove_folder(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_live_while_its_lock_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let runs = RunsFolder::new(folder.path());
        let lease = Lease { job_id: JobId::from_text("j_1"), attempt: 3 };
        let made = runs.make(&lease).unwrap();
        let file = fs::OpenOptions::new().create(true).write(true).truncate(true).open(runs.lock(&lease)).unwrap();
        assert_eq!(runs.held_and_left(), (vec![], vec![lease.clone()]));
        file.try_lock().unwrap();
        assert_eq!(runs.held_and_left(), (vec![lease.clone()], vec![]));
        drop(file);
        assert_eq!(runs.held_and_left(), (vec![], vec![lease]));
        let path = made.inside();
        drop(made);
        assert!(!path.exists());
    }
}
