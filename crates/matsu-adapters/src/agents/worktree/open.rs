//! Making the repository of a run: look at the user's, write ours file by file, check the base out. Also the way
//! between two runs, of which one asked for the other: the second starts from what the first has committed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::super::confined::{Cell, Done, View, Work, confined};
use super::super::git::{Call, GIT_MAX, Git, SCRATCH, Skeleton, Whose, copy_index};
use super::super::runs_folder::{make_private, write_private};
use super::super::shim::order::Stdin;
use super::accept::{Expected, Quarantine};
use super::begun::{caller_of, from_caller, from_source};
use super::join::Conflicts;
use super::source::{Source, with_flags};
use super::{BundleLimits, Note, RESULT, Worktree, index_of, name, read_note, save_note};
use crate::agents::confinement::Confiner;
use crate::agents::removal::remove_folder;
use matsu_core::run::{Changes, TreeBase, TreeSetup};

/// A tree as it is wanted.
pub struct OpenWish<'a> {
    pub directory: &'a Path,
    /// Where the tree shall be.
    pub path: PathBuf,
    /// The run that it is for.
    pub job: &'a str,
    pub task: Option<&'a str>,
    pub message: &'a str,
    pub earlier: Option<Earlier>,
    /// What other runs have changed and this one begins with.
    pub onto: &'a [Changes],
    /// What the conversation's last run changed, to be merged anew with the user's files.
    pub resolves: Option<&'a Changes>,
    /// With this commit instead.
    pub resolves_on: Option<&'a str>,
    /// What it begins with, and how it is prepared.
    pub setup: &'a TreeSetup,
    pub marker: String,
    /// Git works on the tree inside a confinement only.
    pub confiner: Arc<Confiner>,
    pub bytes_max: u64,
    pub within: Duration,
}

/// What an earlier run of the same conversation left.
#[derive(Clone, Debug)]
pub struct Earlier {
    pub branch: String,
    /// Absent with a run of an older version: its branch says it.
    pub base: Option<String>,
    pub head: Option<String>,
}

/// Checks out, or makes an empty first commit where the user has none. It is the same one every time.
const CHECK_OUT: &str = r#"
set -eu
if [ -z "$START" ]; then
  tree=$(git hash-object -t tree -w --stdin < /dev/null)
  START=$(echo 'An empty tree' | git commit-tree "$tree")
  printf '%s' "$START"
fi
git reset --quiet --hard "$START"
"#;

const BUNDLE_HEAD: &str = r#"
set -eu
head=$(git rev-parse --verify 'HEAD^{commit}')
printf '%s\n' "$head" >&2
git update-ref refs/matsu/start "$head"
if [ "$head" != "$KNOWN" ]; then git bundle create --quiet - refs/matsu/start "^$KNOWN"; fi
"#;

impl Git {
    /// Makes the tree, or takes it up if an earlier attempt at the same run has left it.
    ///
    /// # Errors
    /// Why not, and what to do; nothing is left behind.
    pub async fn open(&self, data_dir: &Path, wish: OpenWish<'_>) -> Result<Worktree, String> {
        self.check_version().await?;
        let scratch = data_dir.join(SCRATCH).join(name::reference_part(wish.job));
        make_private(&scratch).map_err(|error| error.to_string())?;
        if let Some(folder) = wish.path.parent() {
            make_private(folder).map_err(|error| error.to_string())?;
        }
        let cell = Cell { confiner: Arc::clone(&wish.confiner), marker: wish.marker.clone(), scratch };
        if let Some(mut note) = read_note(&wish.path).filter(|_| wish.path.is_dir()) {
            if wish.resolves.is_some() && note.job != wish.job {
                return Err(format!(
                    "the files of the earlier run are still in {}, so the conflict cannot be given to its agent. Move that \
                     folder away and try again, or resolve the conflict yourself",
                    wish.path.display()
                ));
            }
            wish.job.clone_into(&mut note.job);
            save_note(&wish.path, &note)?;
            return Ok(self.worktree(cell, note, &wish));
        }
        // There while the tree is made. A tree with this mark and without a note is half-made: no program has seen it.
        let unfinished = wish.path.with_added_extension("unfinished");
        if wish.path.symlink_metadata().is_ok() {
            if !unfinished.exists() {
                return Err(format!("{} is not a worktree of this run; move it, then retry", wish.path.display()));
            }
            remove_folder(&wish.path).map_err(|error| format!("{}: {error}", wish.path.display()))?;
        }
        write_private(&unfinished, "").map_err(|error| error.to_string())?;
        let opened = self.make(&cell, &wish).await;
        if opened.is_err() {
            let _ = remove_folder(&wish.path);
            let _ = remove_folder(&cell.scratch);
        }
        let _ = std::fs::remove_file(&unfinished);
        opened.map(|note| self.worktree(cell, note, &wish))
    }

