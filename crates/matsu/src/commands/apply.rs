//! `matsu apply TASK`: the changes of a run into the tree it came from, all or nothing.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::{Context, field, print_json};
use crate::cli::Global;
use crate::client::{Client, segment};
use crate::terminal::checks::{tell_changed_tests, verdict};
use crate::terminal::ending::size_of_changes;
use crate::terminal::plain_text::plain_line;

#[derive(Args)]
pub struct Apply {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// The agent whose run is meant, if the task has several runs
    #[arg(long)]
    pub agent: Option<String>,
    /// Only show the patch
    #[arg(long)]
    pub show: bool,
    /// Write files that you and the run both changed with conflict markers
    #[arg(long, conflicts_with_all = ["show", "undo"])]
    pub merge: bool,
    /// If you and the run changed the same lines, let the agent resolve the conflicts with your current files
    #[arg(long, conflicts_with_all = ["show", "undo", "merge", "agent"])]
    pub send_back: bool,
    /// Undo an earlier apply
    #[arg(long, conflicts_with = "show")]
    pub undo: bool,
}

pub async fn run(cx: &Context, global: &Global, args: &Apply) -> Result<ExitCode> {
    let client = if args.send_back {
        Client::with_daemon(&cx.config, global).await?
    } else {
        Client::connect(&cx.config).await?
    };
    let agent = args.agent.as_deref().map(|agent| format!("?agent={}", segment(agent))).unwrap_or_default();
    let task = segment(&args.task);
    if args.show {
        let said = client.get(&format!("/api/v1/tasks/{task}/diff{agent}")).await?;
        if cx.json {
            print_json(&said);
        } else {
            eprintln!("Changes of {} in {}", plain_line(&field(&said, "agent")), args.task);
            std::io::stdout().write_all(&patch_of(&said))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.undo {
        let said = client.post(&format!("/api/v1/tasks/{task}/undo-apply{agent}"), json!({})).await?;
        show_done(cx, &said, "undone; the branch is restored");
        return Ok(ExitCode::SUCCESS);
    }
    let how = match (args.merge, agent.is_empty()) {
        (false, _) if args.send_back => "?send_back=true".to_owned(),
        (false, _) => agent,
        (true, true) => "?merge=true".to_owned(),
        (true, false) => format!("{agent}&merge=true"),
    };
    let said = client.post(&format!("/api/v1/tasks/{task}/apply{how}"), json!({})).await?;
    if said["sent_back"].is_object() && !cx.json {
        let next = field(&said["sent_back"], "task_id");
        let files: Vec<&str> = said["conflicts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let files = plain_line(&files.join(", "));
        say!("Not applied: conflicts in {files}. {next} resolves them; then: matsu apply {next}");
        return Ok(ExitCode::SUCCESS);
    }
    show_done(cx, &said, "applied");
    if !cx.json {
        show_rest(&said);
        tell_check(&said["receipt"]);
    }
    Ok(ExitCode::SUCCESS)
}

/// What a person has to do after the files were written.
fn show_rest(said: &Value) {
    let list = |name: &str| said[name].as_array().cloned().unwrap_or_default();
    let unmarked = list("without_markers");
    let is_unmarked = |path: &Value| unmarked.iter().any(|entry| entry["path"] == *path);
    let marked: Vec<Value> = list("conflicts").into_iter().filter(|path| !is_unmarked(path)).collect();
    let names = |values: &[Value]| values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    if !marked.is_empty() {
        say!("Conflict markers are in: {}", plain_line(&names(&marked)));
    }
    for entry in &unmarked {
        let (path, why) = (plain_line(&field(entry, "path")), field(entry, "why"));
        say!("No conflict markers could be written, so compare this file yourself: {path} ({why})");
    }
    let missing = list("missing");
    if !missing.is_empty() {
        let commands = names(&missing).replace(", ", "; matsu apply ");
        say!(
            "The run began with changes of other tasks, which were not applied. To apply them too: matsu apply {commands}"
        );
    }
}

/// Whether what was written is proven.
fn tell_check(receipt: &Value) {
    if receipt.is_object() {
        let proof = if receipt["passed"] == true { "" } else { "; the applied changes did not pass it" };
        eprintln!("The check of these changes: {}{proof}", plain_line(&verdict(receipt)));
        tell_changed_tests(receipt, "");
    }
}

/// What was done with the changes.
pub fn show_done(cx: &Context, said: &Value, done: &str) {
    if cx.json {
        print_json(said);
        return;
    }
    say!("{}: {done}", size_of_changes(&said["changes"]));
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
