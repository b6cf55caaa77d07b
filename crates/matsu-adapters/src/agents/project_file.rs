//! `.matsu.toml` at the top of a repository: the check of runs that name none, how their trees are prepared, and what
//! holds for runs that say nothing about it. It names commands and files, so it is used only after a person has allowed
//! this file with this content (`matsu allow`). What is allowed lies in Matsu's own folder, which runs cannot write.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use matsu_core::limits::{CHECK_COMMAND_BYTES_MAX, CHECK_RETRIES_MAX, CHECK_SECONDS, RUN_SECONDS_MAX};
use matsu_core::receipt::{Check, CheckCommand, Consent, check_pattern};
use matsu_core::run::{TreeBase, TreeSetup};
use matsu_core::usage::UsageLimit;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::runs_folder::write_private;
use super::{foreign_file, git_paths};

pub const NAME: &str = ".matsu.toml";

const BYTES_MAX: u64 = 64 * 1024;
const PATTERNS_MAX: usize = 100;
const COPIES_MAX: usize = 100;

/// Unknown keys are errors: a key that is not read is worse than none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectFile {
    check: Option<CheckPart>,
    worktree: Option<WorktreePart>,
    agents: Option<Defaults>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorktreePart {
    #[serde(default)]
    copy: Vec<String>,
    setup: Option<CheckCommand>,
    #[serde(default)]
    base: TreeBase,
}

/// What holds for runs that write here and say nothing about it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub retries: Option<u32>,
    pub fallback: Option<Vec<String>>,
    pub timeout: Option<u32>,
    pub stall_timeout: Option<u32>,
    pub budget: Option<UsageLimit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckPart {
    command: CheckCommand,
    timeout: Option<u32>,
    #[serde(default)]
    network: bool,
    #[serde(default)]
    protect: Vec<String>,
}

/// What a file asks for.
#[derive(Debug)]
pub struct Found {
    pub check: Option<Check>,
    pub tree: TreeSetup,
    pub defaults: Option<Defaults>,
    pub consent: Consent,
    pub text: String,
}

/// The file of the repository around a directory. `None`: there is none, or it asks for nothing.
///
/// # Errors
/// What is wrong with it, and in which file.
pub fn read(directory: &Path) -> Result<Option<Found>, String> {
    let Some(top) = git_paths::top_of(directory) else { return Ok(None) };
    let path = top.join(NAME);
    let refused = |why: &str| format!("{} cannot be used: {why}; correct it, or remove it", path.display());
    let text = match foreign_file::read_text(&path, BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(&error.to_string())),
    };
    let parsed: ProjectFile = toml::from_str(&text).map_err(|error| refused(&where_and_why(&text, &error)))?;
    let ProjectFile { check, worktree, agents: defaults } = parsed;
    if check.is_none() && worktree.is_none() && defaults.is_none() {
        return Ok(None);
    }
    let protect = check.as_ref().map_or(&[][..], |part| part.protect.as_slice());
    if protect.len() > PATTERNS_MAX {
        return Err(refused(&format!(
            "check.protect takes at most {PATTERNS_MAX} patterns, and has {}",
            protect.len()
        )));
    }
    if let Some(why) = protect.iter().find_map(|pattern| check_pattern(pattern).err()) {
        return Err(refused(&format!("check.protect: {why}")));
    }
    check_numbers(check.as_ref(), defaults.as_ref()).map_err(|why| refused(&why))?;
    let tree = worktree.map_or_else(TreeSetup::default, |part| TreeSetup {
        copy: part.copy.iter().map(|name| name.trim_end_matches('/').to_owned()).collect(),
        setup: part.setup,
        base: part.base,
    });
    if tree.copy.len() > COPIES_MAX || !tree.copy.iter().all(|name| is_inside(name)) {
        let why = format!("worktree.copy accepts at most {COPIES_MAX} paths inside the repository, such as .env");
        return Err(refused(&why));
    }
    if tree.setup.as_ref().is_some_and(CheckCommand::is_empty) {
        return Err(refused("worktree.setup must be a command, such as \"npm ci\""));
    }
    if defaults.as_ref().and_then(|defaults| defaults.budget).is_some_and(|budget| !budget.is_valid()) {
        return Err(refused("agents.budget takes tokens, cost in dollars or both, each more than 0"));
    }
    let commands = [tree.setup.as_ref(), check.as_ref().map(|part| &part.command)];
    let command = commands.into_iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let digest = Sha256::digest(text.as_bytes());
    let consent = Consent {
        file: path.display().to_string(),
        sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        command,
    };
    let check = check.map(|part| Check {
        command: part.command,
        timeout_seconds: part.timeout.unwrap_or(CHECK_SECONDS),
        network: part.network,
        protect: part.protect,
    });
    Ok(Some(Found { check, tree, defaults, consent, text }))
}

