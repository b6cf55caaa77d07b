//! A run's changes as a patch to read, and into the user's tree. Both are bytes from beginning to end: no file has to
//! be text, and none in any one encoding.
//!
//! Three trees are merged: the base, the user's tree as it is now, and the run's. The user's index is only copied.
//! If two changes touch the same lines, nothing is written, or the lines with conflict markers.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use matsu_core::ports::agent::{Applied, ApplyError, ConflictKind};
use matsu_core::run::Changes;
use serde::{Deserialize, Serialize};

use super::super::confined::{Cell, View};
use super::super::git::{Call, Format, Git, PATCH_BYTES_MAX, Skeleton, Whose, copy_index, printed};
use super::super::git_paths;
use super::super::process::{Answered, Input};
use super::super::runs_folder::{make_private, write_private};
use super::conflicts;
use super::harvest::shown;
use super::markers::{self, Asks};
use crate::agents::removal::remove_folder;

/// Files in the way that are named.
const NAMES_MAX: usize = 20;

/// Every file of the tree counts, also those that a sparse checkout leaves out: the run may have changed them.
const WHOLE_TREE: [(&str, &str); 5] = [
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "core.sparseCheckout"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "index.sparse"),
    ("GIT_CONFIG_VALUE_1", "false"),
];

/// The user's repository, and a place of ours beside it for what is made on the way.
pub(super) struct Merge<'a> {
    git: &'a Git,
    /// A run may have made the repository, so what starts programs of its settings works inside a confinement.
    cell: Cell,
    /// What git obeys there.
    repository: Vec<PathBuf>,
    changes: &'a Changes,
    pub(super) top: PathBuf,
    git_dir: PathBuf,
    common: PathBuf,
    objects: PathBuf,
    /// Objects that are read and not written.
    lenders: Vec<PathBuf>,
    pub(super) scratch: PathBuf,
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

    /// The changes that are being applied with this folder, or were when their process was killed.
    pub fn unfinished(kept: &Path) -> Option<Changes> {
        serde_json::from_str(&std::fs::read_to_string(kept.join(WRITING)).ok()?).ok()
    }

    /// Whether they are being taken back, as far as is known.
    pub fn is_taken_back(kept: &Path) -> bool {
        kept.join(TAKING_BACK).exists()
    }

    /// Takes back what such a process had written.
    ///
    /// # Errors
    /// Why not; the next call tries again.
    pub async fn roll_back(&self, cell: Cell, kept: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(kept.join(WRITING)).map_err(|error| error.to_string())?;
        let changes: Changes = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        write_private(&kept.join(TAKING_BACK), "").map_err(|error| error.to_string())?;
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
                "the record of this apply is gone (it is kept for 30 days); undo it by hand".to_owned(),
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
pub(super) const RECORD: &str = "record.json";

/// Beside it while files are written: the changes. One that is found has not come to its end.
const WRITING: &str = "writing.json";

/// Beside it when that is being taken back.
const TAKING_BACK: &str = "taking-back";

fn write_synced(path: &Path, text: &str) -> std::io::Result<()> {
    write_private(path, text)?;
    File::open(path)?.sync_all()
}

/// The user's tree before and after, as commits that lie beside this.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    pub before: String,
    pub after: String,
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
    pub(super) fn call(&self, args: &[&str]) -> Call<'_> {
        let objects = self.scratch.join("objects");
        let call = WHOLE_TREE
            .into_iter()
            .fold(Call::new(Whose::Users, &self.git_dir, args), |call, (name, value)| call.env(name, value));
        call.work_tree(&self.top)
            .attributes(&self.changes.base)
            .env("GIT_INDEX_FILE", self.scratch.join("index").display().to_string())
            .env("GIT_OBJECT_DIRECTORY", objects.display().to_string())
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", listed(&self.lenders))
    }

    pub(super) async fn ask(&self, call: Call<'_>) -> Result<Answered, String> {
        let mut read = self.repository.clone();
        read.extend(self.lenders.iter().flat_map(|objects| git_paths::lenders(objects)));
        read.extend(self.git.user_files());
        let mut write = vec![self.top.clone(), self.scratch.clone()];
        write.extend(Some(self.common.join("lfs")).filter(|folder| folder.is_dir()));
        self.git.ask_confined(&self.cell, View { read, write }, call).await
    }

    pub(super) async fn bytes(&self, call: Call<'_>) -> Result<Vec<u8>, String> {
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
        let merge_base = format!("--merge-base={base}");
        let args = ["merge-tree", "--write-tree", "-z", &merge_base, &ours, &head];
        let answered = self.ask(self.call(&args)).await?;
        let conflicts::Merged { tree, conflicts } = conflicts::read(&answered.stdout);
        // A file that a folder is in the way of would be written under a name of git's.
        let can_be_kept = conflicts.iter().all(|conflict| conflict.kind != ConflictKind::Folder);
        match answered.code {
            Some(0) => {}
            Some(1) if keep_conflicts && can_be_kept => {}
            Some(1) => return Err(ApplyError::Conflicts(conflicts)),
            _ => return Err(ApplyError::Failed(format!("git merge-tree: {}", answered.stderr.trim()))),
        }
        let our_tree = self.line(self.call(&["rev-parse", "--verify", &format!("{ours}^{{tree}}")])).await?;
        if our_tree == tree {
            return Err(ApplyError::AlreadyThere);
        }
        if kept.is_some() && !keep_conflicts {
            let left = markers::left(self, &[&ours, &base], &tree).await?;
            if !left.is_empty() {
                return Err(ApplyError::Markers(left));
            }
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
                return Err(ApplyError::Failed(format!(
                    "only part was written and could not be undone: {why}; check your tree with git status"
                )));
            }
        }
        written.map_err(|error| in_the_way(&error))?;
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
        moved.map_err(|error| format!("the data to undo this apply cannot be stored: {error}"))?;
        kept.clone_into(&mut self.scratch);
        Ok(())
    }

    /// The user's tree as it is now, as a commit on the base: what git tracks, every path that the run touched, and
    /// what the base has although git does not track it.
    async fn ours(&self, base: &str, head: &str) -> Result<String, String> {
        self.bytes(self.call(&["add", "--update"])).await?;
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", base, head];
        let mut paths = self.bytes(self.call(&args)).await?;
        let args = ["diff-index", "--cached", "-z", "--name-only", "--no-renames", "--diff-filter=D", base];
        paths.extend(self.bytes(self.call(&args)).await?);
        let paths: BTreeSet<&[u8]> = paths.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
        let absent = self.unmark(&paths).await?;
        let mut looked_at = Vec::new();
        for path in paths {
            let file = self.top.join(OsStr::from_bytes(path));
            if has_linked_parent(&self.top, path) {
                return Err(format!(
                    "a folder above {} is a link in your tree, and git does not follow links; nothing was written. Replace \
                     it with a folder, or apply the rest by hand: matsu diff shows the patch",
                    shown(path)
                ));
            }
            // Of a folder git knows the files in it, and a file of that name is not there.
            let is_folder = file.symlink_metadata().is_ok_and(|there| there.is_dir());
            if !is_folder && !absent.contains(path) {
                looked_at.extend(path.iter().copied().chain([0]));
            }
        }
        let args = ["update-index", "--add", "--remove", "-z", "--stdin"];
        self.bytes(self.call(&args).stdin(Input::Bytes(looked_at)))
            .await
            .map_err(|error| format!("files that the run changed cannot be read in your tree: {error}"))?;
        let tree = self.line(self.call(&["write-tree"])).await?;
        self.commit(&tree, base).await
    }

    /// Paths that git leaves out by a mark are looked at, if they are among these. Returns those that are not there
    /// because a sparse checkout leaves them out: what the index has of them counts.
    async fn unmark(&self, paths: &BTreeSet<&[u8]>) -> Result<BTreeSet<Vec<u8>>, String> {
        let listed = self.bytes(self.call(&["ls-files", "-v", "-z"])).await?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.len() > 2);
        let mut marked: HashMap<&'static str, Vec<u8>> = HashMap::new();
        let mut absent = BTreeSet::new();
        for (tag, path) in entries.map(|entry| (entry[0], &entry[2..])).filter(|(_, path)| paths.contains(path)) {
            if tag.eq_ignore_ascii_case(&b'S') {
                marked.entry("--no-skip-worktree").or_default().extend(path.iter().copied().chain([0]));
                if self.top.join(OsStr::from_bytes(path)).symlink_metadata().is_err() {
                    absent.insert(path.to_vec());
                }
            }
            if tag.is_ascii_lowercase() {
                marked.entry("--no-assume-unchanged").or_default().extend(path.iter().copied().chain([0]));
            }
        }
        for (option, paths) in marked {
            self.bytes(self.call(&["update-index", option, "-z", "--stdin"]).stdin(Input::Bytes(paths))).await?;
        }
        Ok(absent)
    }

    async fn commit(&self, tree: &str, parent: &str) -> Result<String, String> {
        let call = self.call(&["commit-tree", tree, "-p", parent, "-m", "the tree as it is"]);
        self.line(call.by_matsu()).await
    }
}

