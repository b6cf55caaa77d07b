//! The commands: one file each, with its words and what they mean, and a line in each list here. Only these files print
//! to stdout.

/// `println!` for a reader that may be gone: in `matsu tasks | head` that is no error.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::commands::line(format_args!($($words)*))
    };
}

mod agents;
mod apply;
mod auth;
mod backup;
mod calibration;
mod call;
mod chat;
mod completions;
mod config;
mod connect;
mod demo;
mod doctor;
mod export;
mod feedback;
mod gc;
mod hook;
mod limits;
mod logs;
mod loop_run;
pub mod mcp;
mod migrate;
mod open;
mod research;
mod retry;
mod run;
mod serve;
mod service;
mod shutdown;
mod status;
mod stop;
mod tasks;
mod token;
mod user;
mod worker;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use crate::cli::{Cli, Global};
use crate::config::{Config, Flags};
use crate::logging;

/// What every command is given.
pub struct Context {
    pub config: Config,
    pub json: bool,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve: HTTP, REST, the socket, and the workers
    Serve(serve::Serve),
    /// The MCP server that a client starts, on stdin and stdout: a relay to the daemon
    Mcp(mcp::Mcp),
    /// A node with workers only, for a PostgreSQL store
    Worker(worker::Worker),
    /// Open the web page, signed in by a link that works once
    Open(open::Open),
    /// List tasks, newest first
    Tasks(tasks::Tasks),
    /// Show a task; with --wait, until it has ended
    Status(status::Status),
    /// Stop a task
    Stop(stop::Stop),
    /// End the daemon; runs of agents go on without it
    Shutdown(shutdown::Shutdown),
    /// Start the daemon with the machine
    #[command(subcommand)]
    Service(service::ServiceCommand),
    /// Run a task again, as a new task
    Retry(retry::Retry),
    /// Call a tool and print its answer
    Call(call::Call),
    /// The product in ten seconds, with nothing configured
    Demo,
    /// Research a question: search, read, weigh, and show claims with their sources
    Research(research::Research),
    /// Pages that need a person: list them, hand over cookies, settle them
    #[command(subcommand)]
    Auth(auth::Auth),
    /// Correct what research found: domains, claims, evidence
    Feedback(feedback::Feedback),
    /// How far the judge can be trusted, and going back to an earlier calibration
    #[command(subcommand)]
    Calibration(calibration::Calibration),
    /// Remove evidence that no task reaches
    Gc(gc::Gc),
    /// Write a task with its evidence, as Markdown or JSON
    Export(export::Export),
    /// Tell your AI client about Matsu: Claude Code, Codex, Cursor, Gemini CLI, VS Code
    Connect(connect::Connect),
    /// What installed hooks call
    #[command(hide = true)]
    Hook { event: hook::HookEvent },
    /// Talk to models that use tools
    Chat(chat::Chat),
    /// Check the store, the ports and the permissions, and say what to do
    Doctor,
    /// Every bound of the system
    Limits,
    /// Copy a live store to a file
    Backup(backup::Backup),
    /// Bring the store's schema up to date
    Migrate,
    /// Settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Named tokens for clients
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Users beside you, and the folders they were given
    #[command(subcommand)]
    User(user::UserCommand),
    /// The AI command lines that can be given work
    Agents(agents::Agents),
    /// Give work to an agent and follow it
    Run(run::Run),
    /// What a run was doing; with -f as it happens
    Logs(logs::Logs),
    /// Put the patch of a run into the tree it came from
    Apply(apply::Apply),
    /// The parent of one run's processes; started by the daemon, never by hand
    #[command(name = "__run", hide = true)]
    Shim,
    /// The supervisor of one run, in its folder; started by the daemon, never by hand
    #[command(name = "__supervise", hide = true)]
    Supervise { folder: std::path::PathBuf },
    /// A process that reads documents; started by the daemon, never by hand
    #[command(name = "__read", hide = true)]
    Read,
    /// Enters the namespaces of one run; started by the supervisor of a run, never by hand
    #[command(name = "__seal", hide = true)]
    Seal {
        #[arg(long)]
        no_network: bool,
    },
    /// Tries namespaces inside those of a run; never started by hand
    #[command(name = "__nest", hide = true)]
    Nest,
    /// The first process in those namespaces; never started by hand
    #[command(name = "__init", hide = true)]
    Init,
    /// Restricts itself by Landlock and becomes the program of a run; never started by hand
    #[command(name = "__fence", hide = true)]
    Fence,
    /// The program of a run of the built-in agent; started by the daemon, never by hand
    #[command(name = "__loop", hide = true)]
    Loop(loop_run::Loop),
    /// Completions for a shell
    Completions { shell: clap_complete::Shell },
}