    /// The tree of a run that was begun earlier. `None`: it is gone.
    pub fn reopen(
        &self,
        data_dir: &Path,
        path: &Path,
        job: &str,
        marker: &str,
        confiner: &Arc<Confiner>,
        limits: BundleLimits,
    ) -> Option<Worktree> {
        let is_its = |note: &Note| note.job.is_empty() || note.job == job;
        let note = read_note(path).filter(|note| path.is_dir() && is_its(note))?;
        let scratch = data_dir.join(SCRATCH).join(name::reference_part(job));
        make_private(&scratch).ok()?;
        let cell = Cell { confiner: Arc::clone(confiner), marker: marker.to_owned(), scratch };
        let directory = path.join(&note.inside);
        Some(Worktree { git: self.clone(), cell, note, path: path.to_owned(), directory, limits })
    }

    fn worktree(&self, cell: Cell, note: Note, wish: &OpenWish<'_>) -> Worktree {
        let directory = wish.path.join(&note.inside);
        let (git, path) = (self.clone(), wish.path.clone());
        let limits = BundleLimits { bytes_max: wish.bytes_max, within: wish.within };
        Worktree { git, cell, note, path, directory, limits }
    }

    async fn make(&self, cell: &Cell, wish: &OpenWish<'_>) -> Result<Note, String> {
        let source = Source::look(self, cell, wish.directory).await?;
        let inside = wish.directory.strip_prefix(&source.top).unwrap_or(Path::new("")).to_owned();
        let caller = caller_of(&cell.confiner.layout().data_dir, wish.directory)?;
        if caller.as_ref().is_some_and(|(tree, _)| *tree != source.top) {
            return Err("the directory is a repository inside the tree of another run; use isolation none".to_owned());
        }
        let mut note = match &caller {
            None => from_source(&source, inside, wish)?,
            Some((tree, theirs)) => from_caller(theirs, tree, &source, inside, wish)?,
        };
        let earlier = self.earlier_with_work(&note, wish.earlier.as_ref()).await.filter(|_| wish.resolves.is_none());
        if let (Some(last), Some(changes)) = (&wish.earlier, wish.resolves) {
            // The same branch, on another base.
            (note.branch, note.earlier) = (last.branch.clone(), Some(changes.head.clone()));
        }
        let mut start = match (earlier, &source.head) {
            (Some(earlier), _) => {
                let (base, head, branch) = self.go_on(&note, earlier).await?;
                (note.base, note.branch, note.earlier) = (base, earlier.branch.clone(), branch.map(|_| head.clone()));
                note.known = Some(note.base.clone());
                Some(head)
            }
            (None, head) => head.clone(),
        };
        // Copies are no change of the run, also where no rule of the repository ignores them.
        note.excludes.extend(wish.setup.copy.iter().map(|name| format!("\n{}\n", exactly(name))));
        let git_dir = wish.path.join(".git");
        let borrows = [note.objects.clone()];
        let (format, shallow) = (note.format, note.shallow.as_deref());
        let skeleton = Skeleton { format, is_bare: false, borrows: &borrows, shallow, settings: &note.settings };
        make_private(&wish.path).and_then(|()| skeleton.write(&git_dir)).map_err(|error| error.to_string())?;
        let head = format!("ref: refs/heads/{}\n", note.branch);
        write_private(&git_dir.join("HEAD"), &head)
            .and_then(|()| write_private(&git_dir.join("info/exclude"), &note.excludes))
            .map_err(|error| error.to_string())?;
        if let Some((tree, theirs)) = &caller {
            self.take_start(cell, tree, theirs, &git_dir, wish.bytes_max).await?;
        }
        note.is_users = earlier.is_none() && caller.is_none() && wish.onto.is_empty() && wish.resolves.is_none();
        note.is_unprepared = !wish.setup.is_plain();
        if let Some(commit) = wish.resolves_on {
            self.is_known(&note, commit).await?;
            (note.base, note.known) = (commit.to_owned(), Some(commit.to_owned()));
            start = Some(commit.to_owned());
        } else if earlier.is_none() && caller.is_none() {
            start = self.take_users(cell, wish, &source, &git_dir, &mut note).await?.or(start);
        }
        if let Some(changes) = wish.resolves {
            let onto = std::slice::from_ref(changes);
            let kept = if wish.resolves_on.is_some() { Conflicts::KeptForBranch } else { Conflicts::Kept };
            let joined = self.join(cell, &wish.path, &note, start.as_deref(), (onto, kept)).await?;
            start = joined.or(start);
        }
        if earlier.is_none()
            && let Some(joined) =
                self.join(cell, &wish.path, &note, start.as_deref(), (wish.onto, Conflicts::Refused)).await?
        {
            note.base.clone_from(&joined);
            start = Some(joined);
        }
        let made = self.check_out(cell, &wish.path, &note, start.as_deref()).await?;
        if start.is_none() {
            note.base = made;
        }
        enter(&wish.path, &note.inside)?;
        self.keep_base(cell, &mut note, wish).await?;
        copy_index(&git_dir, &index_of(&wish.path))?;
        save_note(&wish.path, &note)?;
        Ok(note)
    }

