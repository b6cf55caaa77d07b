//! `matsu demo`: the product in ten seconds with nothing configured. A store in memory, a small bundled corpus in three
//! languages, three searches, one wait; a claim that others contest; an agent that a person wakes and another that a
//! person stops; then what the waiting cost.

mod agent;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use matsu_core::clock::Clock;
use serde_json::{Value, json};

use super::{Context, field, print_json};
use crate::cli::Global;
use crate::client::Client;
use crate::config::{Config, Flags};
use crate::private_files::make_private_folder;

/// The corpus: written for this demonstration.
const CORPUS: &[(&str, &str)] = &[
    ("waiting-lab.md", include_str!("../../demo/waiting-lab.md")),
    ("field-notes.md", include_str!("../../demo/field-notes.md")),
    ("sceptic.md", include_str!("../../demo/sceptic.md")),
    ("queue-survives.md", include_str!("../../demo/queue-survives.md")),
    ("queue-memory.md", include_str!("../../demo/queue-memory.md")),
    ("machi.ja.md", include_str!("../../demo/machi.ja.md")),
    ("gyouretsu.ja.md", include_str!("../../demo/gyouretsu.ja.md")),
    ("daegi.ko.md", include_str!("../../demo/daegi.ko.md")),
    ("jageop.ko.md", include_str!("../../demo/jageop.ko.md")),
];

const QUESTION: &str = "Does long polling reduce token use?";
const QUERIES: [&str; 3] = ["long polling reduces token use", "待ち行列 データベース 仕事", "대기열 데이터베이스 작업"];

#[derive(Args)]
pub struct Demo {
    /// Use your own store and keep the example there; the page shows it
    #[arg(long)]
    pub keep: bool,
}

