//! Which folders of a tree git takes for repositories of their own (submodules): it looks into them, and obeys the
//! settings of a `.git` there, also when the user only asks for the status of the tree. Read from the index itself,
//! so that no program runs for it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::foreign_file;

/// An index is about 100 bytes for each file.
const INDEX_BYTES_MAX: u64 = 256 * 1024 * 1024;
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

const SUBMODULE: u32 = 0o160_000;

/// The paths of all submodules, relative to the tree. An index that cannot be read names none.
///
/// # Errors
/// There is an index, and it cannot be understood.
pub fn submodules(git_dir: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let path = git_dir.join("index");
    let bytes = match foreign_file::read_bytes(&path, INDEX_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let config = foreign_file::read_text(&git_dir.join("config"), CONFIG_BYTES_MAX).unwrap_or_default();
    let hash = if config.to_ascii_lowercase().contains("sha256") { 32 } else { 20 };
    parse(&bytes, hash).ok_or_else(|| format!("{} has an unknown format", path.display()))
}

/// Versions 2 to 4 of git's index.
fn parse(bytes: &[u8], hash: usize) -> Option<BTreeSet<PathBuf>> {
    let mut rest = Bytes { bytes, at: 0 };
    if rest.take(4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (rest.number()?, rest.number()?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut found = BTreeSet::new();
    let mut name: Vec<u8> = Vec::new();
    for _ in 0..count {
        let start = rest.at;
        rest.take(24)?;
        let mode = rest.number()?;
        rest.take(12 + hash)?;
        let is_extended = rest.take(2)?[0] & 0x40 != 0;
        if is_extended {
            rest.take(2)?;
        }
        if version == 4 {
            let kept = name.len().checked_sub(rest.varint()?)?;
            name.truncate(kept);
            name.extend(rest.until_zero()?);
        } else {
            name = rest.until_zero()?.to_vec();
            // Entries are padded with one to eight zero bytes; the first was read with the name.
            let length = rest.at - 1 - start;
            rest.take((length + 8) / 8 * 8 - length - 1)?;
        }
        let path = Path::new(OsStr::from_bytes(&name));
        if mode == SUBMODULE && path.components().all(|part| matches!(part, Component::Normal(_))) {
            found.insert(path.to_owned());
        }
    }
    Some(found)
}

struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let part = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(part)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// As git writes offsets: seven bits each, one added at each further byte.
    fn varint(&mut self) -> Option<usize> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        }
        Some(value)
    }

    fn until_zero(&mut self) -> Option<&'a [u8]> {
        let length = self.bytes.get(self.at..)?.iter().position(|byte| *byte == 0)?;
        let part = self.take(length)?;
        self.take(1)?;
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(mode: u32, name: &str) -> Vec<u8> {
        let mut entry = vec![0; 24];
        entry.extend(mode.to_be_bytes());
        entry.extend([0; 12 + 20]);
        entry.extend([0, u8::try_from(name.len()).unwrap()]);
        entry.extend(name.as_bytes());
        let padded = (entry.len() + 8) / 8 * 8;
        entry.resize(padded, 0);
        entry
    }

    fn index(version: u32, entries: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        entries.iter().for_each(|entry| bytes.extend(entry));
        bytes
    }

    #[test]
    fn submodules_are_found_among_files_and_odd_paths_are_not() {
        let entries = [
            entry(0o100_644, "a"),
            entry(SUBMODULE, "deep/er/mod"),
            entry(SUBMODULE, "../out"),
            entry(0o100_755, "longer/name.txt"),
            entry(SUBMODULE, "mod"),
        ];
        let found = parse(&index(2, &entries), 20).unwrap();
        assert_eq!(found, [PathBuf::from("deep/er/mod"), PathBuf::from("mod")].into());
    }

    #[test]
    fn what_is_cut_or_of_another_form_is_refused() {
        let whole = index(2, &[entry(SUBMODULE, "mod")]);
        assert!((12..whole.len()).all(|length| parse(&whole[..length], 20).is_none()));
        assert!(parse(&index(5, &[]), 20).is_none() && parse(b"", 20).is_none() && parse(b"DIRC", 20).is_none());
    }
}
