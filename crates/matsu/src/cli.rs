//! The command line: what can be said before a command. Each command says the rest in its own file in `commands/`.

use std::path::PathBuf;

use clap::{Args, Parser};

use crate::commands::Command;

/// Hand slow work over, wait in one cheap call, lose nothing.
#[derive(Parser)]
#[command(name = "matsu", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 refused or failed; 2 the command line is wrong; \
    3 a waited-for task failed; 4 a waited-for task was cancelled; 5 the wait ended before the task did.";

#[derive(Args, Clone, Debug, Default)]
pub struct Global {
    /// Where the store, the socket and the token live
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The store: memory:, sqlite:PATH or postgres://…
    #[arg(long, global = true, value_name = "URL")]
    pub store: Option<String>,
    /// The language that people and agents are spoken to in: en, ja or ko
    #[arg(long, global = true, value_name = "LANG")]
    pub lang: Option<String>,
    /// Say more in the log; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}
<<<<<<< HEAD

#[derive(Subcommand)]
pub enum Command {
    /// Serve: HTTP, REST, the socket, and the workers
    Serve(Serve),
    /// The MCP server that a client starts, on stdin and stdout: a relay to the daemon
    Mcp(Mcp),
    /// A node with workers only, for a PostgreSQL store
    Worker(Worker),
    /// Open the web page, signed in by a link that works once
    Open(Open),
    /// List tasks, newest first
    Tasks(Tasks),
    /// Show a task; with --wait, until it has ended
    Status(Status),
    /// Stop a task
    Stop(Stop),
    /// Run a task again, as a new task
    Retry(TaskArg),
    /// Call a tool and print its answer
    Call(Call),
    /// The product in ten seconds, with nothing configured
    Demo,
    /// Research a question: search, read, weigh, and show claims with their sources
    Research(Research),
    /// Pages that need a person: list them, hand over cookies, settle them
    #[command(subcommand)]
    Auth(Auth),
    /// Correct what research found: domains, claims, evidence
    Feedback(Feedback),
    /// How far the judge can be trusted, and going back to an earlier calibration
    #[command(subcommand)]
    Calibration(Calibration),
    /// Remove evidence that no task reaches
    Gc(Gc),
    /// Write a task with its evidence, as Markdown or JSON
    Export(Export),
    /// Tell your AI client about Matsu: Claude Code, Codex, Cursor, Gemini CLI, VS Code
    Connect(Connect),
    /// What installed hooks call
    #[command(hide = true)]
    Hook { event: HookEvent },
    /// Talk to models that use tools
    Chat(Chat),
    /// Check the store, the ports and the permissions, and say what to do
    Doctor,
    /// Every bound of the system
    Limits,
    /// Copy a live store to a file
    Backup(Backup),
    /// Bring the store's schema up to date
    Migrate,
    /// Settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Named tokens for clients
    #[command(subcommand)]
    Token(TokenCommand),
    /// The AI command lines that can be given work
    Agents(Agents),
    /// Give work to an agent and follow it
    Run(Run),
    /// What a run was doing; with -f as it happens
    Logs(Logs),
    /// Put the patch of a run into the tree it came from
    Apply(Apply),
    /// The parent of one run's processes; started by the daemon, never by hand
    #[command(name = "__run", hide = true)]
    Shim,
    /// Completions for a shell
    Completions { shell: clap_complete::Shell },
}

#[derive(Args)]
pub struct Open {
    /// Only print the link
    #[arg(long)]
    pub print: bool,
}

#[derive(Args)]
pub struct Serve {
    /// The address to listen on
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// The port; 0 picks a free one
    #[arg(long)]
    pub port: Option<u16>,
    /// Keep everything in memory and forget it at the end
    #[arg(long)]
    pub ephemeral: bool,
    /// How many searches run at once
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// Open the web page in a browser
    #[arg(long)]
    pub open: bool,
    /// End after this long without work or client
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub idle_exit: Option<u64>,
    /// Leave the terminal of whoever started it
    #[arg(long, hide = true)]
    pub detach: bool,
    /// Offer the routes and job kinds that tests and benches use
    #[arg(long, hide = true)]
    pub test_jobs: bool,
    /// Speak of another version, to test the hand-over between two
    #[arg(long, value_name = "VERSION", hide = true)]
    pub as_version: Option<String>,
}

#[derive(Args)]
pub struct Mcp {
    /// Run everything in this process
    #[arg(long)]
    pub no_daemon: bool,
    /// Which tools to offer: core, all, or toolsets separated by commas
    #[arg(long, default_value = "core", value_name = "SETS")]
    pub tools: String,
    /// How many seconds this client can be held in one call
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub hold: Option<u64>,
    /// The client's project: where its agents may work. The first is where they work by default
    #[arg(long, value_name = "DIR")]
    pub root: Vec<PathBuf>,
    /// Take test jobs too
    #[arg(long, hide = true)]
    pub test_jobs: bool,
}

#[derive(Args)]
pub struct Connect {
    /// claude, codex, cursor, gemini or vscode; all that are installed, if none is named
    pub client: Option<String>,
    /// Also install hooks: unread results keep a turn going once, and a prompt brings one line of news
    #[arg(long)]
    pub hooks: bool,
    /// Take everything out again
    #[arg(long, conflicts_with = "hooks")]
    pub undo: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// When a client calls its hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HookEvent {
    /// The model wants to end its turn
    Stop,
    /// A person has written a prompt
    Prompt,
    /// A tool of the program's own has ended, in a run that Matsu started
    AfterTool,
}

#[derive(Args)]
pub struct Agents {
    /// Also ask each whether it is logged in; fails if a definition cannot be read
    #[arg(long)]
    pub check: bool,
}

#[derive(Args)]
pub struct Run {
    /// The agent's name; see `matsu agents`
    pub agent: String,
    /// What it shall do; `-` reads it from stdin
    pub message: String,
    /// What it may touch: read-only, workspace-write or full
    #[arg(long)]
    pub mode: Option<String>,
    /// A name for the conversation
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Go on with the conversation of that name
    #[arg(long, requires = "session")]
    pub resume: bool,
    #[arg(long)]
    pub model: Option<String>,
    /// A file with a system prompt
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// Seconds it may run
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u32>,
    /// Print the task's id and return at once
    #[arg(short, long)]
    pub detach: bool,
}

#[derive(Args)]
pub struct Logs {
    /// The task's id
    pub task: String,
    /// Go on until the task has ended
    #[arg(short, long)]
    pub follow: bool,
    /// Of several runs: which agent's
    #[arg(long)]
    pub agent: Option<String>,
}

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

#[derive(Args)]
pub struct Call {
    /// The tool's name
    pub tool: String,
    /// Its arguments, as a JSON object
    #[arg(default_value = "{}")]
    pub arguments: String,
}

#[derive(Args)]
pub struct Chat {
    /// Who answers when nobody is named
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Go on with a chat, by its id or its name
    #[arg(long, value_name = "CHAT")]
    pub chat: Option<String>,
    /// Which of Matsu's own tools models are offered: core, all, or toolsets separated by commas
    #[arg(long, default_value = "core", value_name = "SETS")]
    pub tools: String,
    /// Take one question from stdin, print the answer and end; with --json every event is a line
    #[arg(long)]
    pub once: bool,
    /// With --once: the system prompt
    #[arg(long, value_name = "TEXT", requires = "once")]
    pub system: Option<String>,
}

#[derive(Args)]
pub struct Worker {
    /// How many searches run at once
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// Take test jobs too
    #[arg(long, hide = true)]
    pub test_jobs: bool,
}

#[derive(Args)]
pub struct Tasks {
    /// Only this status
    #[arg(long)]
    pub status: Option<String>,
    /// Only this kind: research, agent, wait
    #[arg(long)]
    pub kind: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: u32,
    /// Those after the place where an earlier list ended
    #[arg(long, value_name = "PLACE")]
    pub after: Option<i64>,
    /// All of them, however many
    #[arg(long, conflicts_with_all = ["limit", "after"])]
    pub all: bool,
}

#[derive(Args)]
pub struct TaskArg {
    /// The task's id
    pub task: String,
}

#[derive(Args)]
pub struct Status {
    /// The task's id
    pub task: String,
    /// Wait until the task has ended
    #[arg(long)]
    pub wait: bool,
    /// With --wait: at most this many seconds
    #[arg(long, value_name = "SECONDS", requires = "wait")]
    pub timeout: Option<u64>,
}

#[derive(Args)]
pub struct Stop {
    /// The task's id
    pub task: String,
    /// End running jobs at once, without their result
    #[arg(long)]
    pub now: bool,
}

#[derive(Args)]
pub struct Backup {
    /// The file to write; must not exist
    pub file: PathBuf,
}

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Every setting, its value and where it came from
    Show,
    /// Every setting with its meaning, as Markdown
    Reference,
}

