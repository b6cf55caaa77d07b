//! `matsu run AGENT MESSAGE`: gives work to an agent and follows it to its end. Ending this command ends only the
//! following; the work goes on.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use matsu_core::clock::Clock;
use serde_json::{Map, Value, json};

use super::{Context, field, print_json};
use crate::cli::Global;
use crate::client::Client;
use crate::terminal::follow::{Follow, Followed, Log};
use crate::terminal::plain_text::plain_line;
use crate::terminal::{ending, question};

#[derive(Args)]
pub struct Run {
    /// The agent's name; see `matsu agents`. `auto` chooses one
    pub agent: String,
    /// What the agent should do; `-` reads it from stdin
    pub message: String,
    /// What the agent may change: read-only, workspace-write or full
    #[arg(long)]
    pub mode: Option<String>,
    /// A name for the conversation
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Continue the conversation that --session names
    #[arg(long, requires = "session")]
    pub resume: bool,
    /// The model, by the name that the agent uses for it
    #[arg(long)]
    pub model: Option<String>,
    /// A file with a system prompt
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// How many seconds it may run; the command ends soon afterwards in any case
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub timeout: Option<u32>,
    /// How many seconds the agent may print nothing before it is ended
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub stall_timeout: Option<u32>,
    /// A command that must exit with 0 on the run's last commit before the task counts as completed
    #[arg(long, value_name = "COMMAND")]
    pub check: Option<String>,
    /// How many seconds the check may run: the check of --check or of the repository's .matsu.toml
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub check_timeout: Option<u32>,
    /// Let the check use the network
    #[arg(long)]
    pub check_network: bool,
    /// How often a failed check goes back to the agent, at most 5
    #[arg(long, value_name = "TIMES", allow_negative_numbers = true)]
    pub retries: Option<u32>,
    /// Agents to try in order if this one is not available, out of quota or fails its check; separated by commas
    #[arg(long, value_name = "AGENTS", value_delimiter = ',')]
    pub fallback: Vec<String>,
    /// How many tokens it may use, including retries, other agents and all work that it starts
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true)]
    pub budget_tokens: Option<u64>,
    /// How many dollars it may cost, counted in the same way
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    pub budget_cost: Option<f64>,
    /// Start when these tasks have completed, with their results and changes; separated by commas
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    pub after: Vec<String>,
    /// Start later: a time such as 2026-01-31T03:00:00Z, or a span such as 2h
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// Print the task's id and return at once
    #[arg(short, long)]
    pub detach: bool,
}

/// How long after the time of a run the wait for it ends: a run whose time is up is ended first, and says so.
const AFTER_TIME: Duration = Duration::from_secs(3);

pub async fn run(cx: &Context, global: &Global, args: Run) -> Result<ExitCode> {
    let (detach, clock) = (args.detach, Clock::system());
    // The time of a run that begins later is not counted from now.
    let begins_now = args.at.is_none() && args.after.is_empty();
    let until = args
        .timeout
        .filter(|_| begins_now)
        .map(|seconds| clock.instant() + Duration::from_secs(seconds.into()) + AFTER_TIME);
    let client = Client::with_daemon(&cx.config, global).await?;
    if detach && client.works_here() {
        bail!("a task in a store in memory ends with this command; omit --detach, or use another --store");
    }
    let started = client.post_from_here("/api/v1/tasks", Value::Object(wish(args)?)).await?;
    let task = field(&started, "task_id");
    if detach {
        if cx.json {
            print_json(&started);
        } else {
            say!("{task}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if cx.json {
        say!("{}", json!({ "event": "started", "task": started }));
    } else {
        eprintln!("{task}  {}. Ctrl-C ends only this display; the work continues", field(&started, "status"));
        let note = field(&started, "note");
        if !note.is_empty() {
            eprintln!("{}", plain_line(&note));
        }
    }
    let log = Log::ResultOnStdout;
    let followed = Follow { cx, client: &client, task: &task, agent: None, log, until }.run().await?;
    end(cx, &client, &task, &followed).await
}

/// Shows why a task is followed no longer, and says it by the exit code.
pub async fn end(cx: &Context, client: &Client, task: &str, followed: &Followed) -> Result<ExitCode> {
    if cx.json && *followed == Followed::Alone {
        say!("{}", json!({ "event": "daemon_ended", "task_id": task }));
        return Ok(code(followed, ""));
    }
    if cx.json {
        let report = ending::report(client, task).await?;
        say!("{}", json!({ "event": "end", "task": report }));
        return Ok(code(followed, &field(&report, "status")));
    }
    followed.say_what_goes_on(client, task);
    match followed {
        Followed::Ended(shown) => {
            let report = ending::report(client, task).await?;
            ending::show(client, task, &report, *shown).await?;
            Ok(code(followed, &field(&report, "status")))
        }
        Followed::Asks(questions) => {
            question::show_all(task, questions);
            Ok(code(followed, ""))
        }
        Followed::TimeUp | Followed::Left | Followed::Alone => Ok(code(followed, "")),
    }
}

fn code(followed: &Followed, status: &str) -> ExitCode {
    match followed {
        Followed::Ended(_) => ending::exit_code(status),
        Followed::Asks(_) => ExitCode::from(ending::ASKS),
        Followed::TimeUp | Followed::Left | Followed::Alone => ExitCode::from(ending::NOT_ENDED),
    }
}

/// The body of the request that starts it.
pub fn wish(args: Run) -> Result<Map<String, Value>> {
    let mut message = args.message;
    if message == "-" {
        message.clear();
        std::io::stdin().read_to_string(&mut message).context("cannot read the message from stdin")?;
    }
    let mut wish = Map::new();
    wish.insert("kind".to_owned(), json!("agent"));
    wish.insert("cli_name".to_owned(), json!(args.agent));
    wish.insert("message".to_owned(), json!(message));
    for (name, value) in [("mode", args.mode), ("session_id", args.session), ("model", args.model)] {
        wish.extend(value.map(|value| (name.to_owned(), json!(value))));
    }
    if args.resume {
        wish.insert("resume".to_owned(), json!(true));
    }
    wish.extend(args.timeout.map(|seconds| ("timeout".to_owned(), json!(seconds))));
    wish.extend(args.stall_timeout.map(|seconds| ("stall_timeout".to_owned(), json!(seconds))));
    wish.extend(args.at.map(|at| ("run_at".to_owned(), json!(at))));
    if !args.after.is_empty() {
        wish.insert("depends_on".to_owned(), json!(args.after));
    }
    if !args.fallback.is_empty() {
        wish.insert("fallback".to_owned(), json!(args.fallback));
    }
    if args.budget_tokens.is_some() || args.budget_cost.is_some() {
        wish.insert("budget".to_owned(), json!({ "tokens": args.budget_tokens, "cost": args.budget_cost }));
    }
    if args.check.is_some() || args.check_timeout.is_some() || args.check_network {
        // Without a command it is said about the check of the repository's own file.
        let network = args.check_network.then_some(true);
        let check = json!({ "command": args.check, "timeout": args.check_timeout, "network": network });
        wish.insert("check".to_owned(), check);
    }
    wish.extend(args.retries.map(|retries| ("retries".to_owned(), json!(retries))));
    if let Some(file) = args.system {
        let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        wish.insert("system_prompt".to_owned(), json!(text));
    }
    Ok(wish)
}
