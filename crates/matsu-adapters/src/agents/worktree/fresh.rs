//! A fresh checkout of one commit of the user's repository, for a check: a repository of its own that borrows the
//! user's objects, written by Matsu and not by a run.

use std::path::{Path, PathBuf};

use matsu_core::receipt::{is_protected, is_test};
use matsu_core::run::Changes;

use super::super::confined::Cell;
use super::super::git::{Call, Git, Skeleton, Whose};
use super::super::runs_folder::make_private;
use super::Note;
use super::known::Known;
use super::open::enter;
use super::source::settings;

/// Names of changed files in a receipt.
const NAMES_MAX: usize = 50;

/// What was checked out.
pub struct Fresh {
    /// The hash of the tree.
    pub tree: String,
    /// Where the run worked, inside the checkout.
    pub directory: PathBuf,
    /// The user's objects, which the check reads and cannot write.
    pub borrowed: Vec<PathBuf>,
    /// Files that differ between base and head.
    pub changed: Vec<String>,
}

impl Git {
    /// Checks the head of `changes` out at `path`, which must not exist yet.
    ///
    /// # Errors
    /// Why not; the caller removes what was written.
    pub async fn fresh(&self, cell: &Cell, changes: &Changes, path: &Path) -> Result<Fresh, String> {
        let Known { common, objects, borrows, format, shallow } = self.known(cell, changes).await?;
        let tree_of = format!("{}^{{tree}}", changes.head);
        let tree = ["rev-parse", "--verify", "--quiet", "--end-of-options", &tree_of];
        let names = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", &changes.base, &changes.head];
        let config = ["config", "--list", "-z"];
        let call = |args: &[&str]| Call::new(Whose::Users, &common, args);
        let config = self.run(call(&config)).await;
        let note = Note {
            common: common.clone(),
            objects,
            lends: borrows.clone(),
            format,
            shallow,
            settings: settings(&config.unwrap_or_default()),
            ..Note::default()
        };
        let (shallow, settings) = (note.shallow.as_deref(), note.settings.as_str());
        let skeleton = Skeleton { format, is_bare: false, borrows: &borrows, shallow, settings };
        make_private(path).and_then(|()| skeleton.write(&path.join(".git"))).map_err(|error| error.to_string())?;
        let (tree, names, checked_out) = tokio::join!(
            self.line(call(&tree)),
            self.run(call(&names)),
            self.check_out(cell, path, &note, Some(&changes.head))
        );
        let gone = || format!("commit {} is not in {} any more", changes.head, changes.repository);
        let tree = tree.ok().filter(|tree| format.is_object(tree)).ok_or_else(gone)?;
        checked_out?;
        enter(path, Path::new(&changes.directory))?;
        Ok(Fresh { tree, directory: path.join(&changes.directory), borrowed: borrows, changed: names_of(&names?) })
    }
}

fn names_of(names: &[u8]) -> Vec<String> {
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

impl Fresh {
    /// Files of tests that the run changed; of many only some.
    pub fn changed_tests(&self) -> Vec<String> {
        few(self.changed.iter().filter(|name| is_test(name)))
    }

    /// Files that the run changed and that a check protects; of many only some.
    pub fn changed_protected(&self, protect: &[String]) -> Vec<String> {
        few(self.changed.iter().filter(|name| protect.iter().any(|pattern| is_protected(pattern, name))))
    }
}

fn few<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names: Vec<String> = names.take(NAMES_MAX + 1).cloned().collect();
    if names.len() > NAMES_MAX {
        names.truncate(NAMES_MAX);
        names.push("and more".to_owned());
    }
    names
}
