//! `matsu receipt TASK [--verify]`: what the check of a run came to, and the same check once more.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use hyper::Method;
use matsu_core::receipt::is_test;
use serde_json::{Value, json};

use super::{Context, field, print_json};
use crate::cli::Global;
use crate::client::{Client, DaemonUnreachable, Next, segment};
use crate::terminal::checks::verdict;
use crate::terminal::ending;
use crate::terminal::follow::Followed;

#[derive(Args)]
pub struct ReceiptArgs {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// The agent whose run is meant, if the task has several runs
    #[arg(long)]
    pub agent: Option<String>,
    /// Run the check again on the same commit and compare the results
    #[arg(long)]
    pub verify: bool,
}

/// One call waits this long at most; the server may hold it shorter.
const ONE_WAIT_SECONDS: u64 = 50;

pub async fn run(cx: &Context, global: &Global, args: &ReceiptArgs) -> Result<ExitCode> {
    let mut client = if args.verify { Client::at_work(&cx.config).await? } else { Client::connect(&cx.config).await? };
    let agent = args.agent.as_deref().map(|agent| format!("?agent={}", segment(agent))).unwrap_or_default();
    let task = segment(&args.task);
    let first = client.get(&format!("/api/v1/tasks/{task}/receipt{agent}")).await?;
    if !args.verify {
        if cx.json {
            print_json(&first);
        } else {
            show(&first);
        }
        let passed = first["receipt"]["passed"] == true;
        return Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(3) });
    }
    let again = client.post(&format!("/api/v1/tasks/{task}/verify{agent}"), json!({})).await?;
    let again = field(&again, "task_id");
    let next = Next { config: &cx.config, global };
    if let Err(error) = wait(&mut client, next, &again).await {
        if error.is::<DaemonUnreachable>() {
            Followed::Alone.say_what_goes_on(&client, &again);
            return Ok(ExitCode::from(ending::NOT_ENDED));
        }
        return Err(error);
    }
    let said = client.post("/api/v1/tools/get_task_status", json!({ "task_id": again })).await?;
    let Ok(second) = client.get(&format!("/api/v1/tasks/{}/receipt", segment(&again))).await else {
        bail!("the check could not be run again: {}", field(&said, "error"));
    };
    Ok(compare(cx, &first, &second, &said))
}

/// Until the task has ended.
async fn wait(client: &mut Client, next: Next<'_>, task: &str) -> Result<()> {
    let mut since = 0;
    loop {
        let task = segment(task);
        let path = format!("/api/v1/tasks/{task}/wait?timeout={ONE_WAIT_SECONDS}&since={since}&wait_for=all");
        let reply = client.ask(next, Method::GET, &path, None).await?;
        since = reply["next"]["since"].as_i64().unwrap_or(since);
        if matches!(reply["task"]["status"].as_str(), Some("completed" | "finished" | "failed" | "cancelled")) {
            return Ok(());
        }
    }
}

fn compare(cx: &Context, first: &Value, second: &Value, said: &Value) -> ExitCode {
    let (one, other) = (&first["receipt"], &second["receipt"]);
    let is_same = |name: &str| one[name] == other[name];
    let verified = is_same("tree") && is_same("head") && is_same("passed") && is_same("exit_code");
    if cx.json {
        let same_log = is_same("log_sha256");
        print_json(&json!({ "verified": verified, "same_log": same_log, "receipt": one, "again": other }));
    } else {
        show(second);
        let log = if is_same("log_sha256") { "with the same output" } else { "with other output" };
        if verified {
            let again = if one["passed"] == true { "passed" } else { "failed" };
            say!("verified: it {again} again, on the same tree, with the same exit code, {log}");
        } else {
            say!("NOT verified: the first result was {}, the second is {}", verdict(one), verdict(other));
            eprintln!("{}", field(said, "check_output").trim_end());
        }
    }
    // A check that fails twice in the same way is the same, and is no proof.
    let is_proof = verified && other["passed"] == true;
    if is_proof { ExitCode::SUCCESS } else { ExitCode::from(3) }
}

fn show(said: &Value) {
    let receipt = &said["receipt"];
    say!("{}  {}", field(said, "task_id"), verdict(receipt));
    say!("  command      {}", field(said, "command"));
    say!("  exit code    {}", field(receipt, "exit_code"));
    say!("  seconds      {}", receipt["seconds"]);
    say!("  head         {}", field(receipt, "head"));
    say!("  tree         {}", field(receipt, "tree"));
    say!("  base         {}", field(receipt, "base"));
    say!("  output       sha256 {}, {} bytes", field(receipt, "log_sha256"), receipt["log_bytes"]);
    say!("  rounds       {}", receipt["rounds"]);
    let model = field(receipt, "model");
    say!("  agent        {}{}", field(receipt, "agent"), if model.is_empty() { model } else { format!(" ({model})") });
    let usage = &receipt["usage"];
    if usage.is_object() {
        let cost = usage["cost_usd"].as_f64().map(|cost| format!(", {cost} USD")).unwrap_or_default();
        say!("  tokens       {} in, {} out{cost}", usage["input_tokens"], usage["output_tokens"]);
    }
    say!("  confinement  {}; network {}", field(receipt, "confinement"), field(receipt, "network"));
    for path in receipt["changed_tests"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        say!("  {} {path}", if is_test(path) { "changed test" } else { "changed build" });
    }
}
