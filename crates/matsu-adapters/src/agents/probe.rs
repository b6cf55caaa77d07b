//! What a program says of itself: its version, and whether it is logged in. No model call is ever made.
//!
//! A program is started only if its definition says how to ask, confined, and once for each file: what it said is
//! remembered until the file changes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use matsu_core::job::end::clip;
use matsu_core::limits::PROBE_MAX;
use matsu_core::ports::agent::{Probe, ProbeDepth};

use super::confined::{Cell, View, Work, confined};
use super::confinement::Confiner;
use super::definition::Definition;
use super::git::SCRATCH;
use super::runs_folder::make_private;
use super::shim::order::Stdin;
use crate::agents::removal::remove_folder;

const BYTES_MAX: u64 = 64 * 1024;
const VERSION_CHARS_MAX: usize = 100;

/// A program as it lies on the disk, and how it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    path: PathBuf,
    changed: Option<SystemTime>,
    size: u64,
    args: Vec<String>,
}

/// Of the whole process: several look at the same programs.
static KNOWN: Mutex<Option<HashMap<Identity, Option<String>>>> = Mutex::new(None);

/// A program and where it may be asked.
pub struct Asked<'a> {
    pub definition: &'a Definition,
    pub program: &'a Path,
    /// What a run of it would have.
    pub env: &'a BTreeMap<String, String>,
    /// Where it keeps its login.
    pub state: Vec<PathBuf>,
    pub confiner: Arc<Confiner>,
    pub data_dir: &'a Path,
    /// The name of a folder that no other probe uses.
    pub name: String,
}

pub async fn probe(asked: Asked<'_>, depth: ProbeDepth) -> Probe {
    let (version, authenticated) = tokio::join!(asked.version(depth), asked.login(depth));
    Probe { installed: true, version, authenticated }
}

impl Asked<'_> {
    async fn version(&self, depth: ProbeDepth) -> Option<String> {
        let args = &self.definition.version;
        if args.is_empty() {
            return None;
        }
        let identity = self.identity();
        if let Some(known) = with_known(|known| known.get(&identity).cloned()) {
            return known;
        }
        if depth == ProbeDepth::Known {
            return None;
        }
        // Nothing of the user: a program needs no login and no settings to print its version.
        let env = self.env.iter().filter(|(name, _)| *name == "PATH");
        let env = env.map(|(name, value)| (name.clone(), value.clone())).collect();
        // Only an answer is remembered: a program that could not be started now may answer the next time.
        let (code, stdout, stderr) = self.ask(args, env, Vec::new(), "version").await?;
        let version = version_of(code, &stdout, &stderr);
        with_known(|known| known.insert(identity, version.clone()));
        version
    }

    async fn login(&self, depth: ProbeDepth) -> Option<bool> {
        let check = self.definition.login.as_ref().map(|login| login.check.as_slice())?;
        if depth != ProbeDepth::Login || check.is_empty() {
            return None;
        }
        let (code, ..) = self.ask(check, self.env.clone(), self.state.clone(), "login").await?;
        code.map(|code| code == 0)
    }

    /// In an empty folder of its own, which is also its home if it has none.
    async fn ask(
        &self,
        args: &[String],
        mut env: BTreeMap<String, String>,
        state: Vec<PathBuf>,
        what: &str,
    ) -> Option<(Option<i32>, String, String)> {
        let scratch = self.data_dir.join(SCRATCH).join(format!("{}-{what}", self.name));
        let folder = scratch.join("empty");
        make_private(&folder).ok()?;
        let home = folder.display().to_string();
        env.insert("TMPDIR".to_owned(), home.clone());
        env.entry("HOME".to_owned()).or_insert(home);
        let cell =
            Cell { confiner: Arc::clone(&self.confiner), marker: format!("probe.{what}"), scratch: scratch.clone() };
        let (program, args, within) = (self.program, args.to_vec(), PROBE_MAX);
        let (stdin, bytes_max) = (Stdin::Nothing, BYTES_MAX);
        let work = Work { program, args, env, directory: &folder, stdin, within, bytes_max, into: None };
        let write = [folder.clone()].into_iter().chain(state).collect();
        let done = confined(&cell, work, View { read: vec![self.program.to_owned()], write }).await;
        let _ = remove_folder(&scratch);
        match done {
            Ok(done) => Some((done.code, String::from_utf8_lossy(&done.stdout).into_owned(), done.stderr)),
            Err(error) => {
                tracing::debug!(error, agent = self.definition.name, what, "a program did not answer");
                None
            }
        }
    }

    fn identity(&self) -> Identity {
        let meta = std::fs::metadata(self.program).ok();
        Identity {
            path: self.program.to_owned(),
            changed: meta.as_ref().and_then(|meta| meta.modified().ok()),
            size: meta.map_or(0, |meta| meta.len()),
            args: self.definition.version.clone(),
        }
    }
}

fn with_known<T>(work: impl FnOnce(&mut HashMap<Identity, Option<String>>) -> T) -> T {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    work(known.get_or_insert_with(HashMap::new))
}

/// The first word with a digit and a dot in it, else the first line.
fn version_of(code: Option<i32>, stdout: &str, stderr: &str) -> Option<String> {
    let text = if stdout.trim().is_empty() { stderr } else { stdout };
    if code != Some(0) || text.trim().is_empty() {
        return None;
    }
    let is_number = |word: &&str| word.contains('.') && word.chars().any(|c| c.is_ascii_digit());
    let number = text.split_whitespace().find(is_number).map(|word| word.trim_start_matches('v'));
    let line = text.trim().lines().next();
    number.or(line).map(|version| clip(version, VERSION_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_the_programs_print() {
        let of = |stdout: &str| version_of(Some(0), stdout, "");
        assert_eq!(of("2.1.197 (Claude Code)\n").as_deref(), Some("2.1.197"));
        assert_eq!(of("codex-cli 0.166.0\n").as_deref(), Some("0.166.0"));
        assert_eq!(of("v1.2\n").as_deref(), Some("1.2"));
        assert_eq!(of("nightly\n").as_deref(), Some("nightly"));
        assert_eq!(of(""), None);
    }
}
