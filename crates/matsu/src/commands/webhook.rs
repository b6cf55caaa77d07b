//! `matsu webhook`: work that another service starts.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use matsu_core::limits::WEBHOOK_GAP_MIN;
use serde_json::{Map, Value, json};

use super::{Context, field, print_json, print_table};
use crate::cli::Global;
use crate::client::{Client, segment};
use crate::config::Config;
use crate::daemon::announce;

#[derive(Subcommand)]
pub enum WebhookCommand {
    /// Add a webhook: `matsu webhook add triage --github --agent claude --template "Judge the issue {{issue.title}}"`
    Add(Box<Add>),
    /// List webhooks
    List,
    /// Start a webhook's task with your own payload
    Test {
        name: String,
        /// A file with JSON; `-` reads it from stdin (default: {"test": true})
        #[arg(long, value_name = "FILE")]
        payload: Option<PathBuf>,
    },
    /// Show the deliveries to a webhook and what they started, newest first
    History { name: String },
    /// Pause a webhook; it takes no deliveries until it is resumed
    Pause { name: String },
    /// Resume a paused webhook
    Resume { name: String },
    /// Remove a webhook and drop deliveries that have not started yet; tasks that it started stay
    Remove { name: String },
}

#[derive(Args)]
pub struct Add {
    /// A name for the webhook
    name: String,
    /// Deliveries come from GitHub
    #[arg(long, conflicts_with = "gitlab")]
    github: bool,
    /// Deliveries come from GitLab. Without --github and --gitlab they are signed according to Standard Webhooks
    #[arg(long)]
    gitlab: bool,
    /// The name of the agent; see `matsu agents`
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// What the agent should do; {{issue.title}} is replaced by that field of the payload; `-` reads it from stdin
    #[arg(long, value_name = "TEXT")]
    template: String,
    /// What the agent may change: read-only (the default), workspace-write or full
    #[arg(long)]
    mode: Option<String>,
    /// The model, by the name that the agent uses for it
    #[arg(long)]
    model: Option<String>,
    /// How many seconds a run may take (default: 1800)
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
    /// The folder to work in (default: this folder)
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// A file with the secret of the sender; if it is omitted, a secret is created and shown once
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

pub async fn run(cx: &Context, global: &Global, what: WebhookCommand) -> Result<ExitCode> {
    let client = Client::with_daemon(&cx.config, global).await?;
    let path = |name: &str, more: &str| format!("/api/v1/webhooks/{}{more}", segment(name));
    match what {
        WebhookCommand::Add(add) => self::add(cx, &client, *add).await?,
        WebhookCommand::List => list(cx, &client).await?,
        WebhookCommand::Test { name, payload } => {
            let taken =
                client.post(&path(&name, "/test"), json!({ "payload": read_payload(payload.as_deref())? })).await?;
            tell(cx, &taken, &format!("stored; `matsu webhook history {name}` shows its task"));
        }
        WebhookCommand::History { name } => history(cx, &client, &path(&name, "/deliveries")).await?,
        WebhookCommand::Pause { name } => {
            let changed = client.post(&path(&name, "/pause"), json!({ "paused": true })).await?;
            tell(cx, &changed, &format!("{name} is paused"));
        }
        WebhookCommand::Resume { name } => {
            let changed = client.post(&path(&name, "/pause"), json!({ "paused": false })).await?;
            tell(cx, &changed, &format!("{name} takes deliveries again"));
        }
        WebhookCommand::Remove { name } => {
            let removed = client.delete(&path(&name, "")).await?;
            let dropped = match removed["dropped"].as_u64().unwrap_or(0) {
                0 => String::new(),
                1 => "; one delivery that had not started yet is dropped".to_owned(),
                count => format!("; {count} deliveries that had not started yet are dropped"),
            };
            tell(cx, &removed, &format!("{name} is removed{dropped}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(cx: &Context, body: &Value, line: &str) {
    if cx.json {
        print_json(body);
    } else {
        say!("{line}");
    }
}

async fn add(cx: &Context, client: &Client, args: Add) -> Result<()> {
    let mut added = client.post("/api/v1/webhooks", body(args)?).await?;
    let url = format!("{}{}", address(&cx.config), field(&added, "path"));
    added["url"] = json!(url);
    if cx.json {
        print_json(&added);
        return Ok(());
    }
    say!("url     {url}");
    say!("secret  {}", field(&added, "secret"));
    eprintln!("Give both to the sender, with the content type application/json. The secret is not shown again.");
    if cx.config.public_url().is_none() {
        eprintln!(
            "Only this machine can reach that address; docs/remote.md describes how other machines can (server.public_url)."
        );
    }
    Ok(())
}

/// Where others reach this server, or else this machine does.
fn address(config: &Config) -> String {
    let here = || announce::read_server_json(&config.paths).and_then(|server| server.address);
    config.public_url().map(|public| public.to_string()).or_else(here).unwrap_or_default()
}

fn body(args: Add) -> Result<Value> {
    let kind = match (args.github, args.gitlab) {
        (true, _) => "github",
        (_, true) => "gitlab",
        _ => "standard",
    };
    let mut template = args.template;
    if template == "-" {
        template.clear();
        std::io::stdin().read_to_string(&mut template).context("cannot read the template from stdin")?;
    }
    let folder = args.dir.unwrap_or_else(|| PathBuf::from("."));
    let folder = folder.canonicalize().with_context(|| format!("cannot find the folder {}", folder.display()))?;
    let mut run = Map::new();
    run.insert("cli_name".to_owned(), json!(args.agent));
    run.insert("message".to_owned(), json!(template));
    let optional = [("mode", json!(args.mode)), ("model", json!(args.model)), ("timeout", json!(args.timeout))];
    run.extend(
        optional.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)),
    );
    let mut body = json!({ "name": args.name, "kind": kind, "run": run, "directory": folder });
    if let Some(file) = args.secret_file {
        let secret = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        body["secret"] = json!(secret.trim());
    }
    Ok(body)
}

fn read_payload(file: Option<&Path>) -> Result<Value> {
    let Some(file) = file else { return Ok(json!({ "test": true })) };
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).context("cannot read the payload from stdin")?
    } else {
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?
    };
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))
}

