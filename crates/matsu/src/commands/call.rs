//! `matsu call TOOL JSON`: one tool call, as a model would make it; `matsu call` lists the tools.

mod reference;
mod rest;

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use hyper::Method;
use matsu_runtime::tool::ToolEntry;
use matsu_runtime::tools::TOOLS;
use serde_json::{Value, json};

use super::{Context, print_json};
use crate::cli::Global;
use crate::client::{Client, Next, segment};

#[derive(Args)]
pub struct Call {
    /// The tool's name; if it is omitted, the tools are listed
    pub tool: Option<String>,
    /// Its arguments as a JSON object; - reads them from stdin, @FILE from a file
    #[arg(default_value = "{}")]
    pub arguments: String,
    /// Print the tool's description and schemas instead of calling it
    #[arg(long)]
    pub schema: bool,
    /// Print docs/tools.md
    #[arg(long, hide = true)]
    pub reference: bool,
    /// Print docs/reference/rest.md
    #[arg(long, hide = true)]
    pub rest_reference: bool,
}

pub async fn run(cx: &Context, global: &Global, args: Call) -> Result<ExitCode> {
    if args.reference {
        say!("{}", reference::page().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if args.rest_reference {
        say!("{}", rest::page().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let Some(name) = &args.tool else { return Ok(list(cx)) };
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        bail!("there is no tool {name}; `matsu call` lists the tools");
    };
    if args.schema {
        print_json(&described(tool));
        return Ok(ExitCode::SUCCESS);
    }
    let arguments: Value = serde_json::from_str(&text(&args.arguments)?)
        .with_context(|| format!("{} is not JSON; pass an object such as '{{}}'", args.arguments))?;
    // Work that goes on after the call needs a process that outlives this one.
    let mut client = if tool.annotations.open_world && !tool.annotations.read_only {
        Client::with_daemon(&cx.config, global).await?
    } else {
        Client::connect(&cx.config).await?
    };
    let path = format!("/api/v1/tools/{}", segment(name));
    let answer = if tool.annotations.read_only {
        let next = Next { config: &cx.config, global };
        client.ask(next, Method::POST, &path, Some(arguments)).await?
    } else {
        client.post(&path, arguments).await?
    };
    print_json(&answer);
    Ok(if answer["ok"] == true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(given: &str) -> Result<String> {
    if given == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read the arguments from stdin")?;
        return Ok(text);
    }
    match given.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("cannot read the arguments from {file}")),
        None => Ok(given.to_owned()),
    }
}

fn described(tool: &ToolEntry) -> Value {
    json!({
        "name": tool.name,
        "title": tool.title,
        "toolset": tool.toolset.as_str(),
        "description": tool.description,
        "input_schema": tool.input_schema(),
        "output_schema": tool.output_schema(),
    })
}

fn list(cx: &Context) -> ExitCode {
    if cx.json {
        print_json(&json!({ "items": TOOLS.iter().map(described).collect::<Vec<_>>() }));
        return ExitCode::SUCCESS;
    }
    for tool in TOOLS.iter() {
        say!("{:<22} {:<9} {}", tool.name, tool.toolset.as_str(), tool.title);
    }
    say!("matsu call NAME --schema shows what a tool takes and returns");
    ExitCode::SUCCESS
}
