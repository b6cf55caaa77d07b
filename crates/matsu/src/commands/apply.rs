//! `matsu apply TASK`: the changes of a run into the tree it came from, all or nothing.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::{Context, field, print_json};
use crate::client::{Client, segment};

#[derive(Args)]
pub struct Apply {
    /// The task's id
    pub task: String,
    /// Of several runs: which agent's
    #[arg(long)]
    pub agent: Option<String>,
    /// Only show the patch
    #[arg(long)]
    pub show: bool,
}

pub async fn run(cx: &Context, args: &Apply) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let agent = args.agent.as_deref().map(|agent| format!("?agent={}", segment(agent))).unwrap_or_default();
    let task = segment(&args.task);
    if args.show {
        let said = client.get(&format!("/api/v1/tasks/{task}/diff{agent}")).await?;
        if cx.json {
            print_json(&said);
        } else {
            std::io::stdout().write_all(&patch_of(&said))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let said = client.post(&format!("/api/v1/tasks/{task}/apply{agent}"), json!({})).await?;
    if cx.json {
        print_json(&said);
    } else {
        let changes = &said["changes"];
        say!("{} files changed, +{} -{}", changes["files"], changes["insertions"], changes["deletions"]);
    }
    Ok(ExitCode::SUCCESS)
}

/// Byte for byte: what `matsu apply --show` prints can be given to `git apply`, whatever encoding the files have.
fn patch_of(said: &Value) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    match said["patch_hex"].as_str() {
        Some(hex) => hex
            .as_bytes()
            .chunks(2)
            .filter_map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?))
            .collect(),
        None => field(said, "patch").as_bytes().to_vec(),
    }
}
