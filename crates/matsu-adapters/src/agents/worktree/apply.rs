//! A run's changes as a patch to read, and into the user's tree. Both are bytes from beginning to end: no file has to
//! be text, and none in any one encoding.
//!
//! Three trees are merged: the base, the user's tree as it is now, and the run's. The user's index is only copied.
//! If two changes touch the same lines, nothing is written.

use std::path::{Path, PathBuf};

use matsu_core::run::Changes;

use super::super::git::{Call, Format, Git, PATCH_BYTES_MAX, Skeleton, Whose, remove_folder};
use super::super::git_paths;
use super::super::process::{Answered, Input};
use super::super::runs_folder::make_private;

/// Conflicts that are named.
const NAMES_MAX: usize = 20;

/// The user's repository, and a place of ours beside it for what is made on the way.
struct Merge<'a> {
    git: &'a Git,
    changes: &'a Changes,
    top: PathBuf,
    git_dir: PathBuf,
    common: PathBuf,
    objects: PathBuf,
    scratch: PathBuf,
}

impl Git {
    /// The patch, with the attributes of the base and without any program of a configuration.
    ///
    /// # Errors
    /// The repository or its commits are gone, or the patch is too large to show.
    pub async fn diff(&self, scratch: &Path, changes: &Changes) -> Result<Vec<u8>, String> {
        let merge = Merge::new(self, scratch, changes).await?;
        let folder = merge.scratch.join("view.git");
        let borrows = git_paths::lenders(&merge.objects);
        let format = if changes.base.len() == 64 { Format::Sha256 } else { Format::Sha1 };
        let shallow = std::fs::read_to_string(merge.common.join("shallow")).ok();
        let skeleton = Skeleton { format, is_bare: true, borrows: &borrows, shallow: shallow.as_deref(), settings: "" };
        skeleton.write(&folder).map_err(|error| error.to_string())?;
        let args = ["diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", &changes.base, &changes.head];
        let call = Call::new(Whose::Ours, &folder, &args).attributes(&changes.base);
        let answered = self.ask(call).await;
        let _ = remove_folder(&merge.scratch);
        match answered? {
            Answered { is_cut: true, .. } => Err(format!(
                "the patch has more than {PATCH_BYTES_MAX} bytes; read it with: git diff {} {}",
                changes.base, changes.head
            )),
            Answered { code: Some(0), stdout, .. } => Ok(stdout),
            answered => Err(format!("git diff: {}", answered.stderr.trim())),
        }
    }

    /// Brings the changes into the user's tree, all of them or none. The index stays as it is.
    ///
    /// # Errors
    /// Why not, and what to do next; nothing was changed.
    pub async fn apply(&self, scratch: &Path, changes: &Changes) -> Result<(), String> {
        if changes.base == changes.head {
            return Ok(());
        }
        self.check_version().await?;
        let merge = Merge::new(self, scratch, changes).await?;
        let merged = merge.run().await;
        let _ = remove_folder(&merge.scratch);
        merged
    }
}

impl<'a> Merge<'a> {
    async fn new(git: &'a Git, scratch: &Path, changes: &'a Changes) -> Result<Self, String> {
        let top = PathBuf::from(&changes.repository);
        let found = git.places(&top).await?;
        let lines: Vec<&str> = found.lines().collect();
        let [git_dir, common, objects] = lines.as_slice() else {
            return Err(format!("{} is no repository any more", top.display()));
        };
        make_private(scratch).map_err(|error| error.to_string())?;
        Ok(Self {
            git,
            changes,
            git_dir: PathBuf::from(git_dir),
            common: PathBuf::from(common),
            objects: PathBuf::from(objects),
            top,
            scratch: scratch.to_owned(),
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
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.objects.display().to_string())
    }

    async fn run(&self) -> Result<(), String> {
        make_private(&self.scratch.join("objects/pack")).map_err(|error| error.to_string())?;
        match std::fs::copy(self.git_dir.join("index"), self.scratch.join("index")) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("the index cannot be read: {error}")),
        }
        let (base, head) = (self.changes.base.as_str(), self.changes.head.as_str());
        let ours = self.ours(base, head).await?;
        let args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"];
        let merge_base = format!("--merge-base={base}");
        let args = [&args[..], &[&merge_base, &ours, head]].concat();
        let answered = self.git.ask(self.call(&args)).await?;
        let mut parts = answered.stdout.split(|byte| *byte == 0);
        let tree = String::from_utf8_lossy(parts.next().unwrap_or_default()).trim().to_owned();
        match answered.code {
            Some(0) => {}
            Some(1) => return Err(self.conflict(parts)),
            _ => return Err(format!("git merge-tree: {}", answered.stderr.trim())),
        }
        // Looks at every file it would write before it writes the first.
        let our_tree = format!("{ours}^{{tree}}");
        let args = ["read-tree", "-m", "-u", &our_tree, &tree];
        self.git.run(self.call(&args)).await.map(drop).map_err(|error| {
            format!("a file has changed at the same time, or is in the way; nothing was written. {error}. Try again")
        })
    }

    /// The user's tree as it is now, as a commit on the base: what git tracks, and every path that the run touched.
    async fn ours(&self, base: &str, head: &str) -> Result<String, String> {
        self.git.run(self.call(&["add", "--update"])).await?;
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", base, head];
        let paths = self.git.run(self.call(&args)).await?;
        let args = ["update-index", "--add", "--remove", "-z", "--stdin"];
        self.git
            .run(self.call(&args).stdin(Input::Bytes(paths)))
            .await
            .map_err(|error| format!("a path that the run changed is something else in your tree: {error}"))?;
        let tree = self.git.line(self.call(&["write-tree"])).await?;
        let mut call = self.call(&["commit-tree", &tree, "-p", base, "-m", "the tree as it is"]);
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
            call = call.env(name, "Matsu");
        }
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            call = call.env(name, "matsu@localhost");
        }
        self.git.line(call).await
    }

    fn conflict<'b>(&self, names: impl Iterator<Item = &'b [u8]>) -> String {
        let names = names.filter(|name| !name.is_empty()).map(|name| String::from_utf8_lossy(name).into_owned());
        let names: Vec<String> = names.take(NAMES_MAX).collect();
        format!(
            "you and the run changed the same lines; nothing was written. Files: {}. Next: commit your own changes and \
             merge by hand with `git merge {}`, or undo yours in these files and apply again",
            names.join(", "),
            self.changes.branch
        )
    }
}
