//! The user's repository as it is now, looked at because changes of a run lie there.

use std::path::PathBuf;

use matsu_core::run::Changes;

use super::super::confined::Cell;
use super::super::git::{Format, Git};
use super::super::git_paths;

/// What is known of it.
pub struct Known {
    /// Where references and objects lie.
    pub common: PathBuf,
    pub objects: PathBuf,
    /// The object folders that a repository of ours borrows from.
    pub borrows: Vec<PathBuf>,
    pub format: Format,
    /// Of a history that is cut: where.
    pub shallow: Option<String>,
}

impl Git {
    /// # Errors
    /// It is gone, is another one now, or the commits are not named as it names objects.
    pub(super) async fn known(&self, cell: &Cell, changes: &Changes) -> Result<Known, String> {
        let top = PathBuf::from(&changes.repository);
        let found = self.places(&top).await?;
        let lines: Vec<&str> = found.lines().collect();
        let [_, common, objects] = lines.as_slice() else {
            return Err(format!("{} is not a git repository any more", top.display()));
        };
        let (common, objects) = (PathBuf::from(common), PathBuf::from(objects));
        let machine = cell.confiner.layout();
        if !git_paths::repository_of(&top, machine)?.contains(&common) {
            return Err(format!("the repository of {} is another one now: {}", top.display(), common.display()));
        }
        let around = [top.as_path(), common.parent().unwrap_or(&common)];
        let borrows = git_paths::own_lenders(&objects, &around, machine)?;
        let format = if changes.head.len() == 64 { Format::Sha256 } else { Format::Sha1 };
        if ![&changes.base, &changes.head].into_iter().all(|commit| format.is_object(commit)) {
            return Err("the commits of the run use another object format than its repository".to_owned());
        }
        let shallow = std::fs::read_to_string(common.join("shallow")).ok();
        Ok(Known { common, objects, borrows, format, shallow })
    }
}