impl Asks for Merge<'_> {
    fn call(&self, args: &[&str]) -> Call<'_> {
        Merge::call(self, args)
    }

    async fn bytes(&self, call: Call<'_>) -> Result<Vec<u8>, String> {
        Merge::bytes(self, call).await
    }
}

/// Whether a folder above a path of the tree is a link.
pub(super) fn has_linked_parent(top: &Path, path: &[u8]) -> bool {
    let parents = Path::new(OsStr::from_bytes(path)).ancestors().skip(1);
    let is_link = |parent: &Path| top.join(parent).symlink_metadata().is_ok_and(|there| there.is_symlink());
    parents.filter(|parent| !parent.as_os_str().is_empty()).any(is_link)
}

/// Why git did not begin to write: it names files between quotes, and folders on lines of their own.
fn in_the_way(said: &str) -> String {
    let quoted = said.lines().filter_map(|line| line.split('\'').nth(1));
    let indented = said.lines().filter_map(|line| line.strip_prefix('\t'));
    let mut names: Vec<&str> = quoted.chain(indented).collect();
    names.dedup();
    if names.is_empty() {
        return format!(
            "a file has changed at the same time, or is in the way; nothing was written. {said}. Try again"
        );
    }
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!(
        "these files in your tree have changed at the same time, or are in the way and unknown to git: {}{more}. \
         Nothing was written. Move files that are in the way somewhere else, then try again",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_named_without_the_words_of_git() {
        let said = in_the_way("git read-tree: error: Entry 'f1' not uptodate. Cannot merge.");
        assert!(said.contains(": f1. ") && !said.contains("uptodate"), "{said}");
        let said = in_the_way("git read-tree: error: Updating the following directories would lose files:\n\tdd\n\n");
        assert!(said.contains(": dd. "), "{said}");
        assert!(in_the_way("git read-tree: out of disk").contains("out of disk"));
    }
}
