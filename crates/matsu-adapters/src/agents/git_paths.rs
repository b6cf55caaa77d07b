//! Where git keeps what it obeys: configuration, hooks, references. A run that works in the user's own tree
//! (`isolation = none`) must not write there, or the user's next `git status` would execute its code.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use super::sandbox::reach::Machine;
use super::{foreign_file, gitlinks};

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
/// and where a `.git` that is a file points, with the folder that linked worktrees share. An earlier run may have
/// written any of these, so nothing outside of `directory` is given that is not its own repository.
///
/// The folder of a submodule that was not fetched is read-only too: git would obey a `.git` that is made there.
///
/// # Errors
/// A `.git` in the directory is a link, which could be replaced, whatever is done with its target; or a submodule has no
/// folder, so that a run could make one.
pub fn protected_git_paths(directory: &Path, machine: &Machine) -> Result<Vec<PathBuf>, String> {
    let mut found = BTreeSet::new();
    for folder in directory.ancestors().skip(1) {
        add(&folder.join(".git"), directory, machine, &mut found);
    }
    for git in below(directory) {
        if git.is_symlink() {
            return Err(format!(
                "{} is a link, which cannot be kept from a run that may write there; use isolation worktree, mode \
                 read-only, or remove the link",
                git.display()
            ));
        }
        add(&git, directory, machine, &mut found);
    }
    for submodule in unfetched(directory, &found)? {
        if !submodule.is_dir() {
            return Err(format!(
                "the submodule {} has no folder; fetch it (git submodule update --init), or use isolation worktree",
                submodule.display()
            ));
        }
        found.insert(submodule);
    }
    Ok(found.into_iter().collect())
}

/// The folders of submodules below the directory that have no `.git`. `gits` are the repositories that were found.
fn unfetched(directory: &Path, gits: &BTreeSet<PathBuf>) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for git in gits.iter().filter(|git| git.file_name().is_some_and(|name| name == ".git")) {
        let Some(top) = git.parent() else { continue };
        let git_dir = if git.is_file() { pointed_to(git) } else { Some(git.clone()) };
        let Some(git_dir) = git_dir else { continue };
        let submodules = gitlinks::submodules(&git_dir)?.into_iter().map(|path| top.join(path));
        let ours = submodules.filter(|path| path.starts_with(directory));
        found.extend(ours.filter(|path| path.join(".git").symlink_metadata().is_err()));
    }
    Ok(found)
}

/// Whether a directory has a `.git`, in itself or in a folder of it.
#[must_use]
pub fn has_git_below(directory: &Path) -> bool {
    !below(directory).is_empty()
}

fn below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([directory.to_owned()]);
    let mut entries = 0;
    while let Some(folder) = folders.pop_front() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            entries += 1;
            if entry.file_name() == ".git" {
                found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) && entries < ENTRIES_MAX {
                folders.push_back(entry.path());
            }
        }
        if entries >= ENTRIES_MAX {
            break;
        }
    }
    found
}

/// The repository of a tree: its `.git`, where that points, and what is shared there.
///
/// # Errors
/// It points to something that is not known to be this tree's own repository.
pub fn repository_of(top: &Path, machine: &Machine) -> Result<Vec<PathBuf>, String> {
    let git = top.join(".git");
    let mut found = BTreeSet::new();
    let Ok(meta) = git.symlink_metadata() else { return Ok(Vec::new()) };
    let target = if meta.is_dir() { None } else { Some(git.canonicalize().ok().filter(|_| meta.is_symlink())) };
    let target = target.map(|linked| linked.or_else(|| pointed_to(&git)));
    if meta.is_symlink() {
        let target = target.clone().flatten().filter(|target| machine.is_read(target));
        found.extend(target.into_iter().flat_map(|target| [git.clone(), target]));
    } else {
        add(&git, top, machine, &mut found);
    }
    match target {
        Some(target) if !target.as_ref().is_some_and(|target| found.contains(target)) => Err(format!(
            "{} leads to {}, which does not name this tree as its own; an agent could have written that. If it is \
             right, name that folder in agents.read; else use isolation none",
            git.display(),
            target.map_or_else(|| "nothing".to_owned(), |target| target.display().to_string()),
        )),
        _ => Ok(found.into_iter().collect()),
    }
}

