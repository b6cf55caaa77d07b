//! A run's changes as a patch to read, and into the user's tree. Both are bytes from beginning to end: no file has to
//! be text, and none in any one encoding.
//!
//! Three trees are merged: the base, the user's tree as it is now, and the run's. The user's index is only copied.
//! If two changes touch the same lines, nothing is written, or the lines with conflict markers.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use matsu_core::ports::agent::{Applied, ApplyError};
use matsu_core::run::Changes;
use serde::{Deserialize, Serialize};

use super::super::confined::{Cell, View};
use super::super::git::{Call, Format, Git, PATCH_BYTES_MAX, Skeleton, Whose, copy_index, printed};
use super::super::git_paths;
use super::super::process::{Answered, Input};
use super::super::runs_folder::{make_private, write_private};
use crate::agents::removal::remove_folder;

/// Conflicts that are named.
const NAMES_MAX: usize = 20;

/// The user's repository, and a place of ours beside it for what is made on the way.
struct Merge<'a> {
    git: &'a Git,
    /// A run may have made the repository, so what starts programs of its settings works inside a confinement.
    cell: Cell,
    /// What git obeys there.
    repository: Vec<PathBuf>,
    changes: &'a Changes,
    top: PathBuf,
    git_dir: PathBuf,
    common: PathBuf,
    objects: PathBuf,
    /// Objects that are read and not written.
    lenders: Vec<PathBuf>,
    scratch: PathBuf,
}

impl Git {
    /// The patch, with the attributes of the base and without any program of a configuration.
    ///
    /// # Errors
    /// The repository or its commits are gone, or the patch is too large to show.
    pub async fn diff(&self, cell: Cell, changes: &Changes) -> Result<Vec<u8>, String> {
        let merge = Merge::new(self, cell, changes).await?;
        let folder = merge.scratch.join("view.git");
        let borrows = git_paths::lenders(&merge.objects);
        let format = if changes.base.len() == 64 { Format::Sha256 } else { Format::Sha1 };
        let shallow = std::fs::read_to_string(merge.common.join("shallow")).ok();
        let skeleton = Skeleton { format, is_bare: true, borrows: &borrows, shallow: shallow.as_deref(), settings: "" };
        skeleton.write(&folder).map_err(|error| error.to_string())?;
        let args = ["diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", &changes.base, &changes.head];
        let call = Call::new(Whose::Ours, &folder, &args).attributes(&changes.base);
        let answered = self.ask(call).await;
        let _ = remove_folder(&merge.cell.scratch);
        match answered? {
            Answered { is_cut: true, .. } => Err(format!(
                "the patch has more than {PATCH_BYTES_MAX} bytes; read it with: git diff {} {}",
                changes.base, changes.head
            )),
            Answered { code: Some(0), stdout, .. } => Ok(stdout),
            answered => Err(format!("git diff: {}", answered.stderr.trim())),
        }
    }

    /// Merges the changes into the user's tree. The index stays as it is. What is needed to take it back lies in `kept`
    /// from then on.
    ///
    /// # Errors
    /// Why not; nothing was written.
    pub async fn apply(
        &self,
        cell: Cell,
        kept: &Path,
        changes: &Changes,
        keep_conflicts: bool,
    ) -> Result<Applied, ApplyError> {
        if changes.base == changes.head {
            return Ok(Applied::default());
        }
        self.check_version().await?;
        let scratch = cell.scratch.clone();
        let mut merge = Merge::new(self, cell, changes).await?;
        let merged = merge.run(Some(kept), keep_conflicts).await;
        let _ = remove_folder(&scratch);
        merged
    }

    /// Whether a process was killed while it applied the changes of this folder.
    pub fn was_interrupted(kept: &Path) -> bool {
        kept.join(WRITING).exists()
    }

    /// Takes back what such a process had written.
    ///
    /// # Errors
    /// Why not; the next call tries again.
    pub async fn roll_back(&self, cell: Cell, kept: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(kept.join(WRITING)).map_err(|error| error.to_string())?;
        let changes: Changes = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let scratch = cell.scratch.clone();
        let mut merge = Merge::new(self, cell, &changes).await?;
        kept.clone_into(&mut merge.scratch);
        let rolled_back = merge.roll_back(kept).await;
        let _ = remove_folder(&scratch);
        rolled_back
    }

