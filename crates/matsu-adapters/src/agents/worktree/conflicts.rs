//! What `git merge-tree -z` says of files that it cannot merge.

use std::collections::BTreeMap;

use matsu_core::ports::agent::{Conflict, ConflictKind};

use super::harvest::shown;

/// Conflicts that are known.
const CONFLICTS_MAX: usize = 1_000;

/// A tree, the stages of each file that conflicts, an empty part, and messages.
pub struct Merged {
    pub tree: String,
    pub conflicts: Vec<Conflict>,
}

pub fn read(output: &[u8]) -> Merged {
    let mut parts = output.split(|byte| *byte == 0);
    let tree = String::from_utf8_lossy(parts.next().unwrap_or_default()).trim().to_owned();
    let mut stages: BTreeMap<&[u8], Vec<u8>> = BTreeMap::new();
    for entry in parts.by_ref().take_while(|part| !part.is_empty()) {
        // `MODE OID STAGE\tPATH`
        let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
        let stage = entry[..tab].last().copied().unwrap_or_default();
        stages.entry(&entry[tab + 1..]).or_default().push(stage);
    }
    let notes = messages(parts);
    let conflicts = stages.iter().take(CONFLICTS_MAX).map(|(path, stages)| {
        let named =
            |word: &str| notes.iter().find(|named| named.kind.contains(word) && named.paths.first() == Some(path));
        // Git moves the file out of the way of a folder, to a name that is in no tree.
        let (path, kind) = match (named("file/directory"), named("binary")) {
            (Some(named), _) => (named.paths.get(1).unwrap_or(path), ConflictKind::Folder),
            (None, Some(_)) => (path, ConflictKind::NotText),
            (None, None) => (path, of_stages(stages)),
        };
        Conflict { path: shown(path), kind }
    });
    Merged { tree, conflicts: conflicts.collect() }
}

/// 1 is the base, 2 the user's, 3 the run's.
fn of_stages(stages: &[u8]) -> ConflictKind {
    let has = |stage: u8| stages.contains(&stage);
    match (has(b'1'), has(b'2'), has(b'3')) {
        (true, true, true) => ConflictKind::Lines,
        (false, true, true) => ConflictKind::BothMade,
        (true, false, true) => ConflictKind::YouDeleted,
        (true, true, false) => ConflictKind::RunDeleted,
        _ => ConflictKind::Moved,
    }
}

struct Message<'b> {
    paths: Vec<&'b [u8]>,
    kind: String,
}

/// How many paths, the paths, the kind, and words.
fn messages<'b>(mut parts: impl Iterator<Item = &'b [u8]>) -> Vec<Message<'b>> {
    let mut found = Vec::new();
    while let Some(count) = parts.next().and_then(|part| std::str::from_utf8(part).ok()?.parse::<usize>().ok()) {
        let paths: Vec<&[u8]> = parts.by_ref().take(count).collect();
        let kind = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let _words = parts.next();
        found.push(Message { paths, kind });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_conflict_has_its_own_reason_and_the_name_that_the_user_knows() {
        let output = b"tree\n\x00100644 aa 1\tboth\x00100644 aa 2\tboth\x00100644 aa 3\tboth\x00\
                     100644 aa 1\tgone\x00100644 aa 3\tgone\x00100644 aa 3\tdd~ff\x00\
                     100644 aa 1\tp.png\x00100644 aa 2\tp.png\x00100644 aa 3\tp.png\x00\x00\
                     1\0both\0CONFLICT (contents)\0words\n\x002\0dd~ff\0dd\0CONFLICT (file/directory)\0words\n\0\
                     1\0p.png\0CONFLICT (binary)\0words\n\0";
        let merged = read(output);
        let found: Vec<(&str, ConflictKind)> =
            merged.conflicts.iter().map(|conflict| (conflict.path.as_str(), conflict.kind)).collect();
        assert_eq!(merged.tree, "tree");
        assert_eq!(
            found,
            [
                ("both", ConflictKind::Lines),
                ("dd", ConflictKind::Folder),
                ("gone", ConflictKind::YouDeleted),
                ("p.png", ConflictKind::NotText)
            ]
        );
    }
}
