//! Where a run may be: inside the roots, with every link resolved, and never where Matsu itself is.

use std::path::{Path, PathBuf};

use matsu_core::error_code::ErrorCode;
use matsu_core::ports::agent::{Places, RefusedParam, RunRefusal};

use super::sandbox::reach::Machine;

/// A directory that a run was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingDirectory {
    /// `None`: a scratch directory.
    pub directory: Option<PathBuf>,
    /// In the caller's own words.
    pub shown: String,
    pub note: Option<String>,
}

/// Where a run may be at all, with links resolved: the caller's roots and the configured ones.
pub fn allowed(caller: &Places, roots: &[PathBuf]) -> Vec<PathBuf> {
    caller.roots.iter().chain(roots).filter_map(|root| root.canonicalize().ok()).collect()
}

/// Resolves a wish. `roots` are the configured ones; the caller's come from its own project.
pub fn resolve(
    wish: Option<&str>,
    caller: &Places,
    roots: &[PathBuf],
    machine: &Machine,
) -> Result<WorkingDirectory, RunRefusal> {
    let allowed = allowed(caller, roots);
    let default = default_of(caller, &allowed);
    let (Some(default), true) = (&default, !allowed.is_empty()) else {
        return match wish {
            None => Ok(scratch()),
            Some(wish) => {
                Err(refused(wish, "working_directory cannot be used: no root is configured (agents.roots, or --root)"))
            }
        };
    };
    let wished = wish.map_or_else(|| default.clone(), |wish| default.join(wish));
    let shown = wish.unwrap_or(".");
    // The same words for what does not exist and for what lies outside: the caller may not be allowed to know which.
    let outside = || {
        let roots: Vec<String> = allowed.iter().map(|root| root.display().to_string()).collect();
        let expected = roots.join(", ");
        let message = format!(
            "working_directory {shown} must be an existing folder inside one of: {expected} (agents.roots, or --root)"
        );
        refused(shown, &message)
    };
    let Ok(directory) = wished.canonicalize() else { return Err(outside()) };
    let mut around = allowed.iter().filter(|root| directory.starts_with(root)).peekable();
    if around.peek().is_none() {
        return Err(outside());
    }
    if !around.any(|root| machine.admits(root, &directory)) {
        let message = format!(
            "working_directory {shown} holds logins or files of Matsu itself, which no run may read; name a project folder"
        );
        return Err(refused(shown, &message));
    }
    if !directory.is_dir() {
        return Err(outside());
    }
    if directory.to_str().is_none() {
        let message = format!(
            "working_directory {shown} is {}, whose name is not UTF-8; rename it, or work in another folder",
            directory.display()
        );
        return Err(refused(shown, &message));
    }
    Ok(WorkingDirectory { directory: Some(directory), shown: shown.to_owned(), note: None })
}

/// The caller's own directory if it is inside a root, else the first root. A caller that names roots itself means these:
/// the configured ones are only allowed beside them.
fn default_of(caller: &Places, allowed: &[PathBuf]) -> Option<PathBuf> {
    let own: Vec<PathBuf> = caller.roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let roots = if own.is_empty() { allowed } else { &own };
    let cwd = caller.cwd.as_deref().and_then(|cwd| Path::canonicalize(cwd).ok());
    cwd.filter(|cwd| roots.iter().any(|root| cwd.starts_with(root))).or_else(|| roots.first().cloned())
}

fn scratch() -> WorkingDirectory {
    let note = "No root is configured, so it runs in an empty scratch directory.";
    WorkingDirectory { directory: None, shown: "(scratch)".to_owned(), note: Some(note.to_owned()) }
}

fn refused(received: &str, message: &str) -> RunRefusal {
    let param = RefusedParam {
        name: "working_directory".to_owned(),
        expected: "a directory inside the configured roots".to_owned(),
        received: received.to_owned(),
    };
    RunRefusal { code: ErrorCode::Forbidden, message: message.to_owned(), param: Some(param) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine { home: "/home/somewhere".into(), data_dir: "/home/somewhere/data".into(), ..Machine::default() }
    }

    #[test]
    fn links_are_resolved_before_anything_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("docs")).unwrap();
        std::fs::create_dir_all(folder.path().join("outside")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("outside"), root.join("way-out")).unwrap();
        let places = Places { roots: vec![root.clone()], cwd: None };
        let place = |wish: Option<&str>| resolve(wish, &places, &[], &machine());
        let real = root.canonicalize().unwrap();
        assert_eq!(place(None).unwrap().directory, Some(real.clone()));
        assert_eq!(place(Some("docs")).unwrap().directory, Some(real.join("docs")));
        for wish in ["way-out", "..", "../outside", "/", "nowhere", "docs/../../outside"] {
            assert_eq!(place(Some(wish)).unwrap_err().code, ErrorCode::Forbidden, "{wish}");
        }
        let inside = Places { cwd: Some(root.join("docs")), ..places.clone() };
        assert_eq!(resolve(None, &inside, &[], &machine()).unwrap().directory, Some(real.join("docs")));
        let elsewhere = Places { cwd: Some(folder.path().join("outside")), ..places.clone() };
        assert_eq!(
            resolve(None, &elsewhere, &[], &machine()).unwrap().directory,
            Some(real.clone()),
            "a cwd outside counts for nothing"
        );
        let configured = [folder.path().join("outside")];
        assert_eq!(
            resolve(None, &elsewhere, &configured, &machine()).unwrap().directory,
            Some(real),
            "the caller's own root comes before a configured one"
        );
    }

    #[test]
    fn a_folder_with_logins_or_of_matsu_is_refused_unless_the_root_lies_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let data_dir = home.join(".local/share/matsu");
        for name in ["project", ".ssh/inside", ".local/share/matsu/runs", ".local/share/matsu/worktrees/j1/src"] {
            std::fs::create_dir_all(home.join(name)).unwrap();
        }
        let machine = Machine { home: home.clone(), data_dir: data_dir.clone(), ..Machine::default() };
        let admits = |root: &Path, wish: &Path| {
            let places = Places { roots: vec![root.to_owned()], cwd: None };
            resolve(Some(wish.to_str().unwrap()), &places, &[], &machine).is_ok()
        };
        assert!(admits(&home, &home.join("project")));
        for hidden in [".ssh", ".ssh/inside", ".local/share/matsu", ".local/share/matsu/runs"] {
            assert!(!admits(&home, &home.join(hidden)), "{hidden}");
        }
        let tree = data_dir.join("worktrees/j1");
        assert!(!admits(&home, &tree.join("src")), "the tree of another run");
        assert!(admits(&tree, &tree.join("src")), "its own");
        assert!(admits(&home.join(".ssh"), &home.join(".ssh/inside")), "the user has chosen it");
        assert!(!admits(&data_dir, &data_dir.join("runs")), "that cannot be chosen");
    }

    #[test]
    fn without_a_root_it_is_a_scratch_directory_and_said_so() {
        let place = resolve(None, &Places::default(), &[], &machine()).unwrap();
        assert!(place.directory.is_none() && place.note.is_some_and(|note| note.contains("scratch")));
        assert!(resolve(Some("/tmp"), &Places::default(), &[], &machine()).is_err());
    }
}