/// What a run would refuse later is refused where the file is named.
fn check_numbers(check: Option<&CheckPart>, defaults: Option<&Defaults>) -> Result<(), String> {
    if check.is_some_and(|part| part.command.is_empty() || part.command.to_string().len() > CHECK_COMMAND_BYTES_MAX) {
        let expected = format!("a command of 1 to {CHECK_COMMAND_BYTES_MAX} bytes");
        return Err(format!("check.command must be {expected}, such as \"make test\""));
    }
    let seconds = [
        ("check.timeout", check.and_then(|part| part.timeout)),
        ("agents.timeout", defaults.and_then(|defaults| defaults.timeout)),
        ("agents.stall_timeout", defaults.and_then(|defaults| defaults.stall_timeout)),
    ];
    for (name, value) in seconds {
        if let Some(value) = value.filter(|value| !(1..=RUN_SECONDS_MAX).contains(value)) {
            return Err(format!("{name} must be a whole number of seconds from 1 to {RUN_SECONDS_MAX}, got {value}"));
        }
    }
    match defaults.and_then(|defaults| defaults.retries) {
        Some(retries) if retries > CHECK_RETRIES_MAX => {
            Err(format!("agents.retries must be a whole number from 0 to {CHECK_RETRIES_MAX}, got {retries}"))
        }
        _ => Ok(()),
    }
}

/// Whether a path leads to something inside the tree, and not into its `.git`.
fn is_inside(name: &str) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(part) if part != ".git");
    !name.trim().is_empty() && !name.contains(['\0', '\n']) && Path::new(name).components().all(plain)
}

/// Where the file is wrong and why, without its lines: the reader of the refusal may not be allowed to read the file.
fn where_and_why(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("line {line}, column {column}: {}", error.message())
}

fn allowed_path(data_dir: &Path) -> PathBuf {
    data_dir.join("allowed.json")
}

/// Files by path, with the hash of the content that was allowed.
fn allowed(data_dir: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(allowed_path(data_dir)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Whether a person has allowed this file with this content.
#[must_use]
pub fn is_allowed(data_dir: &Path, consent: &Consent) -> bool {
    allowed(data_dir).get(&consent.file) == Some(&consent.sha256)
}

/// Remembers that a person has allowed it.
///
/// # Errors
/// The folder cannot be written.
pub fn allow(data_dir: &Path, consent: &Consent) -> io::Result<()> {
    let mut all = allowed(data_dir);
    all.insert(consent.file.clone(), consent.sha256.clone());
    let text = serde_json::to_string_pretty(&all).map_err(io::Error::other)?;
    let path = allowed_path(data_dir);
    let unfinished = path.with_added_extension("new");
    write_private(&unfinished, &text)?;
    std::fs::rename(unfinished, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        std::fs::create_dir(top.join(".git")).unwrap();
        std::fs::create_dir(top.join("sub")).unwrap();
        assert!(read(&top.join("sub")).unwrap().is_none());
        let write = |text: &str| std::fs::write(top.join(NAME), text).unwrap();
        write("[check]\ncommand = \"make test\"\ntimeout = 60\nprotect = [\"tests/**\"]\n");
        let found = read(&top.join("sub")).unwrap().unwrap();
        let check = found.check.unwrap();
        assert_eq!((check.timeout_seconds, check.network, check.protect.len()), (60, false, 1));
        assert_eq!(found.consent.command, "make test");
        write(
            "[worktree]\ncopy = [\".env\", \"config/keys/\"]\nsetup = \"npm ci\"\nbase = \"HEAD\"\n[agents]\nretries = 2\n",
        );
        let prepared = read(top).unwrap().unwrap();
        assert_eq!(
            (prepared.tree.copy.as_slice(), prepared.tree.base),
            (&[".env".to_owned(), "config/keys".to_owned()][..], TreeBase::Head)
        );
        assert_eq!((prepared.consent.command.as_str(), prepared.defaults.unwrap().retries), ("npm ci", Some(2)));
        for bad in [
            "[check]\ncomand = \"x\"\n",
            "[chek]\n",
            "[check]\ncommand = 7\n",
            "x",
            "[check]\ncommand = \"x\"\nprotect = [\"\"]\n",
            "[check]\ncommand = \"x\"\nprotect = [\"../x\"]\n",
            "[check]\ncommand = \"\"\n",
            "[check]\ncommand = \"x\"\ntimeout = 0\n",
            "[agents]\nretries = 99\n",
            "[worktree]\ncopy = [\"../x\"]\n",
            "[worktree]\ncopy = [\"/etc/passwd\"]\n",
            "[worktree]\ncopy = [\".git/config\"]\n",
            "[worktree]\nsetup = \" \"\n",
            "[worktree]\nbase = \"main\"\n",
            "[agents]\nmode = \"full\"\n",
            "[agents]\nbudget = { tokens = 0 }\n",
        ] {
            write(bad);
            assert!(read(top).unwrap_err().contains(NAME), "{bad}");
        }
        let data = folder.path().join("data");
        assert!(!is_allowed(&data, &found.consent));
        allow(&data, &found.consent).unwrap();
        assert!(is_allowed(&data, &found.consent));
        assert!(!is_allowed(&data, &Consent { sha256: "0".to_owned(), ..found.consent }));
    }
}
