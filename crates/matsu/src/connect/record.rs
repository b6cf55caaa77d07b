//! The record of what was put into a client's files. Written before the files are, so that nothing is put anywhere that
//! could not be found again; taken out piece by piece, so that what others wrote meanwhile stays.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::pieces::{Edit, Piece};
use crate::private_files::{make_private_folder, write_private};

#[derive(Serialize, Deserialize)]
struct Record {
    files: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    file: PathBuf,
    was_there: bool,
    pieces: Vec<Piece>,
    /// Folders that were made for it, the innermost first.
    folders: Vec<PathBuf>,
}

/// What became of one file.
#[derive(Debug, PartialEq, Eq)]
pub enum Undone {
    Restored(PathBuf),
    Removed(PathBuf),
    /// Our piece was changed by a person or a program: it is left as it is.
    Changed(PathBuf),
    Gone(PathBuf),
}

fn place(data_dir: &Path, client: &str) -> PathBuf {
    data_dir.join("connect").join(format!("{client}.json"))
}

pub fn exists(data_dir: &Path, client: &str) -> bool {
    place(data_dir, client).is_file()
}

/// Whether anything is on record.
pub fn any(data_dir: &Path) -> bool {
    names(data_dir).is_ok_and(|names| !names.is_empty())
}

/// What is on record: clients, and settings.
pub fn names(data_dir: &Path) -> Result<Vec<String>> {
    let folder = data_dir.join("connect");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Makes the edits, on record.
pub fn apply(data_dir: &Path, client: &str, edits: &[Edit]) -> Result<()> {
    let entry = |edit: &Edit| {
        let missing = edit.file.ancestors().skip(1).take_while(|folder| !folder.exists());
        Entry {
            file: edit.file.clone(),
            was_there: edit.before.is_some(),
            pieces: edit.pieces.clone(),
            folders: missing.map(Path::to_owned).collect(),
        }
    };
    let record = Record { files: edits.iter().map(entry).collect() };
    make_private_folder(data_dir)?;
    make_private_folder(&data_dir.join("connect"))?;
    write_private(&place(data_dir, client), &serde_json::to_string_pretty(&record)?)?;
    for edit in edits {
        if let Some(folder) = edit.file.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        write_as_it_was(&edit.file, &edit.after)?;
    }
    Ok(())
}

/// Takes everything out again. A client that was never connected answers with nothing.
pub fn undo(data_dir: &Path, client: &str) -> Result<Vec<Undone>> {
    let place = place(data_dir, client);
    let Ok(text) = fs::read_to_string(&place) else { return Ok(Vec::new()) };
    let record: Record = serde_json::from_str(&text).with_context(|| format!("cannot read {}", place.display()))?;
    let mut undone = Vec::new();
    for entry in record.files {
        undone.push(undo_one(entry)?);
    }
    fs::remove_file(&place)?;
    Ok(undone)
}

fn undo_one(entry: Entry) -> Result<Undone> {
    let Ok(mut text) = fs::read_to_string(&entry.file) else { return Ok(Undone::Gone(entry.file)) };
    let mut is_whole = true;
    for piece in &entry.pieces {
        match piece.taken_out_of(&text) {
            Some(left) => text = left,
            None => is_whole = false,
        }
    }
    // A client that wrote the file anew leaves the empty object that stood around our piece.
    if !entry.was_there && is_whole && matches!(text.trim(), "" | "{}") {
        fs::remove_file(&entry.file)?;
        // Only empty ones go: others may have put things there.
        for folder in &entry.folders {
            let _ = fs::remove_dir(folder);
        }
        return Ok(Undone::Removed(entry.file));
    }
    write_as_it_was(&entry.file, &text)?;
    Ok(if is_whole { Undone::Restored(entry.file) } else { Undone::Changed(entry.file) })
}

/// Beside it and by rename, under the same permissions; a link keeps pointing where it did.
fn write_as_it_was(file: &Path, text: &str) -> Result<()> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let fresh = file.with_extension("matsu-new");
    // What a killed process left: it may lie there under any permissions.
    let _ = fs::remove_file(&fresh);
    let write = || -> std::io::Result<()> {
        // The file may hold the client's logins, so other users may not read the copy at any moment.
        let mut copy = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&fresh)?;
        copy.write_all(text.as_bytes())?;
        if let Ok(meta) = fs::metadata(&file) {
            copy.set_permissions(meta.permissions())?;
        }
        copy.sync_all()?;
        fs::rename(&fresh, &file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}
