//! The commands: one file each, with its words and what they mean, and a line in each list here. Only these files print
//! to stdout.

/// `println!` for a reader that may be gone: in `matsu tasks | head` that is no error.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::commands::line(format_args!($($words)*))
    };
}

/// As `say!`, for words of others: without what a terminal would obey.
macro_rules! tell {
    ($($words:tt)*) => {
        $crate::commands::line(format_args!("{}", $crate::terminal::plain_text::plain(&format!($($words)*))))
    };
}

mod agents;
mod allow;
mod answer;
mod apply;
mod ask;
mod auth;
mod backup;
mod branches;
mod calibration;
mod call;
mod chat;
mod completions;
mod config;
mod connect;
mod demo;
mod diff;
mod discard;
mod doctor;
mod export;
mod feedback;
mod gc;
mod hook;
mod installed;
mod lasting;
mod limits;
mod logs;
mod loop_run;
pub mod mcp;
mod merge;
mod migrate;
mod notify;
mod open;
mod receipt;
mod research;
mod result;
mod retry;
mod review;
mod run;
mod schedule;
mod serve;
mod service;
mod setup;
mod shutdown;
mod status;
mod stop;
mod tasks;
mod token;
mod uninstall;
mod upgrade;
mod usage;
mod user;
mod watch;
mod webhook;
mod worker;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use serde_json::{Value, json};

use crate::cli::Global;
use crate::client::field;
use crate::config::{Config, Flags, WrongFlag};
use crate::context::Context;
use crate::{logging, relay};

/// Run slow work in the background and wait for it in one call.
#[derive(Parser)]
#[command(name = "matsu", version, propagate_version = true, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Option<Command>,
}

const AFTER_HELP: &str = "First steps: matsu setup; matsu demo; matsu open; matsu doctor.\n\nExit codes: 0 done; 1 refused or failed; 2 the command line is wrong; \
    3 a waited-for task failed; 4 a waited-for task was cancelled; 5 the wait ended before the task did; \
    6 a waited-for task asks a question.";

#[derive(Subcommand)]
pub enum Command {
    /// Run the daemon: HTTP, REST, the socket and the workers
    Serve(serve::Serve),
    /// Run the MCP server that a client starts: a relay between stdin, stdout and the daemon
    Mcp(relay::Options),
    /// Run a node with workers only, for a PostgreSQL store
    Worker(worker::Worker),
    /// Open the web page, signed in by a link that works once
    Open(open::Open),
    /// List tasks, newest first
    Tasks(tasks::Tasks),
    /// Show a task with its result, error or question; with --wait, wait first until it has ended
    Status(status::Status),
    /// Print the whole result of a task
    Result(result::Show),
    /// Answer the question of a task
    Answer(answer::AnswerArgs),
    /// Show the live list of tasks on the whole screen; with --lines, print a line for each task that ends or asks
    Watch(watch::Watch),
    /// Stop a task
    Stop(stop::Stop),
    /// End the daemon; runs of agents continue without it
    Shutdown(shutdown::Shutdown),
    /// Install, remove or show the service that starts the daemon with the machine
    #[command(subcommand)]
    Service(service::ServiceCommand),
    /// Run a task again, as a new task
    Retry(retry::Retry),
    /// Call a tool and print its answer
    Call(call::Call),
    /// Run a ten-second demonstration; needs no configuration
    Demo(demo::Demo),
    /// Research a question: search, read, and show claims with confidence and sources
    Research(research::Research),
    /// List pages that need a person to log in, store cookies, mark logins as done
    #[command(subcommand)]
    Auth(auth::Auth),
    /// Correct what research found: domains, claims, evidence
    Feedback(feedback::Feedback),
    /// Show how reliable the judge is; restore an earlier calibration
    #[command(subcommand)]
    Calibration(calibration::Calibration),
    /// Remove evidence that no task refers to any more
    Gc(gc::Gc),
    /// Write the report of a research task as Markdown, text or HTML, its sources, or all of it as JSON
    Export(export::Export),
    /// Find AI clients and agents, connect them, and start Matsu with the machine; asks first
    Setup(setup::Setup),
    /// Remove everything that setup, connect and service install wrote; with --data, delete the data too
    Uninstall(uninstall::Uninstall),
    /// Show the installed version and how to get a newer one
    Upgrade(upgrade::Upgrade),
    /// Add Matsu to your AI clients: Claude Code, Codex, Cursor, Gemini CLI, VS Code
    Connect(connect::Connect),
    /// What installed hooks call
    #[command(hide = true)]
    Hook { event: hook::HookEvent },
    /// Talk to models that use tools
    Chat(chat::Chat),
    /// Test the channels that send you messages about your tasks
    #[command(subcommand)]
    Notify(notify::NotifyCommand),
    /// Schedules start work at certain times: add, list, pause or remove them
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// Webhooks let other services start work: add, list, test, pause or remove them
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// Check the store, the daemon, the port, permissions and more, and show how to fix what is wrong
    Doctor,
    /// Show every limit of the system
    Limits,
    /// Copy a live store to a file
    Backup(backup::Backup),
    /// Bring the store's schema up to date
    Migrate,
    /// Show the settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Create, list and revoke named tokens for clients
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Add, list and remove users, and set the folders that they may use
    #[command(subcommand)]
    User(user::UserCommand),
    /// List the AI command line programs that can do work
    Agents(agents::Agents),
    /// Start a run of an agent and follow it
    Run(run::Run),
    /// Show the log of a run; with -f, follow it
    Logs(logs::Logs),
    /// Apply the changes of a run to your working tree, or undo that
    Apply(apply::Apply),
    /// Print the patch of a run
    Diff(diff::Diff),
    /// Read the patch of a run, then apply it, discard it or send it back
    Review(review::Review),
    /// Remove the branch of a run
    Discard(discard::Discard),
    /// Merge the changes of several runs into one branch that passes its check
    Merge(merge::Merge),
    /// Show the tokens and the cost of runs of agents
    Usage(usage::Usage),
    /// List branches of runs that wait for a decision
    Branches(branches::Branches),
    /// Allow what the .matsu.toml of a repository asks for
    Allow(allow::Allow),
    /// Show the receipt of a run: the result of its check; with --verify, run that check again
    Receipt(receipt::ReceiptArgs),
    /// The program of a run of the built-in agent; started by the daemon, never by hand
    #[command(name = "__loop", hide = true)]
    Loop(loop_run::Loop),
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
}

