//! `matsu backup FILE`: a consistent copy of a live store.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Context, print_json};
use crate::compose;

#[derive(Args)]
pub struct Backup {
    /// The file to write; must not exist
    pub file: PathBuf,
}

pub async fn run(cx: &Context, args: Backup) -> Result<ExitCode> {
    let opened = compose::open_store(&cx.config).await?;
    let file = std::path::absolute(&args.file)?;
    opened.store.backup(&file).await?;
    let bytes = std::fs::metadata(&file)?.len();
    if cx.json {
        print_json(&json!({ "ok": true, "file": file, "bytes": bytes }));
    } else {
        say!("{} ({bytes} bytes)", file.display());
    }
    Ok(ExitCode::SUCCESS)
}
