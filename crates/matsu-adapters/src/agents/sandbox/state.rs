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
    /// Its login files; also folders that cannot be split, which are made if they are missing.
    pub originals: Vec<Original>,
    /// Files below `state` in which it keeps its conversations.
    pub sessions: Vec<Sessions>,
}

/// What a run writes in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Original {
    File(PathBuf),
    Folder(PathBuf),
}

/// Session files as a definition names them: a folder, and what lies below it name by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sessions {
    pub folder: PathBuf,
    pub names: Vec<String>,
}

impl Sessions {
    /// Splits `~/.cli/projects/*/{session}*` at the first name with a wildcard.
    #[must_use]
    pub fn parse(path: &Path) -> Self {
        let names: Vec<String> = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        let is_wild = |name: &String| name.contains('*') || name.contains(SESSION) || name.contains(SESSION_START);
        let fixed = names.iter().position(is_wild).unwrap_or(names.len());
        Self { folder: names[..fixed].iter().collect(), names: names[fixed..].to_vec() }
    }
}

/// In a name: the vendor's id of the conversation.
const SESSION: &str = "{session}";

/// In a name: the first eight characters of that id.
const SESSION_START: &str = "{session_start}";

const SESSION_START_CHARS: usize = 8;

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

/// Session files of a run that are kept when it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    pub from: PathBuf,
    pub to: PathBuf,
    /// How files below these folders are named, folder by folder; what lies deeper belongs to the same conversation.
    pub names: Vec<String>,
    /// The vendor's id of the conversation, where it is known.
    pub session: Option<String>,
    /// The id that the program itself has printed for a new conversation. No existing file is replaced for it.
    #[serde(default)]
    pub announced: Option<String>,
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
            state.add_layer(&own, &target, paths, session)?;
        }
        for original in &paths.originals {
            match original {
                Original::Folder(path) => {
                    make_private(path)?;
                    state.originals.push(path.clone());
                }
                Original::File(path) if path.is_file() => state.originals.push(path.clone()),
                // Without a login there is nothing to renew.
                Original::File(_) => {}
            }
        }
        Ok(state)
    }

    /// Without layers: for a run that is not sealed.
    ///
    /// # Errors
    /// The disk.
    pub fn plain(paths: &StatePaths) -> io::Result<Self> {
        let folders = paths.originals.iter().filter_map(|original| match original {
            Original::Folder(path) => Some(path.clone()),
            Original::File(_) => None,
        });
        let folders: Vec<PathBuf> = folders.collect();
        folders.iter().try_for_each(|path| make_private(path))?;
        Ok(Self { paths: paths.state.iter().cloned().chain(folders).collect(), ..Self::default() })
    }

    fn add_layer(&mut self, own: &Path, target: &Path, paths: &StatePaths, session: Option<&str>) -> io::Result<()> {
        let (upper, work) = (own.join("upper"), own.join("work"));
        make_private(&upper)?;
        make_private(&work)?;
        let lower = if target.is_dir() { target.to_owned() } else { own.join("empty") };
        make_private(&lower)?;
        for Sessions { folder, names } in &paths.sessions {
            if let Ok(below) = folder.strip_prefix(target) {
                let (names, session) = (names.clone(), session.map(str::to_owned));
                self.keep.push(Keep { from: upper.join(below), to: folder.clone(), names, session, announced: None });
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

/// Files of other conversations stay as they are, and so does everything that is no session file.
fn is_kept(keep: &Keep, path: &Path) -> bool {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let session = keep.session.as_deref().or(keep.announced.as_deref());
    let is_session = parts.len() >= keep.names.len()
        && keep.names.iter().zip(&parts).all(|(name, part)| is_named(name, part, session));
    let names_session = keep.names.iter().any(|name| name.contains(SESSION) || name.contains(SESSION_START));
    let is_own = |session: &String| names_session || path.to_string_lossy().contains(session.as_str());
    is_session && (keep.session.as_ref().is_some_and(is_own) || keep.to.join(path).symlink_metadata().is_err())
}

/// Whether one part of a path is named so; `*` stands for anything. A conversation whose id is not known yet may have any.
fn is_named(name: &str, part: &str, session: Option<&str>) -> bool {
    let start: Option<String> = session.map(|session| session.chars().take(SESSION_START_CHARS).collect());
    let name = name.replace(SESSION, session.unwrap_or("*")).replace(SESSION_START, start.as_deref().unwrap_or("*"));
    let Some((first, rest)) = name.split_once('*') else { return name == part };
    let Some(mut left) = part.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
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
    fn the_files_of_the_conversation_are_kept_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("upper"), folder.path().join("sessions"));
        let mine = ["a/abc-1.jsonl", "a/abc-1/sub/new.jsonl"];
        let not_mine = ["a/other.jsonl", "a/new.jsonl", "a/memory/MEMORY.md", "abc-1.jsonl"];
        for name in mine.iter().chain(&not_mine) {
            write(from.join(name), "written by the run");
        }
        std::os::unix::fs::symlink("/etc/passwd", from.join("a/abc-1-link")).unwrap();
        for name in ["a/abc-1.jsonl", "a/other.jsonl"] {
            write(to.join(name), "old");
        }
        let names = vec!["*".to_owned(), "{session}*".to_owned()];
        keep_sessions(&Keep { from, to: to.clone(), names, session: Some("abc-1".to_owned()), announced: None });
        let read = |name: &str| fs::read_to_string(to.join(name)).ok();
        assert!(mine.iter().all(|name| read(name).as_deref() == Some("written by the run")));
        assert_eq!(read("a/other.jsonl").as_deref(), Some("old"), "another conversation");
        assert!(not_mine[1..].iter().all(|name| read(name).is_none()));
        assert!(to.join("a/abc-1-link").symlink_metadata().is_err());
    }

    #[test]
    fn a_conversation_that_the_program_named_keeps_its_own_new_files_only() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("upper"), folder.path().join("sessions"));
        for name in ["p/S2.jsonl", "p/OTHER.jsonl", "settings/hooks.json", "q/S2.jsonl"] {
            write(from.join(name), "written by the run");
        }
        write(to.join("q/S2.jsonl"), "old");
        let names = vec!["*".to_owned(), "{session}*".to_owned()];
        keep_sessions(&Keep { from, to: to.clone(), names, session: None, announced: Some("S2".to_owned()) });
        let read = |name: &str| fs::read_to_string(to.join(name)).ok();
        assert_eq!(read("p/S2.jsonl").as_deref(), Some("written by the run"));
        assert_eq!(read("q/S2.jsonl").as_deref(), Some("old"), "it was there before");
        assert_eq!((read("p/OTHER.jsonl"), read("settings/hooks.json")), (None, None));
    }

    #[test]
    fn a_conversation_without_a_known_id_keeps_new_files_only() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("upper"), folder.path().join("sessions"));
        for name in ["01/roll-new.jsonl", "01/roll-old.jsonl", "01/hooks.json"] {
            write(from.join(name), "written by the run");
        }
        write(to.join("01/roll-old.jsonl"), "old");
        let names = vec!["*".to_owned(), "roll-*{session}.jsonl".to_owned()];
        keep_sessions(&Keep { from, to: to.clone(), names, session: None, announced: None });
        let read = |name: &str| fs::read_to_string(to.join(name)).ok();
        assert_eq!(read("01/roll-new.jsonl").as_deref(), Some("written by the run"));
        assert_eq!(read("01/roll-old.jsonl").as_deref(), Some("old"));
        assert_eq!(read("01/hooks.json"), None);
    }

    #[test]
    fn a_path_is_split_where_names_begin_to_vary() {
        let sessions = Sessions::parse(Path::new("/home/u/.cli/projects/*/{session}*"));
        assert_eq!(sessions.folder, Path::new("/home/u/.cli/projects"));
        assert_eq!(sessions.names, ["*", "{session}*"]);
        assert!(is_named("session-*-{session_start}.jsonl", "session-2026-01-12345678.jsonl", Some("12345678-90")));
        assert!(!is_named("session-*-{session_start}.jsonl", "session-2026-01-12345678.md", Some("12345678-90")));
    }
}
