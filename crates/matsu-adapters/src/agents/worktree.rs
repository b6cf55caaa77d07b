//! Isolation by git: a run that writes works in a repository of its own, with a fresh tree on a branch named for
//! people. Its objects are borrowed from the user's repository, which it can only read; hooks, settings and remotes are
//! not taken over. When its last process is gone, what it changed is made into a bundle inside a confinement, checked,
//! and stored in the user's repository as `refs/matsu/TASK/head` beside `/base`, and as the branch.
//!
//! If any of that fails, the folder stays and the report says where. What is known about it lies beside the tree, where
//! the run cannot write.

mod accept;
pub mod apply;
mod begun;
mod branch;
mod combine;
mod conflicts;
mod fresh;
mod harvest;
mod join;
pub mod kept;
mod known;
mod markers;
mod name;
mod note;
mod open;
mod roll_back;
mod snapshot;
mod source;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use matsu_core::run::{Changes, LeftWork};
use serde::{Deserialize, Serialize};

use super::confined::{Cell, View, confined};
use super::git::{Call, Git, Whose, printed};
use super::process::Input;
use super::runs_folder::write_durably;
use super::{git_paths, gitlinks};
use crate::agents::removal::{remove_folder, remove_later};
use accept::{Expected, Header, Quarantine};
pub use fresh::Fresh;
use harvest::{Harvest, Harvester, RESULT};
pub use note::Note;
use note::{index_of, note_of, read_note, save_note};
pub use open::{Earlier, OpenWish};

/// What making a bundle of the changes of a run may take.
#[derive(Clone, Copy, Debug)]
pub struct BundleLimits {
    pub bytes_max: u64,
    pub within: Duration,
}

/// A tree in use.
#[derive(Clone, Debug)]
pub struct Worktree {
    git: Git,
    cell: Cell,
    note: Note,
    pub path: PathBuf,
    /// The wished directory, inside the tree.
    pub directory: PathBuf,
    limits: BundleLimits,
}

/// A tree without a single entry, not even its `.git`, was emptied from outside.
fn is_gone(tree: &Path) -> bool {
    std::fs::read_dir(tree).map_or(true, |mut entries| entries.next().is_none())
}

/// What a run leaves behind.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Closed {
    pub changes: Option<Changes>,
    pub left: Option<LeftWork>,
    /// The folder was removed or emptied while the run used it, so what it did cannot be known.
    pub is_lost: bool,
}

impl Closed {
    pub fn read(record: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(record).ok()?).ok()
    }

    /// It is there whole, also when the machine loses power next, or not at all.
    fn write(&self, record: &Path) -> std::io::Result<()> {
        write_durably(record, &serde_json::to_string(self).map_err(std::io::Error::other)?)
    }
}

impl Worktree {
    /// The user's objects, which the run reads and cannot write.
    pub fn borrowed(&self) -> Vec<PathBuf> {
        self.note.lenders()
    }

    /// The top of the user's tree.
    pub fn repository(&self) -> &Path {
        &self.note.repository
    }

    pub fn is_prepared(&self) -> bool {
        !self.note.is_unprepared
    }

    /// Nothing in it is the work of a run.
    pub fn is_users(&self) -> bool {
        self.note.is_users
    }

    /// Copies and setup are made. What is ignored by now is not the run's.
    ///
    /// # Errors
    /// Git, or the disk.
    pub async fn set_prepared(&mut self) -> Result<(), String> {
        self.note.ignored_before = self.git.ignored(&self.cell, &self.path, self.note.lenders()).await?;
        let submodules = gitlinks::submodules(&self.path.join(".git"))?;
        let filled = submodules.iter().filter(|path| harvest::is_filled(&self.path.join(path)));
        self.note.filled_before = filled.map(|path| harvest::shown(path.as_os_str().as_bytes())).collect();
        self.note.is_unprepared = false;
        save_note(&self.path, &self.note)
    }

    pub fn branch(&self) -> &str {
        &self.note.branch
    }

    pub fn base(&self) -> &str {
        &self.note.base
    }

    /// Where the run begins: the base, or where the conversation's last run ended.
    pub fn start(&self) -> Option<&str> {
        Some(self.note.earlier.as_deref().unwrap_or(&self.note.base)).filter(|start| !start.is_empty())
    }

