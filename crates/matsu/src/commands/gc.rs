//! `matsu gc`: removes evidence that no task reaches.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use super::{Context, print_json};
use crate::cli::Gc;
use crate::client::Client;

pub async fn run(cx: &Context, args: Gc) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let cleared = client.post("/api/v1/gc", json!({ "dry_run": args.dry_run })).await?;
    if cx.json {
        print_json(&cleared);
    } else {
        let verb = if args.dry_run { "would go" } else { "removed" };
        say!("{} pages, {} fragments, {} edges {verb}", cleared["pages"], cleared["fragments"], cleared["edges"]);
    }
    Ok(ExitCode::SUCCESS)
}
