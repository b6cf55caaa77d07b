//! Folders that a caller may name: for agents to work in, and for research to read.

use std::path::{Path, PathBuf};

use matsu_core::access::Folders;
use matsu_core::error_code::ErrorCode;
use matsu_core::ports::agent::Places;

use super::{ToolContext, ToolError};

const ASK: &str = "ask an admin for one: `matsu user add NAME --root DIR`";

/// Whether a folder lies inside, every link resolved. Looked up now and not when the folders were given: a link may
/// lead somewhere else by now.
fn contain(folders: &Folders, folder: &Path) -> bool {
    let Folders::Only(roots) = folders else { return true };
    let Ok(folder) = folder.canonicalize() else { return false };
    roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| folder.starts_with(root))
}

/// Where the caller's agents may work: a run's are bound to its own directory, a member's to the folders it was given.
///
/// # Errors
/// `FORBIDDEN` for a member without any folder.
pub fn places(cx: &ToolContext) -> Result<Places, ToolError> {
    if let Some(run) = &cx.run {
        return Ok(run.places.clone());
    }
    match &cx.rights.folders {
        Folders::Configured => Ok(Places { roots: cx.workplace.roots.clone(), cwd: cx.workplace.cwd.clone() }),
        Folders::Only(roots) if roots.is_empty() => {
            let message = format!("this user was given no folder, so it cannot start agents; {ASK}");
            Err(ToolError::new(ErrorCode::Forbidden, message))
        }
        Folders::Only(roots) => Ok(Places { roots: roots.clone(), cwd: cx.workplace.cwd.clone() }),
    }
}

/// The project that new work of the caller belongs to, and whose sessions get the news of it: the one that its client
/// works on, else that of the directory that the work is for. What a person, a schedule or a webhook starts has such a
/// directory, and is no news for other projects.
#[must_use]
pub fn project(cx: &ToolContext, directory: Option<&str>) -> Option<String> {
    let directory = || directory.map(Path::new).or(cx.workplace.cwd.as_deref()).map(project_of);
    cx.workplace.project.clone().or_else(directory)
}

/// The repository that the folder lies in, else the folder itself, without links: every session that works on a project
/// names the same one.
#[must_use]
pub fn project_of(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let repository = folder.ancestors().find(|folder| folder.join(".git").exists());
    repository.unwrap_or(&folder).display().to_string()
}

/// A run was checked against all roots of this machine; here against what its caller has.
///
/// # Errors
/// `FORBIDDEN` for a directory outside, and for a scratch directory that a member did not ask an admin for.
pub fn check_directory(cx: &ToolContext, directory: Option<&str>) -> Result<(), ToolError> {
    let bounded = match (&cx.run, &cx.rights.folders) {
        (Some(run), _) => Folders::Only(run.places.roots.clone()),
        (None, folders) => folders.clone(),
    };
    let is_inside = match directory {
        Some(directory) => contain(&bounded, Path::new(directory)),
        // A run without a directory of its own may start others that have none.
        None => cx.run.is_some() || bounded == Folders::Configured,
    };
    if is_inside {
        return Ok(());
    }
    let received = directory.unwrap_or("(none)");
    let message = match &cx.run {
        Some(run) => {
            let roots: Vec<_> = run.places.roots.iter().map(|root| root.display().to_string()).collect();
            let inside = roots.join(" or ");
            format!("working_directory {received} is outside the directory of this run; use a folder inside {inside}")
        }
        None => format!("working_directory {received} is outside the folders that this user was given; {ASK}"),
    };
    let error = ToolError::param("working_directory", "a directory inside the given folders", received, message);
    Err(ToolError { code: ErrorCode::Forbidden, ..error })
}

/// The folders that a search of this caller reads.
///
/// # Errors
/// `FORBIDDEN` for one that a member was not given.
pub fn research(cx: &ToolContext) -> Result<Vec<String>, ToolError> {
    let named: &[PathBuf] = match &cx.run {
        Some(run) => &run.places.roots,
        None => &cx.workplace.roots,
    };
    if cx.run.is_none()
        && let Some(outside) = named.iter().find(|folder| !contain(&cx.rights.folders, folder))
    {
        let message = format!("folder {} is not one that this user was given; {ASK}", outside.display());
        let received = outside.display().to_string();
        let error = ToolError::param("folders", "a folder that an admin gave", &received, message);
        return Err(ToolError { code: ErrorCode::Forbidden, ..error });
    }
    Ok(named.iter().map(|folder| folder.display().to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_before_a_folder_counts_as_given() {
        let folder = std::env::temp_dir().join(format!("matsu-folders-{}", std::process::id()));
        let (given, other) = (folder.join("given"), folder.join("other"));
        std::fs::create_dir_all(given.join("below")).unwrap();
        std::fs::create_dir_all(&other).unwrap();
        std::os::unix::fs::symlink(&other, given.join("way-out")).unwrap();
        let member = Folders::Only(vec![given.clone()]);
        assert!(contain(&member, &given) && contain(&member, &given.join("below")));
        for outside in [other.clone(), given.join("way-out"), given.join(".."), folder.join("nowhere")] {
            assert!(!contain(&member, &outside), "{}", outside.display());
        }
        assert!(!contain(&Folders::Only(Vec::new()), &given));
        assert!(contain(&Folders::Configured, &other));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn folders_of_one_repository_are_one_project() {
        let root = std::env::temp_dir().join(format!("matsu-projects-{}", std::process::id()));
        let (repository, inner) = (root.join("shop"), root.join("shop/src/deep"));
        std::fs::create_dir_all(&inner).unwrap();
        assert_ne!(project_of(&inner), project_of(&repository), "without a repository each folder is its own");
        std::fs::create_dir(repository.join(".git")).unwrap();
        assert_eq!(project_of(&inner), project_of(&repository));
        std::os::unix::fs::symlink(&inner, root.join("link")).unwrap();
        assert_eq!(project_of(&root.join("link")), project_of(&repository));
        assert_ne!(project_of(&root), project_of(&repository));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
