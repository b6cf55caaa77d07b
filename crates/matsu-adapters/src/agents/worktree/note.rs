//! What is noted of a tree, beside it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::git::Format;
use super::super::runs_folder::write_private;

/// What must be known about a tree and must not come from it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Note {
    /// The job that works in the tree. A conversation that goes on keeps the folder, and a job before it does not
    /// close it. Empty: of an older version.
    #[serde(default)]
    pub job: String,
    /// The top of the user's tree.
    pub repository: PathBuf,
    /// The user's `.git`, the shared one.
    pub common: PathBuf,
    pub objects: PathBuf,
    /// The object folders that the tree borrows from; empty with a note of an older version.
    #[serde(default)]
    pub lends: Vec<PathBuf>,
    pub format: Format,
    /// What changes are counted from.
    pub base: String,
    /// A commit that the user's repository has. `None`: it had none when the run began.
    pub known: Option<String>,
    /// What the branch was before this run, if it goes on with an earlier one.
    pub earlier: Option<String>,
    pub branch: String,
    pub longer_branch: String,
    /// `refs/matsu/TASK`.
    pub refs: String,
    pub uncommitted: Option<u64>,
    /// The base is the user's tree with what was not committed.
    #[serde(default)]
    pub has_uncommitted: bool,
    /// What is in the user's tree and not in the base.
    #[serde(default)]
    pub not_in_base: Vec<String>,
    /// The wished directory, relative to the tree.
    pub inside: PathBuf,
    #[serde(default)]
    pub shallow: Option<String>,
    #[serde(default)]
    pub settings: String,
    #[serde(default)]
    pub excludes: String,
    /// The tree of the run that asked for this one; it gets the branch as well.
    #[serde(default)]
    pub caller: Option<PathBuf>,
    /// Nothing in it was the work of a run when it was made.
    #[serde(default)]
    pub is_users: bool,
    /// Copies and setup are still to be made there.
    #[serde(default)]
    pub is_unprepared: bool,
    /// Ignored files that were there before the program.
    #[serde(default)]
    pub ignored_before: Vec<String>,
    /// Submodules whose folders were not empty before the program.
    #[serde(default)]
    pub filled_before: Vec<String>,
}

impl Note {
    /// The objects that the tree borrows, as they were found when it was made.
    pub fn lenders(&self) -> Vec<PathBuf> {
        if self.lends.is_empty() { vec![self.objects.clone()] } else { self.lends.clone() }
    }

    #[cfg(test)]
    pub fn for_tests() -> Self {
        Self {
            repository: PathBuf::from("/p"),
            common: PathBuf::from("/p/.git"),
            objects: PathBuf::from("/p/.git/objects"),
            branch: "matsu/x".to_owned(),
            longer_branch: "matsu/x-y".to_owned(),
            refs: "refs/matsu/t".to_owned(),
            ..Self::default()
        }
    }
}

/// The index as the checkout left it, beside the tree and out of the run's reach.
pub(super) fn index_of(tree: &Path) -> PathBuf {
    tree.with_added_extension("index")
}

/// Beside the tree of the same name.
pub(super) fn note_of(tree: &Path) -> PathBuf {
    tree.with_added_extension("json")
}

pub(super) fn read_note(tree: &Path) -> Option<Note> {
    serde_json::from_str(&std::fs::read_to_string(note_of(tree)).ok()?).ok()
}

pub(super) fn save_note(tree: &Path, note: &Note) -> Result<(), String> {
    let text = serde_json::to_string_pretty(note).map_err(|error| error.to_string())?;
    write_private(&note_of(tree), &text).map_err(|error| error.to_string())
}