/// What `matsu` alone means: the first time on a terminal, `matsu setup`.
///
/// # Errors
/// On a terminal, the settings cannot be used.
pub fn without_arguments(global: &Global) -> Result<Option<Command>> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Ok(None);
    }
    if Config::load(global, &Flags::default())?.paths.data_dir.exists() {
        return Ok(None);
    }
    if !global.json {
        say!("{FIRST_START}");
    }
    Ok(Some(Command::Setup(setup::Setup::default())))
}

const FIRST_START: &str = "\
Matsu runs slow work for AI agents and keeps its results. This is its first start here: `matsu setup` connects your AI clients.
Nothing is written before you have seen it and agreed. An empty line takes the default; Ctrl-C ends the questions.
`matsu --help` lists all commands.
";

/// The list of commands on stderr, because a command is missing.
pub fn help() -> ExitCode {
    eprintln!("{}", Cli::command().render_help());
    ExitCode::from(2)
}

pub async fn run(global: Global, command: Command) -> Result<ExitCode> {
    match command {
        Command::Serve(args) => serve::run(&global, args).await,
        Command::Worker(args) => worker::run(&global, args).await,
        Command::Open(args) => open::run(&quiet(&global)?, &args).await,
        Command::Tasks(args) => tasks::run(&quiet(&global)?, args).await,
        Command::Status(args) => status::run(&quiet(&global)?, &global, args).await,
        Command::Result(args) => result::run(&quiet(&global)?, &args).await,
        Command::Answer(args) => answer::run(&quiet(&global)?, &args).await,
        Command::Watch(args) => watch::run(&quiet(&global)?, &global, &args).await,
        Command::Stop(args) => stop::run(&quiet(&global)?, &global, args).await,
        Command::Shutdown(args) => shutdown::run(&quiet(&global)?, &args).await,
        Command::Service(what) => service::run(&quiet(&global)?, &global, &what),
        Command::Retry(args) => retry::run(&quiet(&global)?, &global, args).await,
        Command::Call(args) => call::run(&quiet(&global)?, &global, args).await,
        Command::Demo(args) => demo::run(&global, &args).await,
        Command::Research(args) => research::run(&quiet(&global)?, args).await,
        Command::Auth(what) => auth::run(&quiet(&global)?, what).await,
        Command::Feedback(args) => feedback::run(&quiet(&global)?, args).await,
        Command::Calibration(what) => calibration::run(&quiet(&global)?, what).await,
        Command::Gc(args) => gc::run(&quiet(&global)?, args).await,
        Command::Export(args) => export::run(&quiet(&global)?, args).await,
        Command::Setup(args) => setup::run(&quiet(&global)?, &global, &args),
        Command::Uninstall(args) => uninstall::run(&quiet(&global)?, &args).await,
        Command::Upgrade(args) => upgrade::run(&quiet(&global)?, &args).await,
        Command::Connect(args) => connect::run(&quiet(&global)?, &global, &args),
        Command::Hook { event } => hook::run(&quiet(&global)?, event).await,
        Command::Chat(args) => chat::run(&quiet(&global)?, &global, args).await,
        Command::Schedule(what) => schedule::run(&quiet(&global)?, &global, what).await,
        Command::Webhook(what) => webhook::run(&quiet(&global)?, &global, what).await,
        Command::Notify(what) => notify::run(&quiet(&global)?, &what).await,
        Command::Doctor => doctor::run(&quiet(&global)?).await,
        Command::Limits => limits::run(&quiet(&global)?),
        Command::Backup(args) => backup::run(&quiet(&global)?, args).await,
        Command::Migrate => migrate::run(&quiet(&global)?).await,
        Command::Config(what) => config::run(&quiet(&global)?, &what).await,
        Command::Token(what) => token::run(&quiet(&global)?, what).await,
        Command::User(what) => user::run(&quiet(&global)?, what).await,
        // Taken by `main`, before there is a runtime.
        Command::Mcp(_) => Ok(ExitCode::FAILURE),
        Command::Loop(args) => loop_run::run(&quiet(&global)?, args).await,
        Command::Agents(args) => agents::run(&quiet(&global)?, &args).await,
        Command::Run(args) => run::run(&quiet(&global)?, &global, args).await,
        Command::Logs(args) => logs::run(&quiet(&global)?, &global, &args).await,
        Command::Apply(args) => apply::run(&quiet(&global)?, &global, &args).await,
        Command::Diff(args) => diff::run(&quiet(&global)?, &global, args).await,
        Command::Review(args) => review::run(&quiet(&global)?, &global, args).await,
        Command::Discard(args) => discard::run(&quiet(&global)?, &args).await,
        Command::Merge(args) => merge::run(&quiet(&global)?, &global, args).await,
        Command::Usage(args) => usage::run(&quiet(&global)?, &args).await,
        Command::Branches(args) => branches::run(&quiet(&global)?, &args).await,
        Command::Allow(args) => allow::run(&quiet(&global)?, &args),
        Command::Receipt(args) => receipt::run(&quiet(&global)?, &global, &args).await,
        Command::Completions { shell } => completions::run(shell),
    }
}

