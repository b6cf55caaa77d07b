//! Sessions of clients that give work away, as their hooks report them: in which folder, and in which process. One file
//! each in the data directory, written only where `wait.wake` asks for it.

use std::path::Path;

use anyhow::{Context, Result};
use matsu_core::clock::Clock;
use matsu_core::secret;
use serde::{Deserialize, Serialize};

use crate::paths::Paths;
use crate::private_files::{make_private_folder, write_private};

/// The clients whose sessions can be resumed: the name of the program, and what comes before and after the session. The
/// prompt comes on stdin.
const RESUMED: &[(&str, &[&str], &[&str])] = &[
    ("claude", &["-p", "--resume"], &[]),
    ("codex", &["exec", "--skip-git-repo-check", "resume"], &["-"]),
    ("gemini", &["--resume"], &[]),
];

/// A program starts its hooks through a shell or two.
const ANCESTORS_MAX: usize = 6;

/// Sessions that are remembered; the oldest go.
const KEPT_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentSession {
    pub client: String,
    pub session: String,
    /// The folder of its project.
    pub folder: String,
    /// Where it was started.
    pub started_in: String,
    pub pid: u32,
    /// When that process began, in the kernel's ticks: another process may get the same id.
    pub began: u64,
    pub seen_at_ms: i64,
}

impl ParentSession {
    /// Whether its process is still there.
    pub fn lives(&self) -> bool {
        began(self.pid) == Some(self.began)
    }

    /// The program and its arguments.
    pub fn resuming(&self) -> Option<(&'static str, Vec<String>)> {
        let (name, before, after) = RESUMED.iter().find(|(name, _, _)| *name == self.client)?;
        let words = [before, &[self.session.as_str()][..], after].concat();
        Some((*name, words.into_iter().map(str::to_owned).collect()))
    }
}

/// Notes the session of the client that this process is a hook of. Where no known client is above it, or the system
/// does not say when a process began, nothing is noted.
pub fn report(paths: &Paths, session: &str, folder: &str, started_in: &str) -> Result<()> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    // It becomes an argument of a program.
    if session.is_empty() || session.starts_with('-') || !session.chars().all(is_name) {
        return Ok(());
    }
    let Some((client, pid)) = client_above() else { return Ok(()) };
    let Some(began) = began(pid) else { return Ok(()) };
    let seen_at_ms = Clock::system().now().as_millis();
    let (folder, started_in) = (folder.to_owned(), started_in.to_owned());
    let known = ParentSession { client, session: session.to_owned(), folder, started_in, pid, began, seen_at_ms };
    let place = paths.parents();
    make_private_folder(&place)?;
    let name = secret::hash(&format!("{} {session}", known.client));
    let text = serde_json::to_string(&known).context("a session cannot be written")?;
    write_private(&place.join(format!("{}.json", &name[..32])), &text)
}

/// All that are remembered, the one that was seen last first. Those that are too many are removed.
pub fn all(paths: &Paths) -> Vec<ParentSession> {
    let entries = std::fs::read_dir(paths.parents()).into_iter().flatten().flatten();
    let read = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path()).ok()?;
        Some((serde_json::from_str::<ParentSession>(&text).ok()?, entry.path()))
    };
    let mut known: Vec<_> = entries.filter_map(read).collect();
    known.sort_by_key(|(parent, _)| std::cmp::Reverse(parent.seen_at_ms));
    for (_, file) in known.iter().skip(KEPT_MAX) {
        let _ = std::fs::remove_file(file);
    }
    known.into_iter().take(KEPT_MAX).map(|(parent, _)| parent).collect()
}

/// Whether a process of this client works in this project, reported or not: a person may have started one just now.
pub fn is_at_work(client: &str, folder: &str) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| client_of(*pid).as_deref() == Some(client)).any(|pid| {
        // Another user's process cannot be looked into, and is no session of this user's.
        std::fs::read_link(format!("/proc/{pid}/cwd"))
            .is_ok_and(|cwd| matsu_runtime::tool::folders::project_of(&cwd) == folder)
    })
}

/// The nearest process above this one that is a known client.
fn client_above() -> Option<(String, u32)> {
    let mut pid = std::process::id();
    for _ in 0..ANCESTORS_MAX {
        pid = parent_of(pid)?;
        if let Some(client) = client_of(pid) {
            return Some((client, pid));
        }
    }
    None
}

/// The client that a process is, by its own name or, of a script, by the script's.
fn client_of(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0).take(3).map(String::from_utf8_lossy).collect::<Vec<_>>();
    let name = |word: &str| Path::new(word).file_stem().map(|name| name.to_string_lossy().into_owned());
    let mut names = words.iter().filter_map(|word| name(word));
    let is_known = |word: &String| RESUMED.iter().any(|(known, _, _)| known == word);
    // `node --flag /path/gemini`: the script is one of the first words.
    names.find(is_known)
}

/// Fields of `/proc/PID/stat` after the name, which may hold anything.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

fn parent_of(pid: u32) -> Option<u32> {
    stat(pid)?.get(1)?.parse().ok().filter(|parent| *parent > 1)
}

fn began(pid: u32) -> Option<u64> {
    let fields = stat(pid)?;
    // A process that has ended and was not waited for is not there any more.
    if fields.first().is_some_and(|state| state == "Z" || state == "X") {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_id_and_its_beginning() {
        let pid = std::process::id();
        let parent = ParentSession {
            client: "claude".to_owned(),
            session: "s-1".to_owned(),
            folder: "/p".to_owned(),
            started_in: "/p".to_owned(),
            pid,
            began: began(pid).unwrap(),
            seen_at_ms: 0,
        };
        assert!(parent.lives());
        assert!(!ParentSession { began: parent.began + 1, ..parent.clone() }.lives(), "another with the same id");
        let (program, words) = parent.resuming().unwrap();
        assert_eq!((program, words.join(" ")), ("claude", "-p --resume s-1".to_owned()));
        assert_eq!(ParentSession { client: "cursor".to_owned(), ..parent }.resuming(), None);
    }
}
