//! `matsu call TOOL JSON`: one tool call, as a model would make it.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::Value;

use super::{Context, print_json};
use crate::client::{Client, segment};

#[derive(Args)]
pub struct Call {
    /// The tool's name
    pub tool: String,
    /// Its arguments, as a JSON object
    #[arg(default_value = "{}")]
    pub arguments: String,
}

pub async fn run(cx: &Context, args: Call) -> Result<ExitCode> {
    let arguments: Value = serde_json::from_str(&args.arguments)
        .with_context(|| format!("{} is not JSON; pass an object such as '{{}}'", args.arguments))?;
    let client = Client::connect(&cx.config).await?;
    let answer = client.post(&format!("/api/v1/tools/{}", segment(&args.tool)), arguments).await?;
    print_json(&answer);
    Ok(if answer["ok"] == true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