pub async fn run(cli: Cli) -> Result<ExitCode> {
    let Cli { global, command } = cli;
    match command {
        Command::Serve(args) => serve::run(&global, args).await,
        Command::Worker(args) => worker::run(&global, args).await,
        Command::Open(args) => open::run(&quiet(&global)?, &args).await,
        Command::Tasks(args) => tasks::run(&quiet(&global)?, args).await,
        Command::Status(args) => status::run(&quiet(&global)?, args).await,
        Command::Stop(args) => stop::run(&quiet(&global)?, args).await,
        Command::Shutdown(args) => shutdown::run(&quiet(&global)?, &args).await,
        Command::Service(what) => service::run(&quiet(&global)?, &global, &what),
        Command::Retry(args) => retry::run(&quiet(&global)?, args).await,
        Command::Call(args) => call::run(&quiet(&global)?, &global, args).await,
        Command::Demo => demo::run(&global).await,
        Command::Research(args) => research::run(&quiet(&global)?, args).await,
        Command::Auth(what) => auth::run(&quiet(&global)?, what).await,
        Command::Feedback(args) => feedback::run(&quiet(&global)?, args).await,
        Command::Calibration(what) => calibration::run(&quiet(&global)?, what).await,
        Command::Gc(args) => gc::run(&quiet(&global)?, args).await,
        Command::Export(args) => export::run(&quiet(&global)?, args).await,
        Command::Connect(args) => connect::run(&quiet(&global)?, &global, &args),
        Command::Hook { event } => hook::run(&quiet(&global)?, event).await,
        Command::Chat(args) => chat::run(&quiet(&global)?, &global, args).await,
        Command::Doctor => doctor::run(&quiet(&global)?).await,
        Command::Limits => limits::run(&quiet(&global)?),
        Command::Backup(args) => backup::run(&quiet(&global)?, args).await,
        Command::Migrate => migrate::run(&quiet(&global)?).await,
        Command::Config(what) => config::run(&quiet(&global)?, &what),
        Command::Token(what) => token::run(&quiet(&global)?, what).await,
        Command::User(what) => user::run(&quiet(&global)?, what).await,
        // Taken by `main`, before there is a runtime.
        Command::Shim
        | Command::Supervise { .. }
        | Command::Read
        | Command::Seal { .. }
        | Command::Nest
        | Command::Init
        | Command::Fence
        | Command::Mcp(_) => Ok(ExitCode::FAILURE),
        Command::Loop(args) => loop_run::run(&quiet(&global)?, args).await,
        Command::Agents(args) => agents::run(&quiet(&global)?, &args).await,
        Command::Run(args) => run::run(&quiet(&global)?, args).await,
        Command::Logs(args) => logs::run(&quiet(&global)?, &args).await,
        Command::Apply(args) => apply::run(&quiet(&global)?, &args).await,
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
    ExitCode::FAILURE
}

/// One line on stdout. Nobody is left to be told if it cannot be written.
fn line(words: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{words}");
}

/// Prints a value as it is.
fn print_json(value: &Value) {
    say!("{value:#}");
}

/// Prints rows in columns as wide as they must be.
fn print_table(head: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].chars().count()]).max().unwrap_or(0)
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

/// A field of an answer, as text.
fn field(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
