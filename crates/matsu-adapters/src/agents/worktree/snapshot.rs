//! The user's tree as it is when a run begins, as one commit on the last one: what git tracks, and files that are neither
//! tracked nor ignored. It is made with a copy of the user's index and with the user's filters, and its objects lie in
//! the run's own repository. The user's repository gets them with the run's result, and not before.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::confined::{Cell, View};
use super::super::git::{Call, Git, Whose, copy_index, printed};
use super::super::git_paths;
use super::super::process::Input;
use super::super::runs_folder::make_private;
use super::harvest::{few, shown};
use super::source::Source;
use crate::agents::removal::remove_folder;

/// Larger files that git does not track are left out.
const LARGE_BYTES: u64 = 10 * 1024 * 1024;

/// Of files that git does not track, together.
const ALL_BYTES_MAX: u64 = 200 * 1024 * 1024;
const FILES_MAX: usize = 20_000;

/// What a run begins with.
#[derive(Default)]
pub struct Snapshot {
    /// `None`: the tree is the same as that of the last commit.
    pub commit: Option<String>,
    /// What is in the user's tree and not in the run's, with the reason.
    pub left_out: Vec<String>,
}

/// Git on the user's tree, with an index and objects of the run's. It starts what the repository's settings name, and a
/// run may have made that repository, so it works inside a confinement.
struct Taking<'a> {
    git: &'a Git,
    cell: &'a Cell,
    source: &'a Source,
    git_dir: PathBuf,
    index: PathBuf,
    objects: PathBuf,
}

impl Git {
    /// # Errors
    /// Why the tree cannot be taken over, and what to do.
    pub(super) async fn snapshot(&self, cell: &Cell, source: &Source, run: &Path) -> Result<Snapshot, String> {
        let places = self.places(&source.top).await?;
        let git_dir = places.lines().next().map(PathBuf::from).ok_or("git does not name its folder")?;
        let folder = cell.scratch.join("snapshot");
        make_private(&folder).map_err(|error| error.to_string())?;
        let (index, objects) = (folder.join("index"), run.join("objects"));
        let taking = Taking { git: self, cell, source, git_dir, index, objects };
        let taken = taking.take().await;
        let _ = remove_folder(&folder);
        taken.map_err(|error| {
            format!("your uncommitted files cannot be taken over: {error}. Commit or stash them, then start again")
        })
    }
}

impl Taking<'_> {
    fn call(&self, args: &[&str]) -> Call<'_> {
        let call = Call::new(Whose::Users, &self.git_dir, args)
            .work_tree(&self.source.top)
            .env("GIT_INDEX_FILE", self.index.display().to_string())
            .env("GIT_OBJECT_DIRECTORY", self.objects.display().to_string());
        // Not those of the tree, in which a run without isolation can write.
        match &self.source.head {
            Some(head) => call.attributes(head),
            None => call,
        }
    }

    async fn run(&self, call: Call<'_>) -> Result<Vec<u8>, String> {
        let machine = self.cell.confiner.layout();
        let mut read = git_paths::repository_of(&self.source.top, machine)?;
        read.extend([self.source.top.clone(), self.cell.scratch.join("stdin")]);
        read.extend(git_paths::lenders(&self.source.objects).into_iter().filter(|path| !machine.hides(path)));
        read.extend(self.git.user_files());
        let mut write = vec![self.cell.scratch.join("snapshot"), self.objects.clone()];
        // git-lfs keeps there what it takes out of a file.
        write.extend(Some(self.source.common.join("lfs")).filter(|folder| folder.is_dir()));
        let name = call.args.first().cloned().unwrap_or_default();
        printed(&name, self.git.ask_confined(self.cell, View { read, write }, call).await?)
    }

    async fn line(&self, call: Call<'_>) -> Result<String, String> {
        let bytes = self.run(call).await?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    async fn take(&self) -> Result<Snapshot, String> {
        copy_index(&self.git_dir, &self.index)?;
        let mut left_out = self.submodules().await?;
        if self.source.uncommitted == Some(0) {
            return Ok(Snapshot { commit: None, left_out: few(left_out) });
        }
        self.run(self.call(&["add", "--update"])).await?;
        let names = self.run(self.call(&["ls-files", "--others", "--exclude-standard", "-z"])).await?;
        let taken = self.choose(&names, &mut left_out);
        let args = ["update-index", "--add", "-z", "--stdin"];
        self.run(self.call(&args).stdin(Input::Bytes(taken))).await?;
        let tree = self.line(self.call(&["write-tree"])).await?;
        let head = self.source.head.as_deref();
        let same = match head {
            Some(head) => self.line(self.call(&["rev-parse", "--verify", &format!("{head}^{{tree}}")])).await? == tree,
            None => self.run(self.call(&["ls-tree", &tree])).await?.is_empty(),
        };
        let commit = if same { None } else { Some(self.commit(&tree, head).await?) };
        Ok(Snapshot { commit, left_out: few(left_out) })
    }

    /// Their folders are empty in the run's tree.
    async fn submodules(&self) -> Result<Vec<String>, String> {
        if !self.source.top.join(".gitmodules").exists() {
            return Ok(Vec::new());
        }
        let entries = self.run(self.call(&["ls-files", "--stage", "-z"])).await?;
        let entries = entries.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 "));
        let path = |entry: &[u8]| entry.splitn(2, |byte| *byte == b'\t').nth(1).map(shown);
        Ok(entries.filter_map(path).map(|path| format!("{path} (a submodule)")).collect())
    }

    /// Those of the files that git does not track that are taken.
    fn choose(&self, names: &[u8], left_out: &mut Vec<String>) -> Vec<u8> {
        let (mut taken, mut files, mut bytes) = (Vec::new(), 0, 0);
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let path = self.source.top.join(OsStr::from_bytes(name));
            let why = match path.symlink_metadata() {
                Err(_) => continue,
                Ok(meta) if meta.is_dir() => "a separate repository".to_owned(),
                Ok(meta) if meta.len() > LARGE_BYTES => format!("{} MB", meta.len() / 1_000_000),
                Ok(meta) if bytes + meta.len() > ALL_BYTES_MAX || files >= FILES_MAX => "too many files".to_owned(),
                Ok(meta) if meta.is_file() && std::fs::File::open(&path).is_err() => "it cannot be read".to_owned(),
                Ok(meta) => {
                    (files, bytes) = (files + 1, bytes + meta.len());
                    taken.extend(name);
                    taken.push(0);
                    continue;
                }
            };
            left_out.push(format!("{} ({why})", shown(name)));
        }
        taken
    }

    async fn commit(&self, tree: &str, parent: Option<&str>) -> Result<String, String> {
        let message = "Uncommitted files when the run began";
        let mut args = vec!["commit-tree", tree, "-m", message];
        args.extend(parent.into_iter().flat_map(|parent| ["-p", parent]));
        let call = self.call(&args);
        self.line(call.by_matsu()).await
    }
}
