//! Bringing the changes of a run into the user's tree, one at a time in each tree, and taking them back.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use matsu_core::id::JobId;
use matsu_core::limits::TICK;
use matsu_core::ports::agent::{Applied, ApplyError};
use matsu_core::run::Changes;

use super::super::git::Git;
use super::super::runs_folder::make_private;
use super::CliHost;
use crate::agents::removal::remove_folder;

/// Below the data directory: what takes back each set of changes that was applied.
const FOLDER: &str = "applied";

/// So long changes can be taken back.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// Merges of large trees take seconds; a call that waits longer than this is refused and can be repeated.
const WAITS_MAX: u32 = 60;

impl CliHost {
    fn kept(&self, job: &JobId) -> PathBuf {
        self.options.data_dir.join(FOLDER).join(job.as_str())
    }

    pub(super) async fn apply_changes(
        &self,
        job: &JobId,
        changes: &Changes,
        keep_conflicts: bool,
    ) -> Result<Applied, ApplyError> {
        let git = Git::find(&self.options.environment)?;
        let _alone = self.alone(&git, changes).await?;
        self.roll_back(&git, &changes.repository).await?;
        let applied = git.apply(self.cell(job.as_str())?, &self.kept(job), changes, keep_conflicts).await?;
        // The files are written; a branch that stays is no reason to call that a failure.
        if let Err(why) = git.remove_branch(changes).await {
            tracing::info!(why, "the branch of applied changes could not be removed; it stays");
        }
        Ok(applied)
    }

    pub(super) async fn undo_changes(&self, job: &JobId, changes: &Changes) -> Result<(), ApplyError> {
        let git = Git::find(&self.options.environment)?;
        let _alone = self.alone(&git, changes).await?;
        self.roll_back(&git, &changes.repository).await?;
        git.undo_apply(self.cell(job.as_str())?, &self.kept(job), changes).await?;
        if let Err(why) = git.restore_branch(changes).await {
            tracing::info!(why, "the branch of changes whose apply was undone could not be restored");
        }
        Ok(())
    }

    /// Takes back what a process had written that was killed while it applied changes: all or nothing in each tree.
    pub(super) async fn roll_back_unfinished(&self) {
        let mut left: Vec<Changes> = self.unfinished().into_iter().map(|(_, changes)| changes).collect();
        left.dedup_by(|one, other| one.repository == other.repository);
        for changes in left {
            let repository = &changes.repository;
            tracing::warn!(repository, "an apply was interrupted; the files that it wrote are being restored");
            let taken_back = async {
                let git = Git::find(&self.options.environment)?;
                let _alone = self.alone(&git, &changes).await?;
                self.roll_back(&git, repository).await
            };
            if let Err(error) = taken_back.await {
                tracing::warn!(repository, %error, "the files that an interrupted apply wrote could not be restored");
            }
        }
    }

    /// What is being applied, or was when its process was killed, with its folder.
    fn unfinished(&self) -> Vec<(PathBuf, Changes)> {
        let entries = fs::read_dir(self.options.data_dir.join(FOLDER)).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some((entry.path(), Git::unfinished(&entry.path())?))).collect()
    }

    pub(super) fn unfinished_in_words(&self) -> Vec<String> {
        let one = |(kept, changes): (PathBuf, Changes)| {
            let repository = changes.repository;
            if Git::is_taken_back(&kept) {
                return format!("an apply into {repository} was interrupted and is being undone");
            }
            format!(
                "changes are being applied to {repository}, or an apply was interrupted and the daemon will undo it"
            )
        };
        self.unfinished().into_iter().map(one).collect()
    }

    /// Only with the tree for oneself: then none of these is still at work.
    async fn roll_back(&self, git: &Git, repository: &str) -> Result<(), ApplyError> {
        for (kept, changes) in self.unfinished() {
            if changes.repository == repository {
                let name = kept.file_name().unwrap_or_default().to_string_lossy().into_owned();
                git.roll_back(self.cell(&name)?, &kept).await.map_err(|why| {
                    format!(
                        "an earlier apply into {repository} was interrupted, and the files that it wrote cannot be restored: \
                         {why}"
                    )
                })?;
                tracing::warn!(job.id = name, repository, "the files that an interrupted apply wrote were restored");
            }
        }
        Ok(())
    }

    /// Two merges into one tree at the same time would each undo a part of the other. The lock is on the folder of git
    /// for that tree: other processes, with a data directory of their own, apply as well.
    async fn alone(&self, git: &Git, changes: &Changes) -> Result<File, ApplyError> {
        let failed = |error: std::io::Error| ApplyError::Failed(error.to_string());
        make_private(&self.options.data_dir.join(FOLDER)).map_err(failed)?;
        let repository = &changes.repository;
        let places = git.places(Path::new(repository)).await?;
        let folder = File::open(places.lines().next().unwrap_or_default()).map_err(failed)?;
        for _ in 0..WAITS_MAX {
            if folder.try_lock().is_ok() {
                return Ok(folder);
            }
            self.options.clock.sleep(TICK).await;
        }
        let is_of_this = |(_, other): &(PathBuf, Changes)| other.repository == *repository;
        let is_taken_back =
            self.unfinished().iter().filter(|one| is_of_this(one)).any(|(kept, _)| Git::is_taken_back(kept));
        Err(ApplyError::Failed(if is_taken_back {
            format!("an apply into {repository} was interrupted and is being undone; try again when that has ended")
        } else {
            format!("other changes are being applied to {repository}; try again when that has ended")
        }))
    }
}

/// Removes what is too old to be taken back.
pub fn sweep(data_dir: &Path) {
    for entry in fs::read_dir(data_dir.join(FOLDER)).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        if entry.path().is_dir() && age.is_some_and(|age| age > KEPT_FOR) {
            let _ = remove_folder(&entry.path());
        }
    }
}
