//! Bringing the changes of a run into the user's tree, one at a time on this machine, and taking them back.

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
        let _alone = self.alone().await?;
        let git = Git::find(&self.options.environment)?;
        self.roll_back(&git).await?;
        let applied = git.apply(self.cell(job.as_str())?, &self.kept(job), changes, keep_conflicts).await?;
        // The files are written; a branch that stays is no reason to call that a failure.
        if let Err(why) = git.remove_branch(changes).await {
            tracing::info!(why, "the branch of changes that were applied stays");
        }
        Ok(applied)
    }

    pub(super) async fn undo_changes(&self, job: &JobId, changes: &Changes) -> Result<(), ApplyError> {
        let _alone = self.alone().await?;
        let git = Git::find(&self.options.environment)?;
        self.roll_back(&git).await?;
        git.undo_apply(self.cell(job.as_str())?, &self.kept(job), changes).await?;
        if let Err(why) = git.restore_branch(changes).await {
            tracing::info!(why, "the branch of changes that were taken back could not be restored");
        }
        Ok(())
    }

    /// Takes back what a process had written that was killed while it applied changes: all or nothing.
    pub(super) async fn roll_back_unfinished(&self) -> Result<(), ApplyError> {
        if !self.options.data_dir.join(FOLDER).exists() {
            return Ok(());
        }
        let _alone = self.alone().await?;
        self.roll_back(&Git::find(&self.options.environment)?).await
    }

    async fn roll_back(&self, git: &Git) -> Result<(), ApplyError> {
        for entry in fs::read_dir(self.options.data_dir.join(FOLDER)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if Git::was_interrupted(&entry.path()) {
                git.roll_back(self.cell(&name)?, &entry.path()).await?;
                tracing::warn!(job.id = name, "an apply was interrupted; what it had written was taken back");
            }
        }
        Ok(())
    }

    /// Two merges into one tree at the same time would each undo a part of the other. Other processes apply as well.
    async fn alone(&self) -> Result<File, ApplyError> {
        let folder = self.options.data_dir.join(FOLDER);
        let failed = |error: std::io::Error| ApplyError::Failed(error.to_string());
        make_private(&folder).map_err(failed)?;
        let mut options = File::options();
        let file = options.create(true).truncate(false).write(true).open(folder.join("lock")).map_err(failed)?;
        for _ in 0..WAITS_MAX {
            if file.try_lock().is_ok() {
                return Ok(file);
            }
            self.options.clock.sleep(TICK).await;
        }
        Err(ApplyError::Failed("other changes are being applied; try again when that has ended".to_owned()))
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
