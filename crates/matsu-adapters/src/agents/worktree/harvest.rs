//! What a run has left in its tree becomes one bundle. Everything in the tree may be hostile, its `.git` most of all, so
//! git works on it from inside a confinement that sees the tree and the borrowed objects and nothing else of ours, has
//! no network, and is ended when it is late. What comes out is bytes that [`super::accept`] believes nothing of.
//!
//! The files as they lie there count, whatever the run did to its index, its settings or its list of ignored files: all
//! of these are ours. Of the run's own repository only its commits are used, and if they cannot be read its files are one
//! commit.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::confined::{Cell, Done, View, Work, confined};
use super::super::git::{Git, Skeleton, Whose, copy_index_file};
use super::super::removal::remove_folder;
use super::super::runs_folder::write_private;
use super::super::shim::order::Stdin;
use super::source::with_flags;
use super::{BundleLimits, Note, index_of};

/// The repository that the files are put into.
const REPOSITORY: &str = "harvest.git";

/// The one reference that leaves.
pub const RESULT: &str = "refs/matsu/result";

const NAMES_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Names in a report.
const NAMES_MAX: usize = 20;

const UNCHANGED: i32 = 10;

/// Everything into the index, which first has what the run's last commit has: a file that the run took out of git and
/// ignores since stays out. Then the repositories inside the tree, as they are and as they were, and what is ignored.
const SETTLE: &str = r#"
set -eu
if [ ! -e "$GIT_DIR/index" ]; then git read-tree "$BASE"; fi
head=$(git --git-dir=.git rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null) || head=
if [ -n "$head" ] && [ "$head" != "$BASE" ] && git merge-base --is-ancestor "$BASE" "$head"; then
  git read-tree --reset "$head"
fi
git add --all
git ls-files --stage -z | grep -az '^160000' || true
printf '\0'
git ls-tree -r -z "$BASE" | grep -az '^160000' || true
printf '\0'
git ls-files --others --ignored --exclude-standard --directory -z | head -c 100000
"#;

/// One commit that descends from the base: the run's own history if it does, else its files as one commit. A history
/// that touches a repository inside the tree is left out for the same reason as the repository.
const BUNDLE: &str = r#"
set -eu
if [ -n "$RESTORE" ]; then git update-index --replace -z --index-info < "$RESTORE"; fi
tree=$(git write-tree)
if [ "$tree" = "$(git rev-parse --verify "$BASE^{tree}")" ]; then exit 10; fi
head=$(git --git-dir=.git rev-parse --verify --quiet 'HEAD^{commit}' 2>/dev/null) || head=
parent=$BASE
if [ -n "$head" ] && git merge-base --is-ancestor "$BASE" "$head"; then
  if ! git rev-list "$BASE..$head" | git diff-tree --stdin -r -m --root --raw --no-renames --no-commit-id |
    grep -q -e '^:160000 ' -e '^:[0-7]* 160000 '; then parent=$head; fi
fi
if [ "$tree" != "$(git rev-parse --verify "$parent^{tree}")" ]; then
  parent=$(printf '%s\n' "$MESSAGE" | git commit-tree "$tree" -p "$parent")
fi
git update-ref "$RESULT" "$parent"
git bundle create --quiet - "$RESULT" ${KNOWN:+"^$KNOWN"}
"#;

/// What came of it.
pub struct Harvest {
    /// `None`: the files are as they were.
    pub bundle: Option<PathBuf>,
    /// Repositories inside the tree that differ from the base; they stay where they are.
    pub left_out: Vec<String>,
    /// Ignored files; they go with the tree.
    pub ignored: Vec<String>,
}

pub struct Harvester<'a> {
    pub git: &'a Git,
    pub cell: &'a Cell,
    pub tree: &'a Path,
    pub note: &'a Note,
    pub message: &'a str,
    pub limits: BundleLimits,
}

