//! A fresh checkout of one commit of the user's repository, for a check: a repository of its own that borrows the
//! user's objects, written by Matsu and not by a run.

use std::path::{Path, PathBuf};

use matsu_core::receipt::{is_build, is_protected, is_test, other_makefiles};
use matsu_core::run::Changes;

use super::super::confined::{Cell, View};
use super::super::git::{Call, Git, Skeleton, Whose, printed};
use super::super::process::Input;
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
    head: String,
    note: Note,
}

impl Git {
    /// Checks the head of `changes` out at `path`, which must not exist yet.
    ///
    /// # Errors
    /// Why not; the caller removes what was written.
    pub async fn fresh(&self, cell: &Cell, changes: &Changes, path: &Path) -> Result<Fresh, String> {
        let top = Path::new(&changes.repository);
        let (known, config) = tokio::join!(self.known(cell, changes), self.config(top));
        let Known { common, objects, borrows, format, shallow } = known?;
        let tree_of = format!("{}^{{tree}}", changes.head);
        let tree = ["rev-parse", "--verify", "--quiet", "--end-of-options", &tree_of];
        let names = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", &changes.base, &changes.head];
        let call = |args: &[&str]| Call::new(Whose::Users, &common, args);
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
        let (directory, changed) = (path.join(&changes.directory), names_of(&names?));
        Ok(Fresh { tree, directory, borrowed: borrows, changed, head: changes.head.clone(), note })
    }

    /// Protected files in a checkout that are not as they were committed, after something else than Matsu has worked
    /// there. They are compared by a repository of Matsu's own, for the one in the checkout can say anything by now.
    ///
    /// # Errors
    /// They cannot be compared.
    pub async fn altered(
        &self,
        cell: &Cell,
        fresh: &Fresh,
        tree: &Path,
        protect: &[String],
    ) -> Result<Vec<String>, String> {
        let Fresh { head, note, borrowed, .. } = fresh;
        let listed = self.run(Call::new(Whose::Users, &note.common, &["ls-tree", "-r", "-z", head])).await?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| is_entry_protected(entry, protect));
        let entries: Vec<&[u8]> = entries.collect();
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let own = cell.scratch.join("protected.git");
        let (shallow, settings) = (note.shallow.as_deref(), note.settings.as_str());
        let skeleton = Skeleton { format: note.format, is_bare: false, borrows: borrowed, shallow, settings };
        skeleton.write(&own).map_err(|error| error.to_string())?;
        let mut read = borrowed.clone();
        read.push(tree.to_owned());
        let view = View { read, write: vec![own.clone()] };
        let mut index = entries.join(&0);
        index.push(0);
        let fill = Call::new(Whose::Ours, &own, &["update-index", "-z", "--index-info"]).stdin(Input::Bytes(index));
        printed("update-index", self.ask_confined(cell, view.clone(), fill).await?)?;
        // The attributes are the commit's: those in the tree may be new.
        let compare = Call::new(Whose::Ours, &own, &["diff", "-z", "--name-only", "--no-renames", "--no-ext-diff"]);
        let compare = compare.work_tree(tree).attributes(head);
        let mut altered = names_of(&printed("diff", self.ask_confined(cell, view, compare).await?)?);
        let known: Vec<String> = entries.iter().filter_map(|entry| name_of(entry)).collect();
        altered.extend(
            known
                .iter()
                .flat_map(|name| other_makefiles(name))
                .filter(|other| !known.contains(other) && has_name(tree, other)),
        );
        altered.sort();
        altered.dedup();
        Ok(few(altered.iter()))
    }
}

/// The name in a line of `ls-tree`.
fn name_of(entry: &[u8]) -> Option<String> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    Some(String::from_utf8_lossy(&entry[tab + 1..]).into_owned())
}

/// Submodules have no files here.
fn is_entry_protected(entry: &[u8], protect: &[String]) -> bool {
    !entry.starts_with(b"160000 ") && name_of(entry).is_some_and(|name| is_protected(protect, &name))
}

/// Whether a folder lists this very name, on a file system that may ignore case.
fn has_name(tree: &Path, name: &str) -> bool {
    let path = tree.join(name);
    let listed = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut names = listed.map(|entry| entry.file_name());
    names.any(|listed| path.file_name() == Some(listed.as_os_str()))
}

fn names_of(names: &[u8]) -> Vec<String> {
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

impl Fresh {
    /// Files of tests and of the build that the run changed; of many only some.
    pub fn changed_tests(&self) -> Vec<String> {
        few(self.changed.iter().filter(|name| is_test(name) || is_build(name)))
    }

    /// Files that the run changed and that a check protects; of many only some.
    pub fn changed_protected(&self, protect: &[String]) -> Vec<String> {
        few(self.changed.iter().filter(|name| is_protected(protect, name)))
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
