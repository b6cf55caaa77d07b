//! `matsu migrate`: opening a store brings its schema up to date; this does only that and reports it.

use std::process::ExitCode;

use anyhow::Result;

use super::{Context, print_json};
use crate::compose;

pub async fn run(cx: &Context) -> Result<ExitCode> {
    let opened = compose::open_store(&cx.config).await?;
    let info = opened.store.check().await?;
    if cx.json {
        print_json(&serde_json::to_value(&info)?);
    } else {
        say!("{} store at {}: schema {}", info.backend, info.location, info.schema_version);
    }
    Ok(ExitCode::SUCCESS)
}
