//! `matsu merge TASK…`: the changes of several runs into one branch that passes its check.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hyper::Method;
use serde_json::{Value, json};

use super::{Context, field, print_json, print_table};
use crate::cli::Global;
use crate::client::{Client, DaemonUnreachable, Next, segment};
use crate::terminal::ending;
use crate::terminal::follow::Followed;
use crate::terminal::plain_text::plain_line;

#[derive(Args)]
pub struct Merge {
    /// Tasks whose changes are merged, oldest first
    #[arg(required = true, value_parser = super::task_id)]
    pub tasks: Vec<String>,
    /// The branch that gets the changes; it must not be checked out. Without it, a new branch is created
    #[arg(long, value_name = "BRANCH")]
    pub into: Option<String>,
    /// A command that must exit with 0 after each merge (default: the check of the tasks)
    #[arg(long, value_name = "COMMAND")]
    pub check: Option<String>,
    /// How often a conflict or a failed check goes back to the agent of that task, at most 5
    #[arg(long, value_name = "TIMES", default_value_t = 0)]
    pub fix: u32,
    /// Print the task's id and return at once
    #[arg(short, long)]
    pub detach: bool,
}

pub async fn run(cx: &Context, global: &Global, args: Merge) -> Result<ExitCode> {
    let mut client = Client::with_daemon(&cx.config, global).await?;
    let wish = json!({ "tasks": args.tasks, "into": args.into, "check": args.check, "fix": args.fix });
    let started = client.post("/api/v1/merges", wish).await?;
    let task = field(&started, "task_id");
    if args.detach {
        if cx.json {
            print_json(&started);
        } else {
            say!("{task}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !cx.json {
        eprintln!("{task}  {}. Ctrl-C ends only this display; the work continues", field(&started, "status"));
    }
    let mut shown = String::new();
    let status = loop {
        let wait = json!({ "task_id": task, "timeout": 20 });
        let next = Next { config: &cx.config, global };
        let said = client.ask(next, Method::POST, "/api/v1/tools/get_task_status", Some(wait)).await;
        if said.as_ref().is_err_and(anyhow::Error::is::<DaemonUnreachable>) {
            Followed::Alone.say_what_goes_on(&client, &task);
            return Ok(ExitCode::from(ending::NOT_ENDED));
        }
        let report = said?;
        let progress = field(&report, "progress");
        if !cx.json && progress != shown && !progress.is_empty() {
            eprintln!("{}", plain_line(&progress));
            shown = progress;
        }
        let status = field(&report, "status");
        if ["completed", "failed", "cancelled"].contains(&status.as_str()) {
            break status;
        }
    };
    let said = client.get(&format!("/api/v1/tasks/{}/merge", segment(&task))).await?;
    if cx.json {
        print_json(&said);
    } else {
        show(&said);
    }
    Ok(ending::exit_code(&status))
}

/// The table of a merge, and where its branch is.
pub fn show(said: &Value) {
    let merge = &said["merge"];
    let row = |entry: &Value| {
        let text = |name: &str| if entry[name].is_null() { "-".to_owned() } else { plain_line(&field(entry, name)) };
        vec![text("task_id"), text("state"), text("sent_back"), text("title"), text("why")]
    };
    let rows: Vec<Vec<String>> = merge["tasks"].as_array().into_iter().flatten().map(row).collect();
    print_table(&["TASK", "STATE", "SENT BACK", "TITLE", "WHY"], &rows);
    let (branch, head) = (plain_line(&field(merge, "branch")), field(merge, "head"));
    if merge["has_branch"] == true {
        let short = head.get(..10).unwrap_or(&head);
        say!("Branch {branch} is at {short}. Look at it with: git log -p {branch}");
        let is_any_merged = rows.iter().any(|row| row[1] == "merged");
        match merge["check"].as_str().filter(|_| is_any_merged) {
            Some(command) => say!("Each merged commit passed its check: {}", plain_line(command)),
            None if !is_any_merged => {}
            None => say!("Nothing was checked: the tasks have no check. Name one with --check COMMAND"),
        }
    } else {
        say!("Nothing was merged; there is no branch {branch}.");
    }
}
