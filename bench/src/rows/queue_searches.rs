//! Handing over a hundred searches while thousands wait already.

use std::net::TcpListener;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::mcp_client::HttpClient;
use crate::measure::Percentiles;
use crate::peers::mcp_servers::Daemon;
use crate::report::{Section, grouped};
use crate::verdict::{Verdict, milliseconds};

const BATCH: usize = 100;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("queue_searches of 100 with 10,000 queued", "p99 ≤ 10 ms");
    let (waiting, samples) = (bench.size.pick(1_000, 10_000), bench.size.pick(20, 200));
    // An engine that takes calls and never answers: what is queued stays queued.
    let engine = TcpListener::bind("127.0.0.1:0")?;
    let config = format!("[research]\nsearxng = \"http://{}\"\n", engine.local_addr()?);
    let daemon = Daemon::launch_with(bench, &config)?;
    let mut client = daemon.http()?;
    let crowd = new_task(&mut client)?;
    for batch in 0..waiting / BATCH {
        queue(&mut client, &crowd, batch)?;
    }
    let mut latencies = Vec::new();
    for _ in 0..samples {
        let task = new_task(&mut client)?;
        let began = Instant::now();
        queue(&mut client, &task, 0)?;
        latencies.push(u64::try_from(began.elapsed().as_nanos())?);
    }
    let p99 = Percentiles::of(latencies.iter().copied())?.map(|found| found.p99_ns as f64);
    section.verdicts.push(Verdict::at_most(
        format!("{} queued, p99 ≤ 10 ms", grouped(waiting as f64)),
        p99,
        1e7,
        milliseconds,
    ));
    section.add_latencies(
        "The tool over HTTP, from the request to the last byte of the answer",
        &[("Matsu".to_owned(), latencies)],
    )?;
    section.notes.push(format!(
        "SQLite at its default durability, two searches running. Every call adds its hundred: at the end {} wait.",
        grouped((waiting + samples * BATCH) as f64)
    ));
    Ok(section)
}

fn call(client: &mut HttpClient, tool: &str, arguments: &Value) -> Result<Value> {
    let said = client.post(&format!("/api/v1/tools/{tool}"), &[], &arguments.to_string())?;
    ensure!(said["ok"] == true, "{tool} said {said}");
    Ok(said)
}

fn new_task(client: &mut HttpClient) -> Result<String> {
    let made = call(client, "create_task", &json!({ "query": "What waits?" }))?;
    Ok(made["task_id"].as_str().context("no task")?.to_owned())
}

fn queue(client: &mut HttpClient, task: &str, batch: usize) -> Result<()> {
    let queries: Vec<String> = (0..BATCH).map(|n| format!("query {batch} {n}")).collect();
    let wish = json!({ "task_id": task, "queries": queries, "options": { "engines": ["searxng"] } });
    let said = call(client, "queue_searches", &wish)?;
    ensure!(said["queued_count"] == BATCH, "{said}");
    Ok(())
}
