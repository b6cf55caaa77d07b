//! The setting `research.folders`, added to the configuration file so that it can be taken out again.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::Context;
use crate::connect::pieces::{Edit, Piece, read};
use crate::homes::Homes;

/// The name of the record in the data directory.
pub const RECORD: &str = "settings";

pub fn edit(cx: &Context, homes: &Homes, typed: &str) -> Result<Edit> {
    let folders = typed.split(':').map(str::trim).filter(|text| !text.is_empty());
    let folders = folders.map(|text| folder(homes, text)).collect::<Result<Vec<PathBuf>>>()?;
    let list = folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(":");
    let file = cx.config.file.clone().context("no configuration file is known; pass --config FILE")?;
    let before = read(&file)?;
    let text = before.clone().unwrap_or_default();
    let parsed: toml::Table = text.parse().with_context(|| format!("{} is not TOML", file.display()))?;
    if parsed.contains_key("research") {
        bail!("{} has a table [research]; set folders = {} in it by hand", file.display(), Value::from(list));
    }
    let gap = match text.as_str() {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    // JSON's strings are TOML's too.
    let piece = format!("{gap}[research]\nfolders = {}\n", Value::from(list));
    let pieces = vec![Piece { text: piece.clone(), place: None }];
    Ok(Edit { file, before, after: format!("{text}{piece}"), pieces, what: "research.folders" })
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