pub async fn run(global: &Global, args: &Demo) -> Result<ExitCode> {
    let (cx, client, folder) = open(global, args).await?;
    let narrator = Narrator { json: cx.json };
    narrator.line(
        "Matsu is a server that runs slow work for AI agents. They wait for it in one call, which returns when something changes.",
    );
    let place = if args.keep { "your own store" } else { "a store in memory" };
    narrator.line(&format!(
        "This demonstration uses {place} and nine small documents in three languages, no model and no network."
    ));
    narrator.line("\n1. An agent queues three searches and waits once");

    let clock = Clock::system();
    let began = clock.instant();
    let body = json!({
        "kind": "research", "query": QUESTION, "folders": [folder.documents()], "config": { "engines": ["local"] },
    });
    let task = field(&client.post("/api/v1/tasks", body).await?, "task_id");
    let queued = client.post(&format!("/api/v1/tasks/{task}/searches"), json!({ "queries": QUERIES })).await?;
    let handed_over = clock.instant() - began;
    narrator.line(&format!(
        "   → queue_searches   {} searches queued in {} ms; the agent can do other work",
        queued["queued_count"],
        handed_over.as_millis()
    ));
    narrator.line("   → get_status       one call, which waits on the server until all searches have ended");
    let (status, calls) = wait(&client, &task).await?;
    let took = clock.instant() - began;
    show_searches(&narrator, &status);
    let mut found = materials(&client, &task).await?;
    let by_person = contested(&found).is_none() && mark(&client, &found).await?;
    if by_person {
        found = materials(&client, &task).await?;
    }
    let contested = contested(&found);
    if let Some(claim) = &contested {
        show(&narrator, claim, &found["fragments"], by_person);
    }
    // In a store that is kept, the agents of an earlier demonstration have their names already.
    let names = if args.keep { format!("-{}", task.chars().rev().take(6).collect::<String>()) } else { String::new() };
    let agent = agent::run(&client, &narrator, &names).await?;
    let woken_ms = agent.woken_after.as_secs_f64() * 1000.0;
    let figures = json!({
        "woken_ms": woken_ms,
        "waits": calls,
        "polls": 0,
        "searches": QUERIES.len(),
        "claims": found["total"],
        "took_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    });
    narrator.line(&format!(
        "\n{calls} wait, 0 polls; the message reached the agent in {woken_ms:.1} ms; {} searches, {} claims, {:.1} s. Asking every three seconds for \
         half an hour would be 600 calls.",
        QUERIES.len(),
        found["total"],
        took.as_secs_f64(),
    ));
    narrator.line("");
    if args.keep {
        narrator.line("See it on the page:       matsu open");
    }
    narrator.line("Connect your client:      matsu connect");
    narrator.line("Ask your own documents:   matsu research \"a question\" --dir FOLDER");
    if cx.json {
        print_json(&json!({ "figures": figures, "contested": contested, "agent": agent.to_json(), "status": status }));
    }
    Ok(if contested.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Opens the store of the demonstration: a store in memory, or the user's.
async fn open(global: &Global, args: &Demo) -> Result<(Context, Client, Documents)> {
    let own = args.keep.then(|| Config::load(global, &Flags::default())).transpose()?;
    let folder = match &own {
        Some(config) => Documents::kept(&config.paths.data_dir)?,
        None => Documents::scratch()?,
    };
    match own {
        Some(config) => {
            let client = Client::with_daemon(&config, global).await?;
            Ok((Context { config, json: global.json }, client, folder))
        }
        None => {
            let cx = quiet_home(global, &folder)?;
            let client = Client::at_work(&cx.config).await?;
            Ok((cx, client, folder))
        }
    }
}

fn show_searches(narrator: &Narrator, status: &Value) {
    for query in QUERIES {
        let searches = status["searches"].as_array().into_iter().flatten();
        for search in searches.filter(|search| search["query"] == query) {
            let (ended_as, pages) = (field(search, "status"), &search["pages_fetched"]);
            narrator.line(&format!("   ← {ended_as:<10} {pages} documents read: {query}"));
        }
    }
}

/// For people only; programs get one object at the end.
struct Narrator {
    json: bool,
}

impl Narrator {
    fn line(&self, text: &str) {
        if !self.json {
            say!("{text}");
        }
    }
}

/// Waits until nothing is left to do, and counts the calls that took.
async fn wait(client: &Client, task: &str) -> Result<(Value, u32)> {
    let mut calls = 0;
    loop {
        calls += 1;
        let path = format!("/api/v1/tasks/{task}/searches?wait=50&wait_for=all&since=1");
        let status = client.get(&path).await?;
        if matches!(status["returned_because"].as_str(), Some("idle" | "terminal")) {
            let whole = client.get(&format!("/api/v1/tasks/{task}/searches")).await?;
            return Ok((whole, calls));
        }
    }
}

async fn materials(client: &Client, task: &str) -> Result<Value> {
    client.get(&format!("/api/v1/tasks/{task}/materials?limit=200&include_fragments=true&detail=full")).await
}

/// What a person marks: a claim of one document, and what two others say about it.
const MARKED_IN: &str = "/waiting-lab.md";
const MARKED: [(&str, &str); 2] = [("/field-notes.md", "supports"), ("/sceptic.md", "refutes")];

/// The embedded judge takes no side where it is not precise enough; a person who has read the passages does. `false`:
/// there was nothing to mark.
async fn mark(client: &Client, found: &Value) -> Result<bool> {
    let claims = found["claims"].as_array().into_iter().flatten();
    let claims = claims.filter(|claim| field(&claim["origin"], "url").ends_with(MARKED_IN));
    let edges = |claim: &Value| -> Vec<(String, &'static str)> {
        let evidence = claim["evidence"].as_array().cloned().unwrap_or_default();
        let edge_of = |file: &str| evidence.iter().find(|edge| field(edge, "url").ends_with(file));
        MARKED.iter().filter_map(|(file, relation)| Some((field(edge_of(file)?, "edge_id"), *relation))).collect()
    };
    let Some(edges) = claims.map(edges).find(|edges| edges.len() == MARKED.len()) else { return Ok(false) };
    for (edge_id, relation) in edges {
        let body = json!({
            "action": "edge_correct", "edge_id": edge_id, "correct_relation": relation, "reason": "read it",
        });
        client.post("/api/v1/feedback", body).await?;
    }
    Ok(true)
}

/// The claim that sources disagree about most.
fn contested(found: &Value) -> Option<Value> {
    let claims = found["claims"].as_array()?;
    let disputed = claims.iter().filter(|claim| claim["has_refutation"] == true);
    let weight = |claim: &Value| claim["controversy"].as_f64().unwrap_or(0.0);
    disputed.max_by(|left, right| weight(left).total_cmp(&weight(right))).cloned()
}

fn show(narrator: &Narrator, claim: &Value, fragments: &Value, by_person: bool) {
    narrator.line(
        "\n2. It gets claims, each with the sentence and the document it comes from. Sources disagree about this one:",
    );
    if by_person {
        narrator.line("   (no model judged the passages; a person marked what two of them say)");
    }
    narrator.line(&format!("   “{}”", field(claim, "text")));
    narrator.line(&format!("   from          {}", field(&claim["origin"], "url")));
    let telling = claim["evidence"].as_array().into_iter().flatten().filter(|edge| edge["relation"] != "neutral");
    for edge in telling {
        let word = if edge["relation"] == "supports" { "supported by" } else { "refuted by  " };
        let (title, domain) = (field(edge, "title"), field(edge, "domain"));
        let probability = edge["probability"].as_f64().unwrap_or(0.0);
        narrator.line(&format!("   {word}  {title} ({domain}), with probability {probability:.2}:"));
        let passage = fragments.as_array().into_iter().flatten().find(|each| each["id"] == edge["fragment_id"]);
        let text = passage.map(|passage| field(passage, "text")).unwrap_or_default();
        // A passage begins with its headings; a sentence is what ends with a full stop.
        let line = text.lines().find(|line| line.ends_with('.')).unwrap_or_default();
        narrator.line(&format!("                 “{}”", line.split_inclusive('.').next().unwrap_or_default()));
    }
    let figures = ["confidence", "controversy"].map(|name| claim[name].as_f64().unwrap_or(0.0));
    narrator.line(&format!("   so            confidence {:.3}, controversy {:.3}", figures[0], figures[1]));
}

/// The folder of the documents.
struct Documents {
    folder: PathBuf,
    /// Removed when the demonstration ends.
    is_scratch: bool,
}

impl Documents {
    fn scratch() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("matsu-demo-{}", std::process::id()));
        Self::write(Self { folder, is_scratch: true })
    }

    /// In the data directory: the page leads to the documents afterwards.
    fn kept(data_dir: &Path) -> Result<Self> {
        make_private_folder(data_dir)?;
        Self::write(Self { folder: data_dir.join("demo"), is_scratch: false })
    }

    fn write(self) -> Result<Self> {
        std::fs::create_dir_all(self.documents()).context("cannot make a folder for the demonstration")?;
        for (name, text) in CORPUS {
            std::fs::write(self.documents().join(name), text)?;
        }
        Ok(self)
    }

    fn documents(&self) -> PathBuf {
        self.folder.join("documents")
    }
}

impl Drop for Documents {
    fn drop(&mut self) {
        if self.is_scratch {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Nothing of the user's own is touched.
fn quiet_home(global: &Global, folder: &Documents) -> Result<Context> {
    let global =
        Global { data_dir: Some(folder.folder.join("data")), store: Some("memory:".to_owned()), ..global.clone() };
    let config = Config::load(&global, &Flags::default())?;
    Ok(Context { config, json: global.json })
}
