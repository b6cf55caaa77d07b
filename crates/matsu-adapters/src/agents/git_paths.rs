//! Where git keeps what it obeys: configuration, hooks, references. A run that works in the user's own tree
//! (`isolation = none`) must not write there, or the user's next `git status` would execute its code.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Entries that are looked at below a directory, nearest first. A tree with more may hold repositories of its own
/// deeper down that are not found; its own `.git` always is.
const ENTRIES_MAX: usize = 20_000;

/// A `.git` file, `commondir` and `alternates` hold paths; nothing longer is one.
const PATH_FILE_BYTES_MAX: u64 = 64 * 1024;

/// How many repositories git follows from one that borrows to the one that lends.
const LENDERS_DEEP_MAX: usize = 5;

/// Whether a directory lies in a git tree, without asking git.
#[must_use]
pub fn is_inside_git(directory: &Path) -> bool {
    top_of(directory).is_some()
}

/// The nearest folder above, or the directory itself, that has a `.git`.
#[must_use]
pub fn top_of(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok())
}

/// Everything that must be read-only for a run that may write in `directory`: each `.git` in it, above it and below it,
/// and where a `.git` that is a file or a link points, with the folder that linked worktrees share.
#[must_use]
pub fn protected_git_paths(directory: &Path) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for folder in directory.ancestors() {
        add(&folder.join(".git"), &mut found);
    }
    let mut folders = VecDeque::from([directory.to_owned()]);
    let mut entries = 0;
    while let Some(folder) = folders.pop_front() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries += 1;
            if entry.file_name() == ".git" {
                add(&entry.path(), &mut found);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entries < ENTRIES_MAX {
                folders.push_back(entry.path());
            }
        }
        if entries >= ENTRIES_MAX {
            break;
        }
    }
    found.into_iter().collect()
}

/// The repository of a tree: its `.git`, where that points, and what is shared there.
#[must_use]
pub fn repository_of(top: &Path) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    add(&top.join(".git"), &mut found);
    found.into_iter().collect()
}

fn add(git: &Path, found: &mut BTreeSet<PathBuf>) {
    let Ok(meta) = git.symlink_metadata() else { return };
    found.insert(git.to_owned());
    let real = if meta.is_symlink() { git.canonicalize().ok() } else { Some(git.to_owned()) };
    let Some(real) = real else { return };
    let folder = if real.is_file() { pointed_to(&real) } else { Some(real) };
    let Some(folder) = folder else { return };
    if let Some(common) = path_in(&folder.join("commondir")) {
        found.extend(folder.join(common).canonicalize().ok());
    }
    found.insert(folder);
}

/// `gitdir: PATH`, relative to the folder of the file.
fn pointed_to(file: &Path) -> Option<PathBuf> {
    let text = path_in(file)?;
    let path = text.to_str()?.strip_prefix("gitdir:")?.trim().to_owned();
    file.parent()?.join(path).canonicalize().ok()
}

fn path_in(file: &Path) -> Option<PathBuf> {
    let text = small_text(file)?;
    let line = text.trim_end_matches(['\n', '\r']);
    (!line.is_empty()).then(|| PathBuf::from(line))
}

fn small_text(file: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(file).ok()?.take(PATH_FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// An object folder and those that it borrows from: what has to be readable so that its objects are.
#[must_use]
pub fn lenders(objects: &Path) -> Vec<PathBuf> {
    let mut all = vec![objects.to_owned()];
    let mut level = all.clone();
    for _ in 0..LENDERS_DEEP_MAX {
        let mut next = Vec::new();
        for folder in &level {
            let text = small_text(&folder.join("info/alternates")).unwrap_or_default();
            let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            let paths = lines.filter_map(|line| folder.join(line).canonicalize().ok());
            next.extend(paths.filter(|path| !all.contains(path)));
        }
        all.extend(next.iter().cloned());
        level = next;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        (folder, root)
    }

    #[test]
    fn the_repository_of_a_tree_is_found_from_every_folder_in_it() {
        let (_folder, root) = tree();
        fs::create_dir_all(root.join("project/.git/hooks")).unwrap();
        fs::create_dir_all(root.join("project/src/deep")).unwrap();
        let git = root.join("project/.git");
        for directory in ["project", "project/src/deep"] {
            assert_eq!(protected_git_paths(&root.join(directory)), std::slice::from_ref(&git), "{directory}");
        }
        assert_eq!(protected_git_paths(&root), [git], "one below counts too");
        assert!(is_inside_git(&root.join("project/src")) && !is_inside_git(&root));
    }

    #[test]
    fn a_git_file_protects_where_it_points_and_what_is_shared_there() {
        let (_folder, root) = tree();
        fs::create_dir_all(root.join("main/.git/worktrees/linked")).unwrap();
        fs::create_dir_all(root.join("linked")).unwrap();
        fs::write(root.join("linked/.git"), "gitdir: ../main/.git/worktrees/linked\n").unwrap();
        fs::write(root.join("main/.git/worktrees/linked/commondir"), "../..\n").unwrap();
        let expected = [root.join("linked/.git"), root.join("main/.git"), root.join("main/.git/worktrees/linked")];
        assert_eq!(protected_git_paths(&root.join("linked")), expected);
    }

    #[test]
    fn a_link_as_git_protects_the_link_and_its_target() {
        let (_folder, root) = tree();
        fs::create_dir_all(root.join("elsewhere")).unwrap();
        fs::create_dir_all(root.join("project")).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("project/.git")).unwrap();
        assert_eq!(protected_git_paths(&root.join("project")), [root.join("elsewhere"), root.join("project/.git")]);
    }

    #[test]
    fn lenders_of_lenders_are_found_and_a_circle_ends() {
        let (_folder, root) = tree();
        for (name, lends) in [("a", "b"), ("b", "c"), ("c", "a")] {
            fs::create_dir_all(root.join(name).join("info")).unwrap();
            fs::write(root.join(name).join("info/alternates"), format!("../{lends}\n")).unwrap();
        }
        assert_eq!(lenders(&root.join("a")), [root.join("a"), root.join("b"), root.join("c")]);
    }
}