    /// Takes over what the run has changed and removes the folder, or says where the folder stays and why. What was taken
    /// over is written to `record` before the folder goes: a daemon that ends in between leaves it to the next, and no
    /// folder is taken over twice.
    pub async fn close(self, message: &str, record: &Path) -> Closed {
        if let Some(closed) = Closed::read(record) {
            return self.clear(closed);
        }
        if is_gone(&self.path) {
            tracing::warn!(folder = %self.path.display(), "the folder of a run was removed while the run used it");
            self.discard().await;
            return Closed { is_lost: true, ..Closed::default() };
        }
        let taken = self.take_over(message).await;
        let _ = remove_folder(&self.cell.scratch);
        let folder = self.path.display().to_string();
        let closed = match taken {
            Ok((changes, why)) => {
                Closed { changes: Some(changes), left: why.map(|why| self.kept(&why)), is_lost: false }
            }
            Err(error) => {
                tracing::warn!(error, folder, "the changes of a run could not be taken over; its folder stays");
                let why = format!(
                    "the changes could not be taken over: {error}. The .git in there is the run's own and may start \
                     programs: copy the files out, and do not use git in that folder"
                );
                return Closed { changes: None, left: Some(LeftWork { folder, why }), is_lost: false };
            }
        };
        if let Err(error) = closed.write(record) {
            tracing::warn!(%error, folder = %self.path.display(), "the changes of a run cannot be recorded; its folder stays");
            let why = format!("the record of the changes cannot be written: {error}");
            let left = Some(LeftWork { folder: self.path.display().to_string(), why });
            return Closed { left, ..closed };
        }
        self.clear(closed)
    }

    /// What was taken over is in the branch; the rest of the tree is kept for some time.
    fn kept(&self, why: &str) -> LeftWork {
        let (days, gigabytes) = (kept::DAYS, kept::GIGABYTES);
        let folder = kept::place(&self.path, &self.cell.confiner.layout().data_dir).display().to_string();
        let why = format!("{why}. The folder is kept for {days} days, or until kept folders use {gigabytes} GB");
        LeftWork { folder, why }
    }

    /// Removes the tree, or moves it to where it is kept.
    fn clear(&self, closed: Closed) -> Closed {
        let cleared = match &closed.left {
            Some(left) if self.path.exists() => kept::keep(&self.path, Path::new(&left.folder)),
            _ => Ok(()),
        };
        match cleared.and_then(|()| self.remove()) {
            Ok(()) => {
                kept::sweep(&self.cell.confiner.layout().data_dir);
                closed
            }
            Err(error) => {
                let folder = self.path.display().to_string();
                let why = closed.left.as_ref().map_or_else(String::new, |left| format!("{}; ", left.why));
                let left = LeftWork { folder, why: format!("{why}the folder could not be moved or removed: {error}") };
                Closed { left: Some(left), ..closed }
            }
        }
    }

    /// Removes a tree in which nothing has run.
    pub async fn discard(self) {
        self.forget_base().await;
        let _ = remove_folder(&self.cell.scratch);
        let _ = self.remove();
    }

    fn remove(&self) -> std::io::Result<()> {
        remove_later(&self.path, &self.cell.confiner.layout().data_dir)?;
        for beside in [note_of(&self.path), index_of(&self.path)] {
            remove_folder(&beside)?;
        }
        Ok(())
    }

    /// What was changed, and why the folder must stay nevertheless.
    async fn take_over(&self, message: &str) -> Result<(Changes, Option<String>), String> {
        let (git, cell, tree, note, limits) = (&self.git, &self.cell, &self.path, &self.note, self.limits);
        let harvest = Harvester { git, cell, tree, note, message, limits }.harvest().await?;
        let changes = match &harvest.bundle {
            None => self.unchanged(&harvest).await,
            Some(bundle) => self.accept(bundle, &harvest).await?,
        };
        let mut left = Vec::new();
        if !harvest.left_out.is_empty() {
            left.push(format!("submodules and repositories inside the tree: {}", harvest.left_out.join(", ")));
        }
        if self.path.join(".git/lfs/objects").symlink_metadata().is_ok() {
            left.push("files of git-lfs, in .git/lfs".to_owned());
        }
        if !harvest.ignored.is_empty() {
            left.push(format!("ignored files: {}", harvest.ignored.join(", ")));
        }
        let why = (!left.is_empty()).then(|| format!("these were not taken over: {}", left.join("; ")));
        Ok((changes, why))
    }

    fn changes(&self, head: &str, branch: String, counted: (u64, u64, u64), harvest: &Harvest) -> Changes {
        Changes {
            base: self.note.base.clone(),
            head: head.to_owned(),
            branch,
            files: counted.0,
            insertions: counted.1,
            deletions: counted.2,
            uncommitted_at_start: self.note.uncommitted.unwrap_or(0),
            has_uncommitted: self.note.has_uncommitted,
            not_in_base: self.note.not_in_base.clone(),
            repository: self.note.repository.display().to_string(),
            directory: self.note.inside.display().to_string(),
            left_out: harvest.left_out.clone(),
            ignored: harvest.ignored.clone(),
        }
    }

