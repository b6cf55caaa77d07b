//! What is noted of a run's tree as it begins: from the user's repository, or from the tree of the calling run.

use std::path::{Path, PathBuf};

use super::super::git_paths;
use super::open::OpenWish;
use super::source::Source;
use super::{Note, name, read_note};

pub(super) fn refs_of(wish: &OpenWish<'_>) -> String {
    format!("refs/matsu/{}", name::reference_part(wish.task.unwrap_or(wish.job)))
}

impl Note {
    /// What is this run's own, whatever its tree comes from.
    fn begun(self, source: &Source, inside: PathBuf, wish: &OpenWish<'_>) -> Self {
        Self {
            job: wish.job.to_owned(),
            earlier: None,
            branch: name::branch(wish.message, wish.job),
            longer_branch: name::longer_branch(wish.message, wish.job),
            refs: refs_of(wish),
            uncommitted: source.uncommitted,
            inside,
            ..self
        }
    }
}

pub(super) fn from_source(source: &Source, inside: PathBuf, wish: &OpenWish<'_>) -> Result<Note, String> {
    let around = [source.top.as_path(), source.common.parent().unwrap_or(&source.common)];
    let lends = git_paths::own_lenders(&source.objects, &around, wish.confiner.layout())?;
    Ok(Note {
        lends,
        repository: source.top.clone(),
        common: source.common.clone(),
        objects: source.objects.clone(),
        format: source.format,
        base: source.head.clone().unwrap_or_default(),
        known: source.head.clone(),
        shallow: source.shallow.clone(),
        settings: source.settings.clone(),
        excludes: source.excludes.clone(),
        ..Note::default()
    }
    .begun(source, inside, wish))
}

/// Everything about the user's repository comes from what was noted for the calling run; of what its tree says only the
/// commit is used, and that is checked.
pub(super) fn from_caller(
    theirs: &Note,
    tree: &Path,
    source: &Source,
    inside: PathBuf,
    wish: &OpenWish<'_>,
) -> Result<Note, String> {
    let head = source.head.clone().ok_or("the tree of the calling run has no commit")?;
    if !theirs.format.is_object(&head) {
        return Err("the tree of the calling run uses another object format than its repository".to_owned());
    }
    Ok(Note { base: head, caller: Some(tree.to_owned()), ..theirs.clone() }.begun(source, inside, wish))
}

/// The run in whose tree this directory lies, if any. Only what was noted outside the tree counts.
pub(super) fn caller_of(data_dir: &Path, directory: &Path) -> Result<Option<(PathBuf, Note)>, String> {
    let data_dir = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned());
    let Ok(inside) = directory.strip_prefix(&data_dir) else { return Ok(None) };
    let mut parts = inside.components();
    let tree = match (parts.next(), parts.next()) {
        (Some(folder), Some(tree)) if folder.as_os_str() == "worktrees" => data_dir.join("worktrees").join(tree),
        _ => return Err("the directory lies in Matsu's own folder".to_owned()),
    };
    let note = read_note(&tree).ok_or("the run whose tree this is has ended")?;
    Ok(Some((tree, note)))
}

#[cfg(test)]
mod tests {
    use super::super::save_note;
    use super::*;

    #[test]
    fn a_directory_in_matsus_own_folder_is_the_tree_of_a_noted_run_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(data.join("worktrees/job_1/src")).unwrap();
        assert!(caller_of(&data, Path::new("/elsewhere")).unwrap().is_none());
        assert!(caller_of(&data, &data.join("worktrees/job_1/src")).is_err(), "nothing is noted");
        assert!(caller_of(&data, &data.join("runs/x")).is_err() && caller_of(&data, &data).is_err());
        save_note(&data.join("worktrees/job_1"), &Note::for_tests()).unwrap();
        let (tree, note) = caller_of(&data, &data.join("worktrees/job_1/src")).unwrap().unwrap();
        assert_eq!((tree, note.refs.as_str()), (data.join("worktrees/job_1"), "refs/matsu/t"));
        assert!(!git_paths::is_inside_git(&data.join("worktrees/job_1")));
    }
}