    /// Takes back what was applied: the same merge with the two trees exchanged.
    ///
    /// # Errors
    /// Why not; nothing was written.
    pub async fn undo_apply(&self, cell: Cell, kept: &Path, changes: &Changes) -> Result<(), ApplyError> {
        let record = std::fs::read_to_string(kept.join(RECORD)).ok();
        let Some(record) = record.and_then(|text| serde_json::from_str::<Kept>(&text).ok()) else {
            return Err(ApplyError::Failed(
                "what was applied is not known any more; it is kept for 30 days".to_owned(),
            ));
        };
        self.check_version().await?;
        let back = Changes { base: record.after, head: record.before, ..changes.clone() };
        let scratch = cell.scratch.clone();
        let mut merge = Merge::new(self, cell, &back).await?;
        merge.lenders.push(kept.join("objects"));
        let merged = merge.run(None, false).await;
        let _ = remove_folder(&scratch);
        merged?;
        let _ = remove_folder(kept);
        Ok(())
    }
}

/// In the folder of what was applied.
const RECORD: &str = "record.json";

/// Beside it while files are written: the changes. One that is found has not come to its end.
const WRITING: &str = "writing.json";

fn write_synced(path: &Path, text: &str) -> std::io::Result<()> {
    write_private(path, text)?;
    File::open(path)?.sync_all()
}

/// The user's tree before and after, as commits that lie beside this.
#[derive(Serialize, Deserialize)]
struct Kept {
    before: String,
    after: String,
}

/// Object folders as git reads them from a variable.
fn listed(folders: &[PathBuf]) -> String {
    let quoted = |folder: &PathBuf| {
        let text = folder.display().to_string();
        let is_plain = !text.contains(':') && !text.starts_with('"');
        if is_plain { text } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
    };
    folders.iter().map(quoted).collect::<Vec<_>>().join(":")
}

impl<'a> Merge<'a> {
    async fn new(git: &'a Git, cell: Cell, changes: &'a Changes) -> Result<Self, String> {
        let top = PathBuf::from(&changes.repository);
        let found = git.places(&top).await?;
        let lines: Vec<&str> = found.lines().collect();
        let [git_dir, common, objects] = lines.as_slice() else {
            return Err(format!("{} is not a git repository any more", top.display()));
        };
        let repository = git_paths::repository_of(&top, cell.confiner.layout())?;
        // Moved away when what takes it back is kept, so not the folder of the cell itself.
        let scratch = cell.scratch.join("merge");
        make_private(&scratch).map_err(|error| error.to_string())?;
        Ok(Self {
            git,
            cell,
            repository,
            changes,
            git_dir: PathBuf::from(git_dir),
            common: PathBuf::from(common),
            lenders: vec![PathBuf::from(objects)],
            objects: PathBuf::from(objects),
            top,
            scratch,
        })
    }

