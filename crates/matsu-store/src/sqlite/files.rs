//! Lock files. A lock belongs to an open file and ends with its process, whatever way that ends, so it cannot lie.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::NodeId;
use matsu_core::ports::store::StoreError;

use crate::sql::internal;

/// How long a migration waits for other processes to close the store.
pub const ALONE_TRIES: u32 = 60;
pub const ALONE_PAUSE: Duration = Duration::from_millis(50);

/// How often a node tries to take its own lock, which an observer may be touching to see whether it is free.
const HOLD_TRIES: u32 = 100;
const HOLD_PAUSE: Duration = Duration::from_millis(1);

/// The folder of a store, readable by its user alone.
pub fn make_private_folder(store: &Path) -> Result<(), StoreError> {
    let Some(folder) = store.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    if folder.exists() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| {
        let folder = folder.display();
        StoreError::Unavailable(format!(
            "cannot make the folder {folder}: {error}; choose another with --data-dir or --store"
        ))
    })
}

/// Creates a file that only its user can read, if it is not there. SQLite gives its log the same rights.
pub fn make_private_file(path: &Path) -> Result<(), StoreError> {
    // A file that is there and cannot be written is for SQLite to complain about.
    if path.exists() { Ok(()) } else { open(path).map(drop) }
}

/// Makes a finished file appear under its name, unless there is one already.
pub fn publish(finished: &Path, name: &Path) -> Result<(), StoreError> {
    let file = File::open(finished).and_then(|file| file.sync_all());
    file.map_err(|error| cannot(finished, &error))?;
    match fs::hard_link(finished, name) {
        Ok(()) => fs::remove_file(finished).map_err(|error| cannot(finished, &error)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(cannot(name, &error)),
        // Not every file system has links.
        Err(_) => fs::rename(finished, name).map_err(|error| cannot(name, &error)),
    }
}

fn cannot(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("{}: {error}", path.display()))
}

/// Beside the store: `PATH` + `suffix`.
pub fn beside(store: &Path, suffix: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn open(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| cannot(path, &error))
}

/// Marks that this process has the store open. Shared by all processes that have; exclusive while it is migrated.
pub struct OpenLock {
    path: PathBuf,
    file: File,
}

impl OpenLock {
    /// The lock of a store; nothing is held yet.
    pub fn of(store: &Path) -> Result<Self, StoreError> {
        let path = beside(store, ".open");
        Ok(Self { file: open(&path)?, path })
    }

    /// Holds it together with all other processes that have the store open. Waits for a migration; those are short.
    pub fn share(&self) -> Result<(), StoreError> {
        self.let_go()?;
        self.file.lock_shared().map_err(|error| cannot(&self.path, &error))
    }

    /// Takes the lock exclusively, if no other process has the store open. `false`: another process has it open. Then
    /// no lock is held, so that two processes that want to migrate do not wait for each other.
    pub fn try_alone(&self) -> Result<bool, StoreError> {
        self.let_go()?;
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(cannot(&self.path, &error)),
        }
    }

    /// The error when another process keeps the store open.
    pub fn busy(&self) -> StoreError {
        StoreError::Refused {
            code: ErrorCode::StoreBusy,
            message: format!(
                "the store must be migrated, and {} has it open; end that process and try again",
                holder_of(&self.path)
            ),
        }
    }

    fn let_go(&self) -> Result<(), StoreError> {
        self.file.unlock().map_err(|error| cannot(&self.path, &error))
    }
}

/// Waits a moment for another process, before there is a runtime to sleep on or where only a moment is needed.
#[expect(clippy::disallowed_methods, reason = "a short wait for another process, on a thread that may block")]
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Which process holds a lock on this file, as far as the kernel shows it.
fn holder_of(path: &Path) -> String {
    holder_pids(path).first().map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

#[cfg(target_os = "linux")]
fn holder_pids(path: &Path) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let Ok(inode) = fs::metadata(path).map(|meta| meta.ino()) else { return Vec::new() };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    // "1: FLOCK  ADVISORY  READ  4242 08:01:1234 0 EOF"
    let fields = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let ours = fields.filter(|fields| {
        fields.get(5).and_then(|device| device.rsplit(':').next()) == Some(inode.to_string().as_str())
    });
    ours.filter_map(|fields| fields.get(4)?.parse().ok()).collect()
}

#[cfg(not(target_os = "linux"))]
fn holder_pids(_path: &Path) -> Vec<u32> {
    Vec::new()
}

/// Whether this is the file that lies there, and not one that was removed.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let inode = |meta: fs::Metadata| (meta.dev(), meta.ino());
    match (file.metadata().map(inode), fs::metadata(path).map(inode)) {
        (Ok(ours), Ok(there)) => ours == there,
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// `nodes/<id>.lock`, one for each process that works on the store.
pub struct NodeLocks {
    folder: PathBuf,
    held: Mutex<HashMap<NodeId, File>>,
}

impl NodeLocks {
    pub fn beside(store: &Path) -> Self {
        let folder = store.parent().unwrap_or(Path::new("")).join("nodes");
        Self { folder, held: Mutex::new(HashMap::new()) }
    }

    /// Takes the lock of a node of this process, for as long as the process lives.
    pub fn hold(&self, id: &NodeId) -> Result<(), StoreError> {
        make_private_folder(&self.folder.join("any"))?;
        let path = self.path(id);
        for _ in 0..HOLD_TRIES {
            let file = open(&path)?;
            // The sweep of another process may have removed the file after it was made and before it was locked: then
            // no process could see the lock.
            if file.try_lock().is_ok() && is_at(&file, &path) {
                self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), file);
                return Ok(());
            }
            pause(HOLD_PAUSE);
        }
        Err(internal(format_args!("the lock of {id} is taken")))
    }

    /// Removes the files of nodes that are neither known nor alive.
    pub fn sweep(&self, known: &[NodeId]) {
        for id in self.ids().into_iter().filter(|id| !known.contains(id) && !self.is_held(id)) {
            let path = self.path(&id);
            // Locked while it is removed, so that its owner, if it is just starting, sees that it must begin anew.
            if let Ok(file) = File::open(&path)
                && file.try_lock().is_ok()
            {
                let _ = fs::remove_file(&path);
            }
        }
    }

    /// Whether no process holds the lock: the node is dead. A missing file counts as free, because its owner makes it
    /// first.
    pub fn is_free(&self, id: &NodeId) -> bool {
        match File::open(self.path(id)) {
            // Shared: two processes that look at the same moment must not take each other for the owner.
            Ok(file) => file.try_lock_shared().is_ok(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// Whether any node but ours is alive.
    pub fn others_live(&self) -> bool {
        self.ids().iter().any(|id| !self.is_held(id) && !self.is_free(id))
    }

    /// The nodes that have a lock file.
    fn ids(&self) -> Vec<NodeId> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| Some(NodeId::from_text(name.strip_suffix(".lock")?))).collect()
    }

    fn is_held(&self, id: &NodeId) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    pub fn remove(&self, id: &NodeId) {
        let _ = fs::remove_file(self.path(id));
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    fn path(&self, id: &NodeId) -> PathBuf {
        self.folder.join(format!("{id}.lock"))
    }
}