    /// A commit of the user's files as they are now. `None`: the last commit is what the run begins with.
    async fn take_users(
        &self,
        cell: &Cell,
        wish: &OpenWish<'_>,
        source: &Source,
        git_dir: &Path,
        note: &mut Note,
    ) -> Result<Option<String>, String> {
        if wish.setup.base == TreeBase::Head && source.head.is_some() && wish.resolves.is_none() {
            let left_out = source.uncommitted.filter(|count| *count > 0);
            note.not_in_base.extend(left_out.map(|count| format!("{count} uncommitted files (worktree.base is HEAD)")));
            return Ok(None);
        }
        let taken = self.snapshot(cell, source, git_dir).await?;
        note.not_in_base = taken.left_out;
        if let Some(commit) = &taken.commit {
            (note.base, note.has_uncommitted) = (commit.clone(), true);
        }
        Ok(taken.commit)
    }

    async fn is_known(&self, note: &Note, commit: &str) -> Result<(), String> {
        let name = format!("{commit}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
        let is_there = self.line(Call::new(Whose::Users, &note.common, &args)).await.is_ok();
        let gone = || format!("commit {commit}, which the run was to begin with, is not in the repository any more");
        (note.format.is_object(commit) && is_there).then_some(()).ok_or_else(gone)
    }

    /// An earlier run without changes has left nothing to go on from: its base may be a commit that only its own
    /// repository had.
    async fn earlier_with_work<'a>(&self, note: &Note, earlier: Option<&'a Earlier>) -> Option<&'a Earlier> {
        let earlier = earlier?;
        let base = match &earlier.base {
            Some(base) if earlier.head.as_ref() == Some(base) && note.format.is_object(base) => base,
            _ => return Some(earlier),
        };
        let name = format!("{base}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
        let is_there = self.line(Call::new(Whose::Users, &note.common, &args)).await.is_ok();
        is_there.then_some(earlier)
    }