/// A short command logs only what went wrong, unless asked for more.
fn quiet(global: &Global) -> Result<Context> {
    let config = Config::load(global, &Flags::default())?;
    if global.verbose > 0 {
        logging::start(&config, global.verbose);
    }
    Ok(Context { config, json: global.json })
}

/// An error for people on stderr, or for programs on stdout.
pub fn fail(error: &anyhow::Error, json: bool) -> ExitCode {
    let text = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    if json {
        say!("{}", json!({ "ok": false, "error": text }));
    } else {
        eprintln!("matsu: {text}");
    }
    if error.is::<WrongFlag>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// One line on stdout. If it cannot be written, there is no place to report that.
fn line(words: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{words}");
}

/// Prints a value as it is.
fn print_json(value: &Value) {
    say!("{value:#}");
}

/// The id of a task as a person types it.
fn task_id(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the id of the task is empty; expected an id such as task_01…; `matsu tasks` lists them".to_owned());
    }
    Ok(text.to_owned())
}

/// The widest cell that a column is made for.
const CELL: usize = 50;

/// Prints rows in columns as wide as they must be.
fn print_table(head: &[&str], rows: &[Vec<String>]) {
    // A longer cell makes its own line longer, and no other.
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.filter(|count| *count <= CELL).chain([head[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    say!("{}", line(head.to_vec()));
    for row in rows {
        say!("{}", line(row.iter().map(String::as_str).collect()));
    }
}
