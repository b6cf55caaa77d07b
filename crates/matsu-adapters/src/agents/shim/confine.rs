//! Confinement from outside, by Landlock: what a run may write, and what it must not even read. It holds for every
//! process below the one that asked for it, and cannot be taken off again.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr,
};
use serde::{Deserialize, Serialize};

/// What the newest kernels know; older ones enforce what they have.
const NEWEST: ABI = ABI::V5;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Folders and files that may be written; what does not exist is skipped.
    pub write: Vec<PathBuf>,
    /// A folder whose files cannot be read, except below what is named in `write` and `read`.
    pub hidden: PathBuf,
    pub read: Vec<PathBuf>,
}

/// Whether this kernel can confine at all.
#[must_use]
pub fn is_available() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

/// Confines this thread and all that it will start.
///
/// # Errors
/// The kernel refused.
pub fn apply(confinement: &Confinement) -> Result<(), String> {
    let all = AccessFs::from_all(NEWEST);
    let look = AccessFs::from_read(NEWEST);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(Ruleset::create)
        .map_err(|error| error.to_string())?;
    // Names can be listed everywhere: a rule holds for all below it, so it cannot be kept from the hidden folder.
    rules = allow(rules, Path::new("/"), AccessFs::ReadDir.into())?;
    for path in everything_but(&confinement.hidden) {
        rules = allow(rules, &path, look)?;
    }
    for path in &confinement.read {
        rules = allow(rules, path, look)?;
    }
    // Terminals and the like; the user's own rights still decide about disks.
    rules = allow(rules, Path::new("/dev"), all)?;
    for path in &confinement.write {
        rules = allow(rules, path, all)?;
    }
    rules.restrict_self().map(drop).map_err(|error| error.to_string())
}

fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, String> {
    // What is not there, or not ours to open, needs no permission.
    let Ok(file) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    if access.is_empty() {
        return Ok(rules);
    }
    rules.add_rule(PathBeneath::new(file, access)).map_err(|error| error.to_string())
}

/// Siblings of the hidden folder and of each folder above it: together everything else there is at this moment.
fn everything_but(hidden: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for folder in hidden.ancestors().skip(1) {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.extend(entries.filter(|path| !hidden.starts_with(path)));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_hidden_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let hidden = folder.path().join("a/data");
        std::fs::create_dir_all(&hidden).unwrap();
        std::fs::create_dir_all(folder.path().join("b")).unwrap();
        std::fs::write(folder.path().join("a/file"), "").unwrap();
        let named = everything_but(&hidden);
        assert!(named.contains(&folder.path().join("b")) && named.contains(&folder.path().join("a/file")));
        assert!(!named.iter().any(|path| hidden.starts_with(path)), "{named:?}");
    }
}