fn add(git: &Path, directory: &Path, machine: &Machine, found: &mut BTreeSet<PathBuf>) {
    let Ok(meta) = git.symlink_metadata() else { return };
    if meta.is_symlink() {
        return;
    }
    found.insert(git.to_owned());
    let is_given = |path: &Path| path.starts_with(directory) || machine.is_read(path);
    let is_own = |target: &PathBuf| is_given(target) || (!machine.hides(target) && belongs(git, target));
    let folder = if meta.is_file() { pointed_to(git).filter(is_own) } else { Some(git.to_owned()) };
    let Some(folder) = folder else { return };
    if let Some(common) = path_in(&folder.join("commondir"))
        && let Ok(common) = folder.join(common).canonicalize()
        && (is_given(&common) || folder.parent() == Some(&common.join("worktrees")))
    {
        found.insert(common);
    }
    found.insert(folder);
}

/// Whether the folder that a `.git` file points to is the repository of that tree by its own word, which is not in the
/// tree: a linked worktree is noted where it points to, and a submodule lies in the `.git` of the tree around it.
fn belongs(git: &Path, target: &Path) -> bool {
    let is_noted = path_in(&target.join("gitdir"))
        .and_then(|noted| target.join(noted).canonicalize().ok())
        .is_some_and(|noted| noted == git);
    let is_of_tree_around = || {
        let around = git.ancestors().skip(2).map(|folder| folder.join(".git"));
        let mut around = around.filter(|other| other.symlink_metadata().is_ok_and(|meta| meta.is_dir()));
        around.any(|other| target.starts_with(other))
    };
    is_noted || is_of_tree_around()
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
    foreign_file::read_text(file, PATH_FILE_BYTES_MAX).ok()
}

/// What a link or a pipe in the common folder of a repository could lead elsewhere: the daemon's git reads and writes
/// these as the user, and a run may have made them.
const PLAIN: &[&str] = &[
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "index",
    "info",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "logs",
    "modules",
    "objects",
    "objects/info",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/pack",
    "packed-refs",
    "refs",
    "shallow",
    "worktrees",
];

/// References and their logs that are looked at; a repository with more is not looked at further.
const REFERENCES_MAX: usize = 200_000;

/// # Errors
/// Something in it that git follows is a link, or no file or folder at all.
pub fn check_plain(common: &Path) -> Result<(), String> {
    let refused = |path: &Path| {
        Err(format!(
            "{} is a link or a special file, which git would follow; make it a plain file or folder, or use isolation none",
            path.display()
        ))
    };
    let is_plain = |path: &Path| path.symlink_metadata().map_or(true, |meta| meta.is_dir() || meta.is_file());
    if let Some(odd) = PLAIN.iter().map(|name| common.join(name)).find(|path| !is_plain(path)) {
        return refused(&odd);
    }
    let mut folders: Vec<PathBuf> = ["refs", "logs"].iter().map(|name| common.join(name)).collect();
    let mut entries = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().map_err(|error| error.to_string())?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if !kind.is_file() {
                return refused(&entry.path());
            }
            entries += 1;
            if entries > REFERENCES_MAX {
                return Ok(());
            }
        }
    }
    Ok(())
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

