//! `matsu gc`: removes evidence that no task reaches.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Context, print_json};
use crate::client::Client;

#[derive(Args)]
pub struct Gc {
    /// Only list what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

pub async fn run(cx: &Context, args: Gc) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let cleared = client.post("/api/v1/gc", json!({ "dry_run": args.dry_run })).await?;
    if cx.json {
        print_json(&cleared);
    } else {
        let verb = if args.dry_run { "would be removed" } else { "removed" };
        say!("{} pages, {} fragments, {} edges {verb}", cleared["pages"], cleared["fragments"], cleared["edges"]);
        for url in cleared["listed"]["pages"].as_array().into_iter().flatten() {
            tell!("  {}", url.as_str().unwrap_or_default());
        }
    }
    Ok(ExitCode::SUCCESS)
}
