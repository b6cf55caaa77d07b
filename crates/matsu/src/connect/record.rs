//! The record of what was put into a client's files. Written before the files are, so that nothing is put anywhere that
//! could not be found again; taken out piece by piece, so that what others wrote meanwhile stays.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::pieces::{Edit, Piece, Texts, read};
use super::saved::{Saved, make_folder_of, missing_folders, write_as_it_was};
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

/// How much of what is on record under a name is in the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// Nothing is on record.
    Nothing,
    /// A process was killed between the record and the files, or another program or a person removed a part.
    Partial,
    Whole,
}

pub fn record_state(data_dir: &Path, name: &str) -> Result<RecordState> {
    let Some(record) = load(&place(data_dir, name))? else { return Ok(RecordState::Nothing) };
    let is_in_its_file = |entry: &Entry| match without_pieces(entry) {
        Without::Gone => false,
        Without::Nothing => true,
        Without::Text { is_whole, .. } => is_whole,
    };
    Ok(if record.files.iter().all(is_in_its_file) { RecordState::Whole } else { RecordState::Partial })
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

/// What is written under one name.
pub struct Change<'a> {
    pub name: &'a str,
    pub edits: &'a [Edit],
    /// What is on record under this name is taken out first; otherwise it stays, on the same record.
    pub replaces: bool,
}

/// All files of a change as they were before it.
pub struct Applied(Vec<Saved>);

impl Applied {
    /// Puts everything back, the last one first, and names every file for which that was not possible.
    pub fn take_back(&self) -> Result<()> {
        let errors = self.0.iter().rev().filter_map(|saved| saved.put_back().err());
        let errors = errors.map(|error| format!("{error:#}")).collect::<Vec<_>>();
        if errors.is_empty() { Ok(()) } else { bail!("these files could not be restored: {}", errors.join("; ")) }
    }
}

/// Makes all edits, on record, or none of them: what was written before an error is put back.
pub fn apply(data_dir: &Path, changes: &[Change]) -> Result<Applied> {
    let mut applied = Applied(Vec::new());
    for change in changes {
        let record = place(data_dir, change.name);
        applied.0.push(Saved::of(&record)?);
        let earlier = load(&record)?.map(|record| record.files).unwrap_or_default();
        let files = change.edits.iter().map(|edit| &edit.file).chain(earlier.iter().map(|entry| &entry.file));
        for file in files {
            applied.0.push(Saved::of(file)?);
        }
    }
    for change in changes {
        if let Err(error) = apply_one(data_dir, change) {
            let state = match applied.take_back() {
                Ok(()) => "nothing was changed".to_owned(),
                Err(left) => format!("{left:#}"),
            };
            return Err(error.context(state));
        }
    }
    Ok(applied)
}

fn apply_one(data_dir: &Path, change: &Change) -> Result<()> {
    let place = place(data_dir, change.name);
    if change.replaces {
        undo(data_dir, change.name)?;
    }
    let mut record = load(&place)?.unwrap_or(Record { files: Vec::new() });
    for edit in change.edits {
        match record.files.iter_mut().find(|entry| entry.file == edit.file) {
            // The newest pieces come out first.
            Some(entry) => entry.pieces.splice(0..0, edit.pieces.iter().cloned()).for_each(drop),
            None => record.files.push(Entry {
                file: edit.file.clone(),
                was_there: edit.before.is_some(),
                pieces: edit.pieces.clone(),
                folders: missing_folders(&edit.file),
            }),
        }
    }
    make_private_folder(data_dir)?;
    make_private_folder(&data_dir.join("connect"))?;
    write_private(&place, &serde_json::to_string_pretty(&record)?)?;
    for edit in change.edits {
        make_folder_of(&edit.file)?;
        write_as_it_was(&edit.file, &edit.after)?;
    }
    Ok(())
}

fn load(place: &Path) -> Result<Option<Record>> {
    let Some(text) = read(place)? else { return Ok(None) };
    let record = serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is not a record that Matsu wrote; remove this file, and take what Matsu wrote out of the client's files",
            place.display()
        )
    })?;
    Ok(Some(record))
}

/// The files on record as they would be after `undo`.
pub fn texts_without(data_dir: &Path, client: &str) -> Result<Texts> {
    let entries = load(&place(data_dir, client))?.map(|record| record.files).unwrap_or_default();
    let text = |entry: &Entry| match without_pieces(entry) {
        Without::Gone | Without::Nothing => None,
        Without::Text { text, .. } => Some(text),
    };
    Ok(entries.iter().map(|entry| (entry.file.clone(), text(entry))).collect())
}

/// Takes everything out again. A client that was never connected answers with nothing.
pub fn undo(data_dir: &Path, client: &str) -> Result<Vec<Undone>> {
    let place = place(data_dir, client);
    let Some(record) = load(&place)? else { return Ok(Vec::new()) };
    let mut undone = Vec::new();
    for entry in record.files {
        undone.push(undo_one(entry)?);
    }
    fs::remove_file(&place)?;
    Ok(undone)
}

/// What a file is without our pieces.
enum Without {
    /// It is not there now.
    Gone,
    /// It was made for our pieces and holds nothing else.
    Nothing,
    Text {
        text: String,
        /// All pieces were found.
        is_whole: bool,
    },
}

fn without_pieces(entry: &Entry) -> Without {
    let Ok(mut text) = fs::read_to_string(&entry.file) else { return Without::Gone };
    let mut is_whole = true;
    for piece in &entry.pieces {
        match piece.taken_out_of(&text) {
            Some(left) => text = left,
            None => is_whole = false,
        }
    }
    // A client that wrote the file anew leaves the empty object that stood around our piece.
    if !entry.was_there && is_whole && matches!(text.trim(), "" | "{}") {
        return Without::Nothing;
    }
    Without::Text { text, is_whole }
}

fn undo_one(entry: Entry) -> Result<Undone> {
    match without_pieces(&entry) {
        Without::Gone => Ok(Undone::Gone(entry.file)),
        Without::Nothing => {
            fs::remove_file(&entry.file).with_context(|| format!("cannot remove {}", entry.file.display()))?;
            // Only empty ones go: others may have put things there.
            for folder in &entry.folders {
                let _ = fs::remove_dir(folder);
            }
            Ok(Undone::Removed(entry.file))
        }
        Without::Text { text, is_whole } => {
            write_as_it_was(&entry.file, &text)?;
            Ok(if is_whole { Undone::Restored(entry.file) } else { Undone::Changed(entry.file) })
        }
    }
}