    /// A run without changes leaves no reference. One that goes on with an earlier run leaves that one's.
    async fn unchanged(&self, harvest: &Harvest) -> Changes {
        self.forget_base().await;
        self.changes(&self.note.base, String::new(), (0, 0, 0), harvest)
    }

    async fn accept(&self, bundle: &Path, harvest: &Harvest) -> Result<Changes, String> {
        let note = &self.note;
        let quarantine = Quarantine {
            git: &self.git,
            folder: self.cell.scratch.join("quarantine.git"),
            format: note.format,
            objects: note.lenders(),
            shallow: note.shallow.clone(),
        };
        let _ = remove_folder(&quarantine.folder);
        quarantine.open()?;
        let (base, known, bytes_max) = (note.base.as_str(), note.known.as_deref(), self.limits.bytes_max);
        let header = quarantine.take(bundle, &Expected { reference: RESULT, known, base, bytes_max }).await?;
        let counted = quarantine.count(base, &header.head).await?;
        self.give(&quarantine, bundle, &header).await?;
        let lines = format!("update {0}/head {1}\nupdate {0}/base {2}\n", note.refs, header.head, base);
        self.update_refs(&lines).await?;
        let branch = self.set_branch(&header.head).await;
        if let Some(caller) = &note.caller {
            self.give_to_caller(caller, bundle, &branch).await;
        }
        Ok(self.changes(&header.head, branch, counted, harvest))
    }

    /// The user's repository and nothing else of the user's: a run may have made it, with links that lead out of it.
    fn of_repository(&self) -> View {
        let mut read = self.note.lenders();
        read.extend(self.git.user_files());
        View { read, write: vec![self.note.common.clone()] }
    }

    /// Gives checked objects to the user's repository.
    async fn give(&self, quarantine: &Quarantine<'_>, bundle: &Path, header: &Header) -> Result<(), String> {
        git_paths::check_plain(&self.note.common)?;
        let mut view = self.of_repository();
        view.read.push(self.cell.scratch.clone());
        let call = quarantine.indexing(&self.note.objects, bundle, header.offset, self.limits.bytes_max)?;
        let answered = self.git.ask_confined(&self.cell, view, call).await?;
        printed("index-pack", answered).map(drop)
    }

    /// All of them or none.
    async fn update_refs(&self, lines: &str) -> Result<(), String> {
        git_paths::check_plain(&self.note.common)?;
        let call = Call::new(Whose::Users, &self.note.common, &["update-ref", "--no-deref", "--stdin"]);
        let call = call.stdin(Input::Bytes(format!("start\n{lines}prepare\ncommit\n").into_bytes()));
        let answered = self.git.ask_confined(&self.cell, self.of_repository(), call).await?;
        printed("update-ref", answered).map(drop)
    }

    async fn forget_base(&self) {
        let base = format!("{}/base", self.note.refs);
        let _ = self.update_refs(&format!("delete {base}\n")).await;
    }

    /// The branch that shows the work: the run's own name, a longer one if a person has moved or taken that, and the
    /// plain reference where the user's own branches take both names.
    async fn set_branch(&self, head: &str) -> String {
        let note = &self.note;
        let old = note.earlier.clone().unwrap_or_else(|| "0".repeat(note.base.len()));
        if self.update_refs(&format!("update refs/heads/{} {head} {old}\n", note.branch)).await.is_ok() {
            return note.branch.clone();
        }
        let made = self.update_refs(&format!("create refs/heads/{} {head}\n", note.longer_branch)).await;
        match made {
            Ok(()) => note.longer_branch.clone(),
            Err(error) => {
                tracing::warn!(error, "a branch could not be made");
                format!("{}/head", note.refs)
            }
        }
    }

    /// Inside the confinement of a run, in its own tree: the branch of a run that it asked for.
    async fn give_to_caller(&self, caller: &Path, bundle: &Path, branch: &str) {
        let given = open::fetch_into(&self.git, &self.cell, caller, bundle, branch, &self.note).await;
        if let Err(error) = given {
            tracing::info!(error, branch, "a run's branch is in the user's repository, not in its caller's");
        }
    }
}

impl Git {
    /// Ignored files and folders of a tree of ours.
    ///
    /// # Errors
    /// Git failed, or cannot be confined.
    pub async fn ignored(&self, cell: &Cell, tree: &Path, borrowed: Vec<PathBuf>) -> Result<Vec<String>, String> {
        let script = "git ls-files --others --ignored --exclude-standard --directory -z | head -c 100000";
        let work = open::sh(script, open::script_env(self, &[]), tree, 200_000, None);
        let done = confined(cell, work, View { read: borrowed, write: vec![tree.to_owned()] }).await?;
        let names = done.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(harvest::shown).collect())
    }
}
