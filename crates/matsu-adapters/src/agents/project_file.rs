//! `.matsu.toml` at the top of a repository: the check of runs that name none. It names a command, so it is used only
//! after a person has allowed this file with this content (`matsu allow`). What is allowed lies in Matsu's own folder,
//! which runs cannot write.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use matsu_core::limits::CHECK_SECONDS;
use matsu_core::receipt::{Check, CheckCommand, Consent};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::runs_folder::write_private;
use super::{foreign_file, git_paths};

pub const NAME: &str = ".matsu.toml";

const BYTES_MAX: u64 = 64 * 1024;
const PATTERNS_MAX: usize = 100;

/// Unknown keys are errors: a key that is not read is worse than none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectFile {
    check: Option<CheckPart>,
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
    pub check: Check,
    pub consent: Consent,
    pub text: String,
}

/// The file of the repository around a directory. `None`: there is none, or it names no check.
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
    let Some(part) = parsed.check else { return Ok(None) };
    if part.protect.len() > PATTERNS_MAX || part.protect.iter().any(|pattern| pattern.trim().is_empty()) {
        return Err(refused(&format!("check.protect takes at most {PATTERNS_MAX} patterns, and no empty one")));
    }
    let digest = Sha256::digest(text.as_bytes());
    let consent = Consent {
        file: path.display().to_string(),
        sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        command: part.command.to_string(),
    };
    let timeout_seconds = part.timeout.unwrap_or(CHECK_SECONDS);
    let check = Check { command: part.command, timeout_seconds, network: part.network, protect: part.protect };
    Ok(Some(Found { check, consent, text }))
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
        assert_eq!((found.check.timeout_seconds, found.check.network), (60, false));
        assert_eq!((found.consent.command.as_str(), found.check.protect.len()), ("make test", 1));
        for bad in [
            "[check]\ncomand = \"x\"\n",
            "[chek]\n",
            "[check]\ncommand = 7\n",
            "x",
            "[check]\ncommand = \"x\"\nprotect = [\"\"]\n",
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