async fn list(cx: &Context, client: &Client) -> Result<()> {
    let mut page = client.get("/api/v1/webhooks?limit=200").await?;
    let address = address(&cx.config);
    for webhook in page["items"].as_array_mut().into_iter().flatten() {
        webhook["url"] = json!(format!("{address}{}", field(webhook, "path")));
    }
    if cx.json {
        print_json(&page);
        return Ok(());
    }
    let row = |webhook: &Value| ["name", "kind", "paused", "url", "starts"].map(|name| field(webhook, name)).to_vec();
    let rows: Vec<Vec<String>> = page["items"].as_array().into_iter().flatten().map(row).collect();
    print_table(&["WEBHOOK", "KIND", "PAUSED", "URL", "STARTS"], &rows);
    Ok(())
}

async fn history(cx: &Context, client: &Client, path: &str) -> Result<()> {
    let page = client.get(path).await?;
    if cx.json {
        print_json(&page);
        return Ok(());
    }
    let row = |delivery: &Value| {
        let mut row = ["received_at", "key", "state", "task_id", "note"].map(|name| field(delivery, name)).to_vec();
        if delivery["state"] == "waiting" && row[4].is_empty() {
            row[4] = format!("at most one starts every {} s", WEBHOOK_GAP_MIN.as_secs());
        }
        row
    };
    let rows: Vec<Vec<String>> = page["items"].as_array().into_iter().flatten().map(row).collect();
    print_table(&["TIME", "DELIVERY", "STATE", "TASK", "NOTE"], &rows);
    Ok(())
}