    /// A call on the user's tree: its settings and filters, a copy of its index, new objects beside its own.
    fn call(&self, args: &[&str]) -> Call<'_> {
        let objects = self.scratch.join("objects");
        Call::new(Whose::Users, &self.git_dir, args)
            .work_tree(&self.top)
            .attributes(&self.changes.base)
            .env("GIT_INDEX_FILE", self.scratch.join("index").display().to_string())
            .env("GIT_OBJECT_DIRECTORY", objects.display().to_string())
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", listed(&self.lenders))
    }

    async fn ask(&self, call: Call<'_>) -> Result<Answered, String> {
        let mut read = self.repository.clone();
        read.extend(self.lenders.iter().flat_map(|objects| git_paths::lenders(objects)));
        read.extend(self.git.user_files());
        let mut write = vec![self.top.clone(), self.scratch.clone()];
        write.extend(Some(self.common.join("lfs")).filter(|folder| folder.is_dir()));
        self.git.ask_confined(&self.cell, View { read, write }, call).await
    }

    async fn bytes(&self, call: Call<'_>) -> Result<Vec<u8>, String> {
        let name = call.args.first().cloned().unwrap_or_default();
        printed(&name, self.ask(call).await?)
    }

    async fn line(&self, call: Call<'_>) -> Result<String, String> {
        let bytes = self.bytes(call).await?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    async fn run(&mut self, kept: Option<&Path>, keep_conflicts: bool) -> Result<Applied, ApplyError> {
        make_private(&self.scratch.join("objects/pack")).map_err(|error| error.to_string())?;
        copy_index(&self.git_dir, &self.scratch.join("index"))?;
        let (base, head) = (self.changes.base.clone(), self.changes.head.clone());
        let ours = self.ours(&base, &head).await?;
        let args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"];
        let merge_base = format!("--merge-base={base}");
        let args = [&args[..], &[&merge_base, &ours, &head]].concat();
        let answered = self.ask(self.call(&args)).await?;
        let mut parts = answered.stdout.split(|byte| *byte == 0);
        let tree = String::from_utf8_lossy(parts.next().unwrap_or_default()).trim().to_owned();
        let conflicts = match answered.code {
            Some(0) => Vec::new(),
            Some(1) if keep_conflicts => names(parts),
            Some(1) => return Err(ApplyError::Conflicts(names(parts))),
            _ => return Err(ApplyError::Failed(format!("git merge-tree: {}", answered.stderr.trim()))),
        };
        let our_tree = self.line(self.call(&["rev-parse", "--verify", &format!("{ours}^{{tree}}")])).await?;
        if our_tree == tree {
            return Err(ApplyError::AlreadyThere);
        }
        if let Some(kept) = kept {
            let after = self.commit(&tree, &ours).await?;
            self.keep(kept, &Kept { before: ours, after })?;
        }
        // Looks at every file it would write before it writes the first.
        let written = self.bytes(self.call(&["read-tree", "-m", "-u", &our_tree, &tree])).await;
        if let Some(kept) = kept {
            let _ = std::fs::remove_file(kept.join("index"));
            if written.is_ok() {
                std::fs::remove_file(kept.join(WRITING)).map_err(|error| error.to_string())?;
            } else if let Err(why) = self.roll_back(kept).await {
                return Err(ApplyError::Failed(format!("only a part could be written, and not be taken back: {why}")));
            }
        }
        written.map_err(|error| {
            format!("a file has changed at the same time, or is in the way; nothing was written. {error}. Try again")
        })?;
        Ok(Applied { conflicts })
    }

    /// Before the first file is written: a process that ends in between leaves what takes it back.
    fn keep(&mut self, kept: &Path, record: &Kept) -> Result<(), String> {
        let text = serde_json::to_string(record).map_err(|error| error.to_string())?;
        let changes = serde_json::to_string(self.changes).map_err(|error| error.to_string())?;
        let folder = kept.parent().unwrap_or(kept);
        let moved = remove_folder(kept)
            .and_then(|()| make_private(folder))
            .and_then(|()| write_synced(&self.scratch.join(RECORD), &text))
            .and_then(|()| write_synced(&self.scratch.join(WRITING), &changes))
            .and_then(|()| std::fs::rename(&self.scratch, kept))
            .and_then(|()| File::open(folder)?.sync_all());
        moved.map_err(|error| format!("what takes it back cannot be kept: {error}"))?;
        kept.clone_into(&mut self.scratch);
        Ok(())
    }

    /// Puts every path back that was written, or was just being written. What the user has changed since stays.
    async fn roll_back(&self, kept: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(kept.join(RECORD)).map_err(|error| error.to_string())?;
        let Kept { before, after } = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", &before, &after];
        let touched = paths(&self.bytes(self.call(&args)).await?);
        let args = ["ls-tree", "-r", "-z", "--name-only", &before];
        let were_there = paths(&self.bytes(self.call(&args)).await?);
        let unlike = self.unlike(&after).await?;
        let mut written = HashSet::new();
        for path in touched {
            if !unlike.contains(&path) || self.is_torn(&path, &after).await {
                written.insert(path);
            }
        }
        // By git and confined like everything that is done in the tree: a folder may have become a link.
        let new = listed_paths(written.difference(&were_there));
        if !new.is_empty() {
            let args =
                ["rm", "--force", "--quiet", "--ignore-unmatch", "--pathspec-from-file=-", "--pathspec-file-nul"];
            let call = self.call(&args).env("GIT_LITERAL_PATHSPECS", "1");
            self.bytes(call.stdin(Input::Bytes(new))).await?;
        }
        let unlike = self.unlike(&before).await?;
        let old = listed_paths(written.intersection(&unlike));
        if !old.is_empty() {
            let args = ["checkout-index", "--force", "-z", "--stdin"];
            self.bytes(self.call(&args).stdin(Input::Bytes(old))).await?;
        }
        remove_folder(kept).map_err(|error| error.to_string())
    }

    /// Paths of a tree that the user's files differ from. The index holds that tree afterwards.
    async fn unlike(&self, tree: &str) -> Result<HashSet<Vec<u8>>, String> {
        self.bytes(self.call(&["read-tree", "--reset", tree])).await?;
        // Says with its exit code that files differ.
        self.ask(self.call(&["update-index", "-q", "--refresh"])).await?;
        let differ = self.bytes(self.call(&["diff-files", "-z", "--name-only", "--no-renames"])).await?;
        Ok(paths(&differ))
    }

    /// Whether a file was just being written: it is gone, or there is only a beginning of it.
    async fn is_torn(&self, path: &[u8], after: &str) -> bool {
        let file = self.top.join(std::ffi::OsStr::from_bytes(path));
        match file.symlink_metadata() {
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            Ok(there) if there.is_file() => {
                let name = format!("{after}:{}", String::from_utf8_lossy(path));
                let whole = self.bytes(self.call(&["cat-file", "--filters", &name])).await;
                let there = std::fs::read(file);
                matches!((whole, there), (Ok(whole), Ok(there)) if whole.starts_with(&there))
            }
            Ok(_) => false,
        }
    }

    /// The user's tree as it is now, as a commit on the base: what git tracks, every path that the run touched, and
    /// what the base has although git does not track it.
    async fn ours(&self, base: &str, head: &str) -> Result<String, String> {
        self.bytes(self.call(&["add", "--update"])).await?;
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", base, head];
        let mut paths = self.bytes(self.call(&args)).await?;
        let args = ["diff-index", "--cached", "-z", "--name-only", "--no-renames", "--diff-filter=D", base];
        paths.extend(self.bytes(self.call(&args)).await?);
        let args = ["update-index", "--add", "--remove", "-z", "--stdin"];
        self.bytes(self.call(&args).stdin(Input::Bytes(paths)))
            .await
            .map_err(|error| format!("a path that the run changed is something else in your tree: {error}"))?;
        let tree = self.line(self.call(&["write-tree"])).await?;
        self.commit(&tree, base).await
    }

    async fn commit(&self, tree: &str, parent: &str) -> Result<String, String> {
        let call = self.call(&["commit-tree", tree, "-p", parent, "-m", "the tree as it is"]);
        self.line(call.by_matsu()).await
    }
}

fn paths(listed: &[u8]) -> HashSet<Vec<u8>> {
    listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
}

fn listed_paths<'b>(paths: impl Iterator<Item = &'b Vec<u8>>) -> Vec<u8> {
    paths.flat_map(|path| path.iter().copied().chain([0])).collect()
}

/// Of conflicts; of many only some.
fn names<'b>(names: impl Iterator<Item = &'b [u8]>) -> Vec<String> {
    let names = names.take_while(|name| !name.is_empty()).map(|name| String::from_utf8_lossy(name).into_owned());
    let mut names: Vec<String> = names.take(NAMES_MAX + 1).collect();
    if names.len() > NAMES_MAX {
        names.truncate(NAMES_MAX);
        names.push("and more".to_owned());
    }
    names
}