/// The same for a run: what it would read there must be its repository's own. An earlier run may have written the file
/// that names lenders.
///
/// # Errors
/// A lender outside of the repository that the user has not named.
pub fn own_lenders(objects: &Path, around: &[&Path], machine: &Machine) -> Result<Vec<PathBuf>, String> {
    let all = lenders(objects);
    let is_own = |path: &PathBuf| around.iter().any(|folder| path.starts_with(folder)) || machine.is_read(path);
    match all.iter().find(|path| !is_own(path)) {
        None => Ok(all),
        Some(foreign) => Err(format!(
            "the repository uses objects of {}, outside it (alternates); an agent could have written that. If it \
             is right, name that folder in agents.read; or copy the objects (git repack -a -d) and remove \
             {}/info/alternates",
            foreign.display(),
            objects.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With folders of its own that no test uses: an empty path would hide everything.
    fn machine() -> Machine {
        Machine { home: "/nowhere/home".into(), data_dir: "/nowhere/data".into(), ..Machine::default() }
    }

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
            let found = protected_git_paths(&root.join(directory), &machine());
            assert_eq!(found.unwrap(), std::slice::from_ref(&git), "{directory}");
        }
        assert_eq!(protected_git_paths(&root, &machine()).unwrap(), [git], "one below counts too");
        assert!(is_inside_git(&root.join("project/src")) && !is_inside_git(&root));
    }

    #[test]
    fn a_git_file_protects_where_it_points_and_what_is_shared_there() {
        let (_folder, root) = tree();
        fs::create_dir_all(root.join("main/.git/worktrees/linked")).unwrap();
        fs::create_dir_all(root.join("linked")).unwrap();
        fs::write(root.join("linked/.git"), "gitdir: ../main/.git/worktrees/linked\n").unwrap();
        let noted = root.join("main/.git/worktrees/linked");
        fs::write(noted.join("commondir"), "../..\n").unwrap();
        let machine = machine();
        assert_eq!(protected_git_paths(&root.join("linked"), &machine).unwrap(), [root.join("linked/.git")]);
        assert!(repository_of(&root.join("linked"), &machine).unwrap_err().contains("agents.read"));
        fs::write(noted.join("gitdir"), root.join("linked/.git").display().to_string()).unwrap();
        let expected = [root.join("linked/.git"), root.join("main/.git"), root.join("main/.git/worktrees/linked")];
        assert_eq!(protected_git_paths(&root.join("linked"), &machine).unwrap(), expected);
        assert_eq!(repository_of(&root.join("linked"), &machine).unwrap(), expected);
    }

    #[test]
    fn a_link_as_git_is_refused_and_leads_nowhere() {
        let (_folder, root) = tree();
        fs::create_dir_all(root.join("elsewhere")).unwrap();
        fs::create_dir_all(root.join("project/src")).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("project/.git")).unwrap();
        let machine = machine();
        assert!(protected_git_paths(&root.join("project"), &machine).unwrap_err().contains("is a link"));
        assert_eq!(protected_git_paths(&root.join("project/src"), &machine).unwrap(), Vec::<PathBuf>::new());
        assert!(repository_of(&root.join("project"), &machine).is_err());
        let named = Machine { read: vec![root.join("elsewhere")], ..machine };
        let expected = [root.join("elsewhere"), root.join("project/.git")];
        assert_eq!(repository_of(&root.join("project"), &named).unwrap(), expected);
    }

    #[test]
    fn a_submodule_is_its_own_and_what_is_hidden_is_nobodys() {
        let (_folder, root) = tree();
        fs::create_dir_all(root.join("project/.git/modules/sub")).unwrap();
        fs::create_dir_all(root.join("project/sub")).unwrap();
        fs::write(root.join("project/sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
        let found = repository_of(&root.join("project/sub"), &machine()).unwrap();
        assert_eq!(found, [root.join("project/.git/modules/sub"), root.join("project/sub/.git")]);
        let data = root.join("data");
        fs::create_dir_all(data.join("worktrees/x")).unwrap();
        fs::write(data.join("gitdir"), root.join("project/sub/.git").display().to_string()).unwrap();
        fs::write(root.join("project/sub/.git"), format!("gitdir: {}\n", data.display())).unwrap();
        let machine = Machine { data_dir: data, ..machine() };
        assert!(repository_of(&root.join("project/sub"), &machine).is_err());
    }

    #[test]
    fn lenders_of_lenders_are_found_and_a_circle_ends() {
        let (_folder, root) = tree();
        for (name, lends) in [("a", "b"), ("b", "c"), ("c", "a")] {
            fs::create_dir_all(root.join(name).join("info")).unwrap();
            fs::write(root.join(name).join("info/alternates"), format!("../{lends}\n")).unwrap();
        }
        assert_eq!(lenders(&root.join("a")), [root.join("a"), root.join("b"), root.join("c")]);
        let machine = machine();
        assert!(own_lenders(&root.join("a"), &[&root.join("a")], &machine).unwrap_err().contains("agents.read"));
        assert_eq!(own_lenders(&root.join("a"), &[&root], &machine).unwrap().len(), 3);
    }

    #[test]
    fn a_repository_with_links_or_pipes_where_git_looks_is_refused() {
        let (_folder, root) = tree();
        let common = root.join(".git");
        for name in ["refs/heads", "logs/refs/heads", "objects/info", "objects/pack", "info"] {
            fs::create_dir_all(common.join(name)).unwrap();
        }
        fs::write(common.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        check_plain(&common).unwrap();
        let deep = ["refs/matsu", "refs/heads/matsu", "logs/refs/heads/matsu"];
        for name in PLAIN.iter().copied().chain(deep) {
            let (path, aside) = (common.join(name), root.join("aside"));
            let was_there = fs::rename(&path, &aside).is_ok();
            std::os::unix::fs::symlink("/etc", &path).unwrap();
            assert!(check_plain(&common).unwrap_err().contains(name), "a link: {name}");
            fs::remove_file(&path).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
            assert!(check_plain(&common).unwrap_err().contains(name), "a pipe: {name}");
            fs::remove_file(&path).unwrap();
            if was_there {
                fs::rename(&aside, &path).unwrap();
            }
        }
        check_plain(&common).unwrap();
    }
}
