//! The branch of a run after it has ended: removed when its changes were applied or discarded, restored when that is
//! taken back. A branch that a person has moved or checked out stays.

use std::path::{Path, PathBuf};

use matsu_core::run::Changes;

use super::super::git::{Call, Git, Whose};
use super::super::git_paths;

impl Git {
    /// # Errors
    /// Why it stays.
    pub async fn remove_branch(&self, changes: &Changes) -> Result<(), String> {
        let Some((common, name)) = self.branch_of(changes).await? else { return Ok(()) };
        let format = "--format=%(objectname) %(worktreepath)";
        let found = self.line(Call::new(Whose::Users, &common, &["for-each-ref", format, &name])).await?;
        let (head, checked_out) = found.split_once(' ').unwrap_or((&found, ""));
        if head.is_empty() {
            return Ok(());
        }
        if head != changes.head {
            return Err(format!("branch {} was moved; remove it with git branch -D", changes.branch));
        }
        if !checked_out.is_empty() {
            return Err(format!("branch {} is checked out in {checked_out}; switch to another first", changes.branch));
        }
        let args = ["update-ref", "--no-deref", "-d", &name, &changes.head];
        self.run(Call::new(Whose::Users, &common, &args)).await.map(drop)
    }

    /// The reference of ours that has the commits of a run. `None`: it was removed.
    ///
    /// # Errors
    /// As git's.
    pub async fn kept_by(&self, changes: &Changes) -> Result<Option<String>, String> {
        let found = self.places(&PathBuf::from(&changes.repository)).await?;
        let common = PathBuf::from(found.lines().nth(1).unwrap_or_default());
        let args = ["for-each-ref", "--format=%(refname)", "--points-at", &changes.head, "refs/matsu"];
        // A commit that is gone is not kept.
        let names = self.line(Call::new(Whose::Users, &common, &args)).await.unwrap_or_default();
        Ok(names.lines().find(|name| name.ends_with("/head")).map(str::to_owned))
    }

    /// # Errors
    /// As git's.
    pub async fn restore_branch(&self, changes: &Changes) -> Result<(), String> {
        let Some((common, name)) = self.branch_of(changes).await? else { return Ok(()) };
        let none = "0".repeat(changes.head.len());
        let args = ["update-ref", "--no-deref", &name, &changes.head, &none];
        self.run(Call::new(Whose::Users, &common, &args)).await.map(drop)
    }

    /// The user's repository and the full name of the branch. `None`: the run has none.
    async fn branch_of(&self, changes: &Changes) -> Result<Option<(PathBuf, String)>, String> {
        if changes.branch.is_empty() || changes.branch.starts_with("refs/") {
            return Ok(None);
        }
        let found = self.places(&PathBuf::from(&changes.repository)).await?;
        let common = found.lines().nth(1).ok_or_else(|| format!("{} is not a git repository", changes.repository))?;
        git_paths::check_plain(Path::new(common))?;
        Ok(Some((PathBuf::from(common), format!("refs/heads/{}", changes.branch))))
    }
}