    /// What the conversation is counted from, where it goes on, and where its branch is, if it has one.
    async fn go_on(&self, note: &Note, earlier: &Earlier) -> Result<(String, String, Option<String>), String> {
        let ask = async |what: &str| {
            let name = format!("{what}^{{commit}}");
            let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
            let found = self.line(Call::new(Whose::Users, &note.common, &args)).await;
            found.ok().filter(|oid| note.format.is_object(oid))
        };
        let branch = ask(&format!("refs/heads/{}", earlier.branch)).await;
        let head = match &earlier.head {
            Some(head) => ask(head).await,
            None => branch.clone(),
        };
        let Some(head) = head else {
            return Err(format!(
                "the commit of the earlier run ({}) is not in the repository any more; start without resume",
                earlier.branch
            ));
        };
        let base = match &earlier.base {
            Some(base) => ask(base).await,
            None => Some(head.clone()),
        };
        let base = base.ok_or("the commit that the conversation began at is not in the repository any more")?;
        Ok((base, head, branch))
    }

    pub(super) async fn check_out(
        &self,
        cell: &Cell,
        tree: &Path,
        note: &Note,
        start: Option<&str>,
    ) -> Result<String, String> {
        let mut env = script_env(self, &[("START", start.unwrap_or_default())]);
        let same = [("NAME", "Matsu"), ("EMAIL", "matsu@localhost"), ("DATE", "1970-01-01T00:00:00Z")];
        for (what, value) in same {
            env.insert(format!("GIT_AUTHOR_{what}"), value.to_owned());
            env.insert(format!("GIT_COMMITTER_{what}"), value.to_owned());
        }
        let work = sh(CHECK_OUT, env, tree, 1_000, None);
        let view = View { read: note.lenders(), write: vec![tree.to_owned()] };
        let done = confined(cell, work, view).await?;
        if done.code != Some(0) {
            return Err(format!(
                "the files of the commit cannot be checked out; in a partial or damaged clone fetch what is missing \
                 (`git fetch --refetch`), or use isolation none: {}",
                words(&done)
            ));
        }
        let made = String::from_utf8_lossy(&done.stdout).into_owned();
        let is_right = start.is_some() || note.format.is_object(&made);
        is_right.then_some(made).ok_or_else(|| "git did not name the commit that it made".to_owned())
    }

    /// As long as the reference is there, `git gc` does not remove what the tree borrows. The name is the task's;
    /// with several runs of one task also the job's.
    async fn keep_base(&self, cell: &Cell, note: &mut Note, wish: &OpenWish<'_>) -> Result<(), String> {
        let Some(known) = note.known.clone() else { return Ok(()) };
        let tree = self.worktree(cell.clone(), note.clone(), wish);
        let create = |refs: &str| format!("create {refs}/base {known}\n");
        let head = format!("{}/head", note.refs);
        let is_taken = {
            let args = ["show-ref", "--verify", "--quiet", &head];
            self.is_true(Call::new(Whose::Users, &note.common, &args)).await.unwrap_or(false)
        };
        if !is_taken && tree.update_refs(&create(&note.refs)).await.is_ok() {
            return Ok(());
        }
        note.refs = format!("{}.{}", note.refs, name::reference_part(wish.job));
        let lines = format!("update {}/base {known}\n", note.refs);
        tree.update_refs(&lines).await.map_err(|error| format!("the repository cannot be written: {error}"))
    }

