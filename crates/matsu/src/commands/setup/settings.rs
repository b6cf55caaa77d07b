//! Settings that are added to the configuration file so that they can be taken out again: `research.folders` and a
//! channel for notices.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::Context;
use crate::connect::pieces::{Edit, Piece, read};
use crate::homes::Homes;

/// The name of the record in the data directory.
pub const RECORD: &str = "settings";

/// `typed` are folders, separated by colons; `channel` is a section of the file. `None`: there is nothing to add.
pub fn edit(cx: &Context, homes: &Homes, typed: &str, channel: Option<&str>) -> Result<Option<Edit>> {
    let what = match (typed.is_empty(), channel) {
        (true, None) => return Ok(None),
        (false, None) => "research.folders",
        (true, Some(_)) => "notify.me",
        (false, Some(_)) => "research.folders and notify.me",
    };
    let file = cx.config.file.clone().context("no configuration file is known; pass --config FILE")?;
    let before = read(&file)?;
    let mut after = before.clone().unwrap_or_default();
    let parsed: toml::Table = after.parse().with_context(|| format!("{} is not TOML", file.display()))?;
    let mut pieces = Vec::new();
    if !typed.is_empty() {
        let list = folders(homes, typed)?;
        match parsed.get("research") {
            None => add(&mut after, &mut pieces, &format!("[research]\nfolders = {list}\n")),
            Some(toml::Value::Table(table)) if !table.contains_key("folders") && has_header(&after) => {
                add_to_research(&mut after, &mut pieces, &format!("folders = {list}\n"));
            }
            Some(_) => bail!(
                "{} has settings of research to which nothing can be added; leave this empty, and set \
                 research.folders = {list} in the file by hand",
                file.display()
            ),
        }
    }
    if let Some(section) = channel {
        add(&mut after, &mut pieces, section);
    }
    if let Err(error) = after.parse::<toml::Table>() {
        bail!("{} cannot be changed ({}); set {what} in it by hand", file.display(), error.message());
    }
    Ok(Some(Edit { file, before, after, pieces, what }))
}

/// At the end, after an empty line. The last one comes out first.
fn add(text: &mut String, pieces: &mut Vec<Piece>, section: &str) {
    let gap = match text.as_str() {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let piece = format!("{gap}{section}");
    text.push_str(&piece);
    pieces.insert(0, Piece { text: piece, place: None });
}

const RESEARCH: &str = "[research]";

fn is_header(line: &str) -> bool {
    line.trim().strip_prefix(RESEARCH).is_some_and(|rest| matches!(rest.trim_start().chars().next(), None | Some('#')))
}

fn has_header(text: &str) -> bool {
    text.lines().any(is_header)
}

/// Below the table's own header, before what the table has.
fn add_to_research(text: &mut String, pieces: &mut Vec<Piece>, line: &str) {
    let mut at = 0;
    for found in text.split_inclusive('\n') {
        at += found.len();
        if is_header(found) {
            break;
        }
    }
    // The header may be the last line, without an end.
    let gap = if text[..at].ends_with('\n') { "" } else { "\n" };
    let piece = format!("{gap}{line}");
    text.insert_str(at, &piece);
    pieces.insert(0, Piece { text: piece, place: None });
}

fn folders(homes: &Homes, typed: &str) -> Result<Value> {
    let folders = typed.split(':').map(str::trim).filter(|text| !text.is_empty());
    let folders = folders.map(|text| folder(homes, text)).collect::<Result<Vec<PathBuf>>>()?;
    // JSON's strings are TOML's too.
    Ok(Value::from(folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(":")))
}

fn folder(homes: &Homes, text: &str) -> Result<PathBuf> {
    let path = match text.strip_prefix("~/") {
        Some(below) => homes.home.join(below),
        None if text == "~" => homes.home.clone(),
        None => std::path::absolute(text)?,
    };
    if !path.is_dir() {
        bail!("{} is not a folder; name folders that exist, separated by colons", path.display());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_added_to_a_table_that_is_there_and_come_out_again() {
        for (before, after) in [
            ("[research]\nstep_ms = 7\n", "[research]\nfolders = \"/a\"\nstep_ms = 7\n"),
            ("x = 1\n[research] # mine\n[chat]\n", "x = 1\n[research] # mine\nfolders = \"/a\"\n[chat]\n"),
            ("[research]", "[research]\nfolders = \"/a\"\n"),
        ] {
            let (mut text, mut pieces) = (before.to_owned(), Vec::new());
            assert!(has_header(before), "{before:?}");
            add_to_research(&mut text, &mut pieces, "folders = \"/a\"\n");
            assert_eq!(text, after);
            assert_eq!(pieces[0].taken_out_of(&text).as_deref(), Some(before));
        }
        assert!(!has_header("research = { step_ms = 7 }\n[research.more]\n"));
    }
}