#[derive(Subcommand)]
pub enum TokenCommand {
    /// Make a token; its secret is shown once
    New { name: String },
    /// List tokens, revoked ones too
    List,
    /// Revoke a token; it opens nothing from now on
    Revoke { id: String },
}

#[derive(Args)]
pub struct Research {
    /// The question
    pub question: String,
    /// What to search for; the question itself if none is given
    #[arg(long = "query", value_name = "QUERY")]
    pub queries: Vec<String>,
    /// Search the documents in this folder
    #[arg(long = "dir", value_name = "DOCS")]
    pub folders: Vec<PathBuf>,
    /// Only these engines
    #[arg(long = "engine", value_name = "NAME")]
    pub engines: Vec<String>,
    /// Pages to be read at most
    #[arg(long, value_name = "N")]
    pub max_pages: Option<u32>,
    /// Write the report to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum Auth {
    /// Pages that wait for a person
    List,
    /// The door is open: the searches it held up go on
    Done(AuthTarget),
    /// Leave those pages out
    Skip(AuthTarget),
    /// Keep cookies for a domain, read from standard input: a Cookie header or a cookies.txt
    Cookies {
        /// The registrable domain, such as example.org
        domain: String,
    },
}

#[derive(Args)]
pub struct AuthTarget {
    /// An item's id (iq_…) or a domain
    pub target: String,
}

#[derive(Args)]
pub struct Feedback {
    /// domain_block, domain_unblock, domain_clear_override, claim_reject, claim_restore, edge_correct; none lists the log
    pub action: Option<String>,
    /// The domain pattern, claim or edge
    pub target: Option<String>,
    /// For edge_correct: supports, refutes or neutral
    #[arg(long, value_name = "RELATION")]
    pub relation: Option<String>,
    /// Why; kept in the log
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Subcommand)]
pub enum Calibration {
    /// Judges, versions and scores
    Show,
    /// Put an earlier version in force again
    #[command(disable_version_flag = true)]
    Rollback {
        /// The judge
        source: String,
        /// The version; the one before by default
        #[arg(long)]
        version: Option<u32>,
        /// Why; kept in the log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

#[derive(Args)]
pub struct Gc {
    /// Only say what would go
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args)]
pub struct Export {
    /// The task's id
    pub task: String,
    /// markdown or json
    #[arg(long, default_value = "markdown", value_parser = ["markdown", "json"])]
    pub format: String,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
=======
>>>>>>> main