    /// What the calling run has committed, out of its own confinement into the objects of the new tree.
    async fn take_start(
        &self,
        cell: &Cell,
        tree: &Path,
        theirs: &Note,
        git_dir: &Path,
        bytes_max: u64,
    ) -> Result<(), String> {
        let Some(known) = theirs.known.as_deref() else {
            return Err("a run in a repository without commits cannot start others on it; commit first".to_owned());
        };
        let bundle = cell.scratch.join("start");
        let env = script_env(self, &[("KNOWN", known)]);
        let view = View { read: theirs.lenders(), write: vec![tree.to_owned()] };
        let done = confined(cell, sh(BUNDLE_HEAD, env, tree, bytes_max, Some(&bundle)), view).await?;
        if done.code != Some(0) {
            return Err(format!("the tree of the calling run cannot be read: {}", words(&done)));
        }
        if std::fs::metadata(&bundle).is_ok_and(|meta| meta.len() == 0) {
            return Ok(());
        }
        let quarantine = Quarantine {
            git: self,
            folder: cell.scratch.join("start.git"),
            format: theirs.format,
            objects: theirs.lenders(),
            shallow: theirs.shallow.clone(),
        };
        quarantine.open()?;
        let expected = Expected { reference: "refs/matsu/start", known: Some(known), base: known, bytes_max };
        let header = quarantine.take(&bundle, &expected).await?;
        quarantine.give(&git_dir.join("objects"), &bundle, &header, bytes_max).await
    }
}

/// Brings a checked bundle into the tree of another run, inside that run's confinement.
pub async fn fetch_into(
    git: &Git,
    cell: &Cell,
    tree: &Path,
    bundle: &Path,
    branch: &str,
    note: &Note,
) -> Result<(), String> {
    let refspec = format!("{RESULT}:refs/heads/{branch}");
    let env = script_env(git, &[("BUNDLE", &bundle.display().to_string()), ("REFSPEC", &refspec)]);
    let script = "git fetch --quiet --no-tags --no-write-fetch-head --no-auto-maintenance \"$BUNDLE\" \"$REFSPEC\"";
    let mut read = note.lenders();
    read.push(bundle.to_owned());
    let done = confined(cell, sh(script, env, tree, 1_000, None), View { read, write: vec![tree.to_owned()] }).await?;
    if done.code == Some(0) { Ok(()) } else { Err(words(&done)) }
}

pub(super) fn words(done: &Done) -> String {
    matsu_core::job::end::clip(done.stderr.trim(), 1_000)
}

pub(super) fn script_env(git: &Git, more: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    let mut env = git.environment(Whose::Ours);
    env.extend(with_flags());
    env.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    env
}

pub(super) fn sh<'a>(
    script: &str,
    mut env: std::collections::BTreeMap<String, String>,
    directory: &'a Path,
    bytes_max: u64,
    into: Option<&'a Path>,
) -> Work<'a> {
    let above = directory.parent().unwrap_or(directory).display().to_string();
    env.insert("GIT_CEILING_DIRECTORIES".to_owned(), above);
    let args = vec!["-c".to_owned(), script.to_owned()];
    let (program, stdin) = (Path::new("/bin/sh"), Stdin::Nothing);
    Work { program, args, env, directory, stdin, within: GIT_MAX, bytes_max, into }
}

/// The wished directory must be in the tree; one that is not committed is made, empty.
pub(super) fn enter(tree: &Path, inside: &Path) -> Result<(), String> {
    let directory = tree.join(inside);
    let refused = |why: &str| format!("{} cannot be opened in the last commit: {why}", inside.display());
    std::fs::create_dir_all(&directory).map_err(|error| refused(&error.to_string()))?;
    let real = |path: &Path| path.canonicalize().map_err(|error| refused(&error.to_string()));
    if real(&directory)?.starts_with(real(tree)?) {
        Ok(())
    } else {
        Err(refused("there it is a link that leads out of the tree"))
    }
}

/// The rule that ignores one path.
fn exactly(name: &str) -> String {
    let escaped = name.chars().flat_map(|c| r"\*?[]! ".contains(c).then_some('\\').into_iter().chain([c]));
    std::iter::once('/').chain(escaped).collect()
}