impl Harvester<'_> {
    /// # Errors
    /// Why no bundle could be made. The tree is as it was, but for its index.
    pub async fn harvest(&self) -> Result<Harvest, String> {
        let repository = self.cell.scratch.join(REPOSITORY);
        let _ = remove_folder(&repository);
        self.write_repository(&repository)?;
        let env = self.env(&repository);
        let settled = self.sh(SETTLE, env.clone(), NAMES_BYTES_MAX, None).await?;
        if settled.code != Some(0) {
            return Err(words(&settled));
        }
        let (left_out, restore, ignored) = read_names(&settled.stdout, self.note, self.tree);
        let mut env = env;
        if !restore.is_empty() {
            let path = self.cell.scratch.join("restore");
            std::fs::write(&path, restore).map_err(|error| error.to_string())?;
            env.insert("RESTORE".to_owned(), path.display().to_string());
        }
        let path = self.cell.scratch.join("bundle");
        let done = self.sh(BUNDLE, env, self.limits.bytes_max, Some(&path)).await?;
        match done.code {
            Some(0) => Ok(Harvest { bundle: Some(path), left_out, ignored }),
            Some(UNCHANGED) => Ok(Harvest { bundle: None, left_out, ignored }),
            _ => Err(words(&done)),
        }
    }

    async fn sh(
        &self,
        script: &str,
        env: BTreeMap<String, String>,
        bytes_max: u64,
        into: Option<&Path>,
    ) -> Result<Done, String> {
        let write = vec![self.tree.to_owned(), self.cell.scratch.join(REPOSITORY)];
        let mut read = self.note.lenders();
        read.push(self.cell.scratch.clone());
        let args = vec!["-c".to_owned(), script.to_owned()];
        let (program, directory) = (Path::new("/bin/sh"), self.tree);
        let stdin = Stdin::Nothing;
        let work = Work { program, args, env, directory, stdin, within: self.limits.within, bytes_max, into };
        confined(self.cell, work, View { read, write }).await
    }

    fn env(&self, repository: &Path) -> BTreeMap<String, String> {
        let mut env = self.git.environment(Whose::Ours);
        env.extend(with_flags());
        let note = self.note;
        let above = self.tree.parent().unwrap_or(self.tree).display().to_string();
        let more = [
            ("BASE", note.base.clone()),
            ("KNOWN", note.known.clone().unwrap_or_default()),
            ("RESTORE", String::new()),
            ("RESULT", RESULT.to_owned()),
            ("MESSAGE", self.message.to_owned()),
            ("GIT_DIR", repository.display().to_string()),
            ("GIT_WORK_TREE", self.tree.display().to_string()),
            ("GIT_CEILING_DIRECTORIES", above),
            ("GIT_AUTHOR_NAME", "Matsu".to_owned()),
            ("GIT_AUTHOR_EMAIL", "matsu@localhost".to_owned()),
            ("GIT_COMMITTER_NAME", "Matsu".to_owned()),
            ("GIT_COMMITTER_EMAIL", "matsu@localhost".to_owned()),
        ];
        env.extend(more.map(|(name, value)| (name.to_owned(), value)));
        env
    }

    /// Borrows from the tree's own objects as well: the run's commits and a base that only its repository has lie there.
    /// The index is the one that the checkout made, so that only files whose times differ are read.
    fn write_repository(&self, repository: &Path) -> Result<(), String> {
        let mut borrows = self.note.lenders();
        borrows.push(self.tree.join(".git/objects"));
        let note = self.note;
        let (format, shallow) = (note.format, note.shallow.as_deref());
        let skeleton = Skeleton { format, is_bare: false, borrows: &borrows, shallow, settings: &note.settings };
        skeleton.write(repository).map_err(|error| error.to_string())?;
        write_private(&repository.join("info/exclude"), &note.excludes).map_err(|error| error.to_string())?;
        copy_index_file(&index_of(self.tree), &repository.join("index"))
    }
}

