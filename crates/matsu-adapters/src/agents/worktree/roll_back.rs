//! Taking back an apply that did not come to its end. The number of calls does not grow with the number of files.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::super::process::Input;
use super::super::runs_folder::make_private;
use super::apply::{Kept, Merge, RECORD, has_linked_parent};
use crate::agents::removal::remove_folder;

/// A path that differs between the two trees.
struct Touched {
    was_there: bool,
    /// Mode and object afterwards; `None`: the apply removes it.
    after: Option<String>,
}

type Paths = HashSet<Vec<u8>>;

impl Merge<'_> {
    /// Puts every path back that was written, or was just being written. What the user has changed since stays.
    pub(super) async fn roll_back(&self, kept: &Path) -> Result<(), String> {
        let text = fs::read_to_string(kept.join(RECORD)).map_err(|error| error.to_string())?;
        let Kept { before, after } = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let args = ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", &before, &after];
        let touched = touched(&self.bytes(self.call(&args)).await?);
        let unlike_before = self.unlike(&before).await?;
        // The index holds the tree afterwards from here on.
        let unlike_after = self.unlike(&after).await?;
        let (mut written, mut doubtful) = (Paths::new(), Vec::new());
        for (path, what) in &touched {
            let there = self.top.join(OsStr::from_bytes(path)).symlink_metadata();
            let is_there = !matches!(&there, Err(error) if is_missing(error));
            let is_as_before = if what.was_there { !unlike_before.contains(path) } else { !is_there };
            if is_as_before || has_linked_parent(&self.top, path) {
                continue;
            }
            // Git removes a file before it writes the new one.
            if !is_there || (what.after.is_some() && !unlike_after.contains(path)) {
                written.insert(path.clone());
            } else if what.after.is_some() && there.is_ok_and(|there| there.is_file()) {
                doubtful.push(path.clone());
            }
        }
        written.extend(self.torn(doubtful).await?);
        self.remove_new(&touched, &written).await?;
        let unlike = self.unlike(&before).await?;
        let old = written.iter().filter(|path| touched[*path].was_there && unlike.contains(*path));
        let old: Vec<u8> = old.flat_map(|path| path.iter().copied().chain([0])).collect();
        if !old.is_empty() {
            let args = ["checkout-index", "--force", "-z", "--stdin"];
            self.bytes(self.call(&args).stdin(Input::Bytes(old))).await?;
        }
        remove_folder(kept).map_err(|error| error.to_string())
    }

    /// Paths of a tree that the user's files differ from. The index holds that tree afterwards.
    async fn unlike(&self, tree: &str) -> Result<Paths, String> {
        self.bytes(self.call(&["read-tree", "--reset", tree])).await?;
        // Says with its exit code that files differ.
        self.ask(self.call(&["update-index", "-q", "--refresh"])).await?;
        let differ = self.bytes(self.call(&["diff-files", "-z", "--name-only", "--no-renames"])).await?;
        Ok(differ.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Of these files those of which only a beginning is there: they were just being written. The whole ones are written
    /// beside, with the user's filters, to be compared.
    async fn torn(&self, doubtful: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
        if doubtful.is_empty() {
            return Ok(doubtful);
        }
        let whole = self.scratch.join("whole");
        make_private(&whole).map_err(|error| error.to_string())?;
        let names = doubtful.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
        let prefix = format!("--prefix={}/", whole.display());
        let args = ["checkout-index", "--force", &prefix, "-z", "--stdin"];
        self.bytes(self.call(&args).stdin(Input::Bytes(names))).await?;
        let is_torn = |path: &Vec<u8>| {
            let path = OsStr::from_bytes(path);
            let both = (fs::read(whole.join(path)), fs::read(self.top.join(path)));
            matches!(both, (Ok(whole), Ok(there)) if whole.starts_with(&there))
        };
        Ok(doubtful.into_iter().filter(is_torn).collect())
    }

    /// By git and confined like everything that is done in the tree. The index holds these files only, so that git need
    /// not match each of them with each of all files.
    async fn remove_new(&self, touched: &BTreeMap<Vec<u8>, Touched>, written: &Paths) -> Result<(), String> {
        let mut entries = Vec::new();
        for (path, what) in touched.iter().filter(|(path, what)| !what.was_there && written.contains(*path)) {
            let Some(after) = &what.after else { continue };
            entries.extend(format!("{after} 0\t").into_bytes());
            entries.extend(path.iter().copied().chain([0]));
        }
        if entries.is_empty() {
            return Ok(());
        }
        self.bytes(self.call(&["read-tree", "--empty"])).await?;
        let args = ["update-index", "-z", "--index-info"];
        self.bytes(self.call(&args).stdin(Input::Bytes(entries))).await?;
        self.bytes(self.call(&["rm", "-r", "--force", "--quiet", "--ignore-unmatch", "--", "."])).await.map(drop)
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// `:OLD_MODE NEW_MODE OLD NEW STATUS`, then the path.
fn touched(raw: &[u8]) -> BTreeMap<Vec<u8>, Touched> {
    let mut parts = raw.split(|byte| *byte == 0);
    let mut found = BTreeMap::new();
    while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
        let head = String::from_utf8_lossy(head).into_owned();
        let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, _, new, _] = words.as_slice() else { continue };
        let is_set = |mode: &str| mode.bytes().any(|byte| byte != b'0');
        let after = is_set(new_mode).then(|| format!("{new_mode} {new}"));
        found.insert(path.to_vec(), Touched { was_there: is_set(old_mode), after });
    }
    found
}
