//! The state of a command line in a run: its login is the user's own file, its conversation is kept, and everything
//! else that it writes (settings, hooks, plugins, lists of servers) is thrown away with the run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::view::Entry;
use crate::agents::runs_folder::make_private;

/// A file that is both settings and state is copied for the run, up to this size.
const COPY_BYTES_MAX: u64 = 32 << 20;

/// A larger file of a conversation is not kept.
const KEPT_BYTES_MAX: u64 = 256 << 20;

/// No tree of session files is deeper.
const KEPT_DEPTH_MAX: usize = 16;

/// What a definition names, as paths of this machine.
#[derive(Clone, Debug, Default)]
pub struct StatePaths {
    /// Folders and files of the command line.
    pub state: Vec<PathBuf>,
    /// Its login files; also folders that cannot be split.
    pub originals: Vec<PathBuf>,
    /// Folders below `state` in which it keeps its conversations.
    pub sessions: Vec<PathBuf>,
}

/// The state of one run.
#[derive(Clone, Debug, Default)]
pub struct State {
    layers: Vec<LayerFolders>,
    /// Copies of files and what they stand for.
    copies: Vec<(PathBuf, PathBuf)>,
    originals: Vec<PathBuf>,
    paths: Vec<PathBuf>,
    keep: Vec<Keep>,
}

#[derive(Clone, Debug)]
struct LayerFolders {
    lower: PathBuf,
    upper: PathBuf,
    work: PathBuf,
    target: PathBuf,
}

/// Session files of a run that are kept when it has ended: new ones, and those that name the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    pub from: PathBuf,
    pub to: PathBuf,
    /// The vendor's id of the conversation, where it is known.
    pub session: Option<String>,
}

impl State {
    /// Makes the layers and copies of a run in its own folder.
    ///
    /// # Errors
    /// The disk.
    pub fn prepare(paths: &StatePaths, folder: &Path, session: Option<&str>) -> io::Result<Self> {
        let mut state = Self { paths: paths.state.clone(), ..Self::default() };
        for (number, target) in paths.state.iter().enumerate() {
            let own = folder.join(format!("state-{number}"));
            // Over a link nothing can be mounted; what it points to is what counts.
            let target = target.canonicalize().unwrap_or_else(|_| target.clone());
            if target.is_file() {
                let copy = own.join("copy");
                make_private(&own)?;
                copy_bounded(&target, &copy, COPY_BYTES_MAX)?;
                state.copies.push((copy, target));
                continue;
            }
            if paths.originals.contains(&target) {
                make_private(&target)?;
                state.originals.push(target);
                continue;
            }
            state.add_layer(&own, &target, paths, session)?;
        }
        state.originals.extend(paths.originals.iter().filter(|path| path.is_file()).cloned());
        Ok(state)
    }

    /// Without layers: for a run that is not sealed.
    #[must_use]
    pub fn plain(paths: &StatePaths) -> Self {
        Self { paths: paths.state.clone(), ..Self::default() }
    }

    fn add_layer(&mut self, own: &Path, target: &Path, paths: &StatePaths, session: Option<&str>) -> io::Result<()> {
        let (upper, work) = (own.join("upper"), own.join("work"));
        make_private(&upper)?;
        make_private(&work)?;
        let lower = if target.is_dir() { target.to_owned() } else { own.join("empty") };
        make_private(&lower)?;
        for sessions in &paths.sessions {
            if let Ok(below) = sessions.strip_prefix(target) {
                let session = session.map(str::to_owned);
                self.keep.push(Keep { from: upper.join(below), to: sessions.clone(), session });
            }
        }
        self.layers.push(LayerFolders { lower, upper, work, target: target.to_owned() });
        Ok(())
    }

    /// What a sealed run sees of it.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let layers = self.layers.iter().cloned().map(|folders| {
            let LayerFolders { lower, upper, work, target } = folders;
            Entry::Layer { lower, upper, work, target }
        });
        let copies = self.copies.iter().cloned().map(|(source, target)| Entry::Place { source, target });
        layers.chain(copies).chain(self.originals.iter().cloned().map(Entry::Write)).collect()
    }

    /// All of it, for a run that has no layers.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    #[must_use]
    pub fn keep(&self) -> Vec<Keep> {
        self.keep.clone()
    }
}

fn copy_bounded(from: &Path, to: &Path, bytes_max: u64) -> io::Result<()> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    // Never through a link that appeared since the file was looked at.
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let from = fs::OpenOptions::new().read(true).custom_flags(flags).open(from)?;
    if !from.metadata()?.is_file() {
        return Ok(());
    }
    let mut to = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(to)?;
    io::copy(&mut from.take(bytes_max), &mut to).map(drop)
}

/// Copies what is to be kept of a run to where the command line looks for it. Called after its last process is gone.
/// A file that cannot be copied is left out; the conversation then cannot be resumed, which its next run reports.
pub fn keep_sessions(keep: &Keep) {
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((below, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(keep.from.join(&below)) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let path = below.join(entry.file_name());
            let Ok(meta) = entry.path().symlink_metadata() else { continue };
            if meta.is_dir() && depth < KEPT_DEPTH_MAX {
                folders.push((path, depth + 1));
            } else if meta.is_file() && meta.len() <= KEPT_BYTES_MAX && is_kept(keep, &path) {
                keep_file(&entry.path(), &keep.to.join(&path));
            }
        }
    }
}

/// Files of other conversations stay as they are.
fn is_kept(keep: &Keep, path: &Path) -> bool {
    let is_new = keep.to.join(path).symlink_metadata().is_err();
    let named = |session: &String| path.to_string_lossy().contains(session.as_str());
    is_new || keep.session.as_ref().is_some_and(named)
}

/// In one step, so that a reader never sees half of it.
fn keep_file(from: &Path, to: &Path) {
    let Some(folder) = to.parent() else { return };
    let part = to.with_extension("matsu-part");
    let kept = make_private(folder)
        .and_then(|()| copy_bounded(from, &part, KEPT_BYTES_MAX))
        .and_then(|()| fs::rename(&part, to));
    if kept.is_err() {
        let _ = fs::remove_file(&part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn new_session_files_and_those_of_the_conversation_are_kept_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("upper"), folder.path().join("sessions"));
        for (name, text) in [("a/new.jsonl", "new"), ("a/abc-1.jsonl", "more"), ("a/other.jsonl", "changed")] {
            write(from.join(name), text);
        }
        std::os::unix::fs::symlink("/etc/passwd", from.join("a/link")).unwrap();
        for (name, text) in [("a/abc-1.jsonl", "old"), ("a/other.jsonl", "old")] {
            write(to.join(name), text);
        }
        keep_sessions(&Keep { from, to: to.clone(), session: Some("abc-1".to_owned()) });
        let read = |name: &str| fs::read_to_string(to.join(name)).unwrap();
        assert_eq!((read("a/new.jsonl"), read("a/abc-1.jsonl")), ("new".to_owned(), "more".to_owned()));
        assert_eq!(read("a/other.jsonl"), "old", "another conversation");
        assert!(to.join("a/link").symlink_metadata().is_err());
    }
}