fn words(done: &Done) -> String {
    let error = matsu_core::job::end::clip(done.stderr.trim(), 1_000);
    if error.is_empty() { format!("git exited with code {:?} and printed no error", done.code) } else { error }
}

/// Repositories inside the tree that are not as in the base, what puts the index back to the base there, and what is
/// ignored.
fn read_names(bytes: &[u8], note: &Note, tree: &Path) -> (Vec<String>, Vec<u8>, Vec<String>) {
    // Sections are parted by an empty entry.
    let mut sections: Vec<Vec<&[u8]>> = vec![Vec::new()];
    for entry in bytes.split(|byte| *byte == 0) {
        if entry.is_empty() {
            sections.push(Vec::new());
        } else if let Some(section) = sections.last_mut() {
            section.push(entry);
        }
    }
    sections.resize(3, Vec::new());
    // `160000 OID 0\tPATH` of the index, `160000 commit OID\tPATH` of the base.
    let split = |entry: &&[u8]| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let head = String::from_utf8_lossy(&entry[..tab]).into_owned();
        let oid = head.split(' ').find(|word| note.format.is_object(word))?.to_owned();
        Some((entry[tab + 1..].to_vec(), oid))
    };
    let now: BTreeMap<Vec<u8>, String> = sections[0].iter().filter_map(split).collect();
    let then: BTreeMap<Vec<u8>, String> = sections[1].iter().filter_map(split).collect();
    let (mut left_out, mut restore) = (Vec::new(), Vec::new());
    for path in now.keys().chain(then.keys().filter(|path| !now.contains_key(*path))) {
        if now.get(path) == then.get(path) {
            // Git does not look into the folder of a submodule that it knows.
            if is_filled(&tree.join(OsStr::from_bytes(path))) && !note.filled_before.contains(&shown(path)) {
                left_out.push(shown(path));
            }
            continue;
        }
        left_out.push(shown(path));
        let line = match then.get(path) {
            Some(oid) => format!("160000 {oid} 0\t"),
            None => format!("0 {} 0\t", "0".repeat(note.base.len())),
        };
        restore.extend(line.into_bytes());
        restore.extend(path);
        restore.push(0);
    }
    let ignored =
        sections[2].iter().map(|name| shown(name)).filter(|name| !note.ignored_before.contains(name)).collect();
    (few(left_out), restore, few(ignored))
}

/// A folder with something in it.
pub fn is_filled(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// The first names, and how many there are beyond them.
pub fn few(mut names: Vec<String>) -> Vec<String> {
    if names.len() > NAMES_MAX {
        let more = names.len() - NAMES_MAX;
        names.truncate(NAMES_MAX);
        names.push(format!("and {more} more"));
    }
    names
}

/// A name that a run chose, for people to read.
pub fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_inside_the_tree_are_put_back_to_what_the_base_has() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let note = Note { base: "0".repeat(40), ..Note::for_tests() };
        let output = format!(
            "160000 {one} 0\tsame\x00160000 {two} 0\tmoved\x00160000 {two} 0\tnew\nline\0\0\
             160000 commit {one}\tsame\x00160000 commit {one}\tmoved\x00160000 commit {one}\tgone\0\0target/\0"
        );
        let (left_out, restore, ignored) = read_names(output.as_bytes(), &note, Path::new("/none"));
        assert_eq!(left_out, ["moved", "new\u{fffd}line", "gone"]);
        let restore = String::from_utf8(restore).unwrap();
        let zero = "0".repeat(40);
        assert_eq!(restore, format!("160000 {one} 0\tmoved\x000 {zero} 0\tnew\nline\x00160000 {one} 0\tgone\0"));
        assert_eq!(ignored, ["target/"]);
        let before = Note { ignored_before: vec!["target/".to_owned()], ..note };
        assert!(read_names(output.as_bytes(), &before, Path::new("/none")).2.is_empty(), "it was there before the run");
    }
}
