//! Merging the changes of a run with others to a commit of the user's repository, without a tree. Only our settings are
//! read, so no program that a repository names is started; the objects go where the repository has its own.

use std::path::{Path, PathBuf};

use matsu_core::merge::{MergeOrder, MergeStep, MergeTarget};
use matsu_core::run::Changes;

use super::super::confined::Cell;
use super::super::git::{Call, Git, Skeleton, Whose};
use super::known::Known;
use super::markers::{self, Ours};

/// Files of a conflict that are known.
const NAMES_MAX: usize = 1_000;

/// A repository of ours that writes its objects into the user's.
pub(super) struct Beside {
    folder: PathBuf,
    common: PathBuf,
    objects: PathBuf,
}

impl Beside {
    pub(super) fn call(&self, args: &[&str]) -> Call<'_> {
        let call = Call::new(Whose::Ours, &self.folder, args);
        call.env("GIT_OBJECT_DIRECTORY", self.objects.display().to_string())
    }
}

impl Git {
    /// # Errors
    /// As [`matsu_core::ports::agent::AgentHost::merge_target`].
    pub async fn merge_target(&self, repository: &Path, branch: &str) -> Result<MergeTarget, String> {
        let common = self.common(repository).await?;
        let is_name = ["check-ref-format", "--branch", branch];
        if branch.starts_with('-') || !self.is_name(&common, &is_name).await {
            return Err(format!("{branch} cannot be the name of a branch"));
        }
        if let Some(commit) = self.free_branch(&common, branch).await? {
            return Ok(MergeTarget { commit, exists: true });
        }
        let git_dir = self.places(repository).await?.lines().next().map(PathBuf::from).unwrap_or_default();
        let args = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        let commit = self.line(Call::new(Whose::Users, &git_dir, &args)).await;
        let commit = commit.map_err(|_| {
            format!("{} has no commit that a branch could begin with; commit first", repository.display())
        })?;
        Ok(MergeTarget { commit, exists: false })
    }

    async fn is_name(&self, common: &Path, args: &[&str]) -> bool {
        self.run(Call::new(Whose::Users, common, args)).await.is_ok()
    }

    async fn common(&self, repository: &Path) -> Result<PathBuf, String> {
        let found = self.places(repository).await?;
        let common = found.lines().nth(1).map(PathBuf::from);
        common.ok_or_else(|| format!("{} is not a git repository", repository.display()))
    }

    /// Where a branch stands. `None`: there is none.
    async fn free_branch(&self, common: &Path, branch: &str) -> Result<Option<String>, String> {
        let (format, name) = ("--format=%(objectname) %(worktreepath)", format!("refs/heads/{branch}"));
        let found = self.line(Call::new(Whose::Users, common, &["for-each-ref", format, &name])).await?;
        // A folder of branches has the same beginning.
        let line = found.lines().find(|line| line.contains(' ')).unwrap_or_default();
        let exact = self.line(Call::new(Whose::Users, common, &["rev-parse", "--verify", "--quiet", &name])).await;
        let Ok(commit) = exact else { return Ok(None) };
        match line.split_once(' ') {
            Some((_, folder)) if !folder.is_empty() => Err(format!(
                "branch {branch} is checked out in {folder}; name a branch that is not checked out, or omit it for a new one"
            )),
            _ => Ok(Some(commit)),
        }
    }

    /// # Errors
    /// As [`matsu_core::ports::agent::AgentHost::move_branch`].
    pub async fn move_branch(
        &self,
        repository: &Path,
        branch: &str,
        from: Option<&str>,
        to: &str,
    ) -> Result<(), String> {
        let common = self.common(repository).await?;
        let stands = self.free_branch(&common, branch).await?;
        if stands.as_deref() == Some(to) {
            return Ok(());
        }
        let none = "0".repeat(to.len());
        let name = format!("refs/heads/{branch}");
        let args = ["update-ref", "--no-deref", &name, to, from.unwrap_or(&none)];
        let moved = self.run(Call::new(Whose::Users, &common, &args)).await;
        moved.map(drop).map_err(|error| format!("branch {branch} was moved by another program meanwhile: {error}"))
    }

    /// # Errors
    /// As [`matsu_core::ports::agent::AgentHost::merge`].
    pub async fn combine(&self, cell: &Cell, order: &MergeOrder<'_>) -> Result<MergeStep, String> {
        let (changes, tip) = (order.changes, order.tip);
        let beside = self.beside(cell, changes).await?;
        if let Some(before) = order.resolves
            && let Some(files) = self.unresolved(&beside, before, changes).await?
        {
            return Ok(MergeStep::Unresolved(files));
        }
        let answered = self.ask(beside.call(&merging(changes, tip)).attributes(tip)).await?;
        let mut parts = answered.stdout.split(|byte| *byte == 0);
        let tree = String::from_utf8_lossy(parts.next().unwrap_or_default()).trim().to_owned();
        match answered.code {
            Some(0) => {}
            Some(1) => {
                let names = parts.take_while(|name| !name.is_empty()).take(NAMES_MAX);
                return Ok(MergeStep::Conflict(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()));
            }
            _ => return Err(format!("git merge-tree: {}", answered.stderr.trim())),
        }
        let before = self.line(beside.call(&["rev-parse", "--verify", &format!("{tip}^{{tree}}")])).await?;
        if before == tree {
            return Ok(MergeStep::Contained);
        }
        let mut args = vec!["commit-tree", &tree, "-p", tip];
        // The history of a run that began with uncommitted files has a commit of them.
        if !changes.has_uncommitted {
            args.extend(["-p", &changes.head]);
        }
        args.extend(["-m", order.message]);
        let commit = self.line(beside.call(&args).by_matsu()).await?;
        // Kept from being removed as garbage while it is checked.
        let name = format!("refs/matsu/{}/merge", order.task_id);
        self.run(Call::new(Whose::Users, &beside.common, &["update-ref", "--no-deref", &name, &commit])).await?;
        Ok(MergeStep::Commit(commit))
    }

    /// Files in which a run has left the conflicts that it was given. None are named if it changed nothing at all, as with
    /// a file that one side has deleted, where there are no markers. `None`: it has resolved them.
    async fn unresolved(
        &self,
        beside: &Beside,
        before: &Changes,
        after: &Changes,
    ) -> Result<Option<Vec<String>>, String> {
        let left = markers::left(&Ours { git: self, beside }, &[&after.base], &after.head).await?;
        if !left.is_empty() {
            return Ok(Some(left));
        }
        let given = self.ask(beside.call(&merging(before, &after.base)).attributes(&after.base)).await?;
        let given =
            String::from_utf8_lossy(given.stdout.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
        let tree = self.line(beside.call(&["rev-parse", "--verify", &format!("{}^{{tree}}", after.head)])).await?;
        Ok((given.trim() == tree).then(Vec::new))
    }

    pub(super) async fn beside(&self, cell: &Cell, changes: &Changes) -> Result<Beside, String> {
        let Known { common, objects, borrows, format, shallow } = self.known(cell, changes).await?;
        let skeleton = Skeleton { format, is_bare: true, borrows: &borrows, shallow: shallow.as_deref(), settings: "" };
        let folder = cell.scratch.join("beside.git");
        skeleton.write(&folder).map_err(|error| error.to_string())?;
        Ok(Beside { folder, common, objects })
    }
}

/// The arguments that merge what a run changed with a commit.
fn merging<'a>(changes: &'a Changes, tip: &'a str) -> [&'a str; 9] {
    let (base, head) = (&changes.base, &changes.head);
    ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", "--merge-base", base, tip, head]
}
