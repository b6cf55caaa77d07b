//! `matsu demo`: the product in ten seconds with nothing configured. A store in memory, a small bundled corpus in three
//! languages, three searches, one wait; a claim that others contest; an agent that a person wakes and another that a
//! person stops; then what the waiting cost.

mod agent;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use matsu_core::clock::Clock;
use serde_json::{Value, json};

use super::{Context, field, print_json};
use crate::cli::Global;
use crate::client::Client;
use crate::config::{Config, Flags};

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

pub async fn run(global: &Global) -> Result<ExitCode> {
    let folder = Scratch::new()?;
    let cx = quiet_home(global, &folder)?;
    let client = Client::at_work(&cx.config).await?;
    let told = Told { json: cx.json };
    told.line(
        "Matsu is a server that AI agents hand slow work to. They wait for it in one call, held until there is news.\n\
         Here with nothing configured: a store in memory, nine small documents in three languages, no model, no network.",
    );
    told.line("\n1. An agent hands over three searches and waits once");

    let clock = Clock::system();
    let began = clock.instant();
    let body = json!({
        "kind": "research", "query": QUESTION, "folders": [folder.documents()], "config": { "engines": ["local"] },
    });
    let task = field(&client.post("/api/v1/tasks", body).await?, "task_id");
    let queued = client.post(&format!("/api/v1/tasks/{task}/searches"), json!({ "queries": QUERIES })).await?;
    let handed_over = clock.instant() - began;
    told.line(&format!(
        "   → queue_searches   {} searches handed over in {} ms; the agent is free meanwhile",
        queued["queued_count"],
        handed_over.as_millis()
    ));
    told.line("   → get_status       one call, held on the server until all of them have ended");
    let (status, calls) = wait(&client, &task).await?;
    let took = clock.instant() - began;
    for query in QUERIES {
        let searches = status["searches"].as_array().into_iter().flatten();
        for search in searches.filter(|search| search["query"] == query) {
            let (ended_as, pages) = (field(search, "status"), &search["pages_fetched"]);
            told.line(&format!("   ← {ended_as:<10} {pages} documents read: {query}"));
        }
    }
    let found = client.get(&format!("/api/v1/tasks/{task}/materials?limit=200&include_fragments=true")).await?;
    let contested = contested(&found);
    if let Some(claim) = &contested {
        show(&told, claim, &found["fragments"]);
    }
    let agent = agent::run(&client, &told).await?;
    let woken_ms = agent.woken_after.as_secs_f64() * 1000.0;
    let figures = json!({
        "woken_ms": woken_ms,
        "waits": calls,
        "polls": 0,
        "searches": QUERIES.len(),
        "claims": found["total"],
        "took_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    });
    told.line(&format!(
        "\n{calls} wait, 0 polls, woken in {woken_ms:.1} ms: {} searches, {} claims, {:.1} s. Asking every three seconds for \
         half an hour would be 600 calls.",
        QUERIES.len(),
        found["total"],
        took.as_secs_f64(),
    ));
    told.line("\nConnect your client:      matsu connect");
    told.line("Ask your own documents:   matsu research \"a question\" --dir FOLDER");
    if cx.json {
        print_json(&json!({ "figures": figures, "contested": contested, "agent": agent.to_json(), "status": status }));
    }
    Ok(if contested.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// For people only; programs get one object at the end.
struct Told {
    json: bool,
}

impl Told {
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

/// The claim that sources disagree about most.
fn contested(found: &Value) -> Option<Value> {
    let claims = found["claims"].as_array()?;
    let disputed = claims.iter().filter(|claim| claim["has_refutation"] == true);
    let weight = |claim: &Value| claim["controversy"].as_f64().unwrap_or(0.0);
    disputed.max_by(|left, right| weight(left).total_cmp(&weight(right))).cloned()
}

fn show(told: &Told, claim: &Value, fragments: &Value) {
    told.line(
        "\n2. It gets claims, each with the sentence and the document it comes from. Sources disagree about this one:",
    );
    told.line(&format!("   “{}”", field(claim, "text")));
    told.line(&format!("   from          {}", field(&claim["origin"], "url")));
    for edge in claim["evidence"].as_array().into_iter().flatten() {
        let word = if edge["relation"] == "supports" { "supported by" } else { "refuted by  " };
        let (title, domain) = (field(edge, "title"), field(edge, "domain"));
        let probability = edge["probability"].as_f64().unwrap_or(0.0);
        told.line(&format!("   {word}  {title} ({domain}), with probability {probability:.2}:"));
        let passage = fragments.as_array().into_iter().flatten().find(|each| each["id"] == edge["fragment_id"]);
        let text = passage.map(|passage| field(passage, "text")).unwrap_or_default();
        // A passage begins with its headings; a sentence is what ends with a full stop.
        let line = text.lines().find(|line| line.ends_with('.')).unwrap_or_default();
        told.line(&format!("                 “{}”", line.split_inclusive('.').next().unwrap_or_default()));
    }
    let figures = ["confidence", "controversy"].map(|name| claim[name].as_f64().unwrap_or(0.0));
    told.line(&format!("   so            confidence {:.3}, controversy {:.3}", figures[0], figures[1]));
}

/// A folder that goes when the demonstration does.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("matsu-demo-{}", std::process::id()));
        let scratch = Self(folder);
        std::fs::create_dir_all(scratch.documents()).context("cannot make a folder for the demonstration")?;
        for (name, text) in CORPUS {
            std::fs::write(scratch.documents().join(name), text)?;
        }
        Ok(scratch)
    }

    fn documents(&self) -> std::path::PathBuf {
        self.0.join("documents")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Nothing of the user's own is touched.
fn quiet_home(global: &Global, folder: &Scratch) -> Result<Context> {
    let global = Global { data_dir: Some(folder.0.join("data")), store: Some("memory:".to_owned()), ..global.clone() };
    let config = Config::load(&global, &Flags::default())?;
    Ok(Context { config, json: global.json })
}
