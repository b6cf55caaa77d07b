//! Runs of agents: a start without a wait while the limit of runs is reached, and the end of a run that a client waits
//! for. The program is a shell that does what its message says.

mod following;

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::mcp_client::{HttpClient, McpClient};
use crate::measure::Percentiles;
use crate::peers::mcp_servers::Daemon;
use crate::report::Section;
use crate::verdict::{Verdict, milliseconds};

const SHELL: &str = "name = \"shell\"\ncommand = \"/bin/sh\"\nprompt = \"stdin\"\noutput = \"text\"\n";
/// As many as run at once by default.
const PLACES: usize = 5;
const BUSY_MAX: Duration = Duration::from_secs(30);
/// Several times what it takes a request to be read and parked.
const SETTLE: Duration = Duration::from_millis(20);

pub fn run(bench: &Bench) -> Result<Section> {
    let bars = "start p99 ≤ 20 ms with all places taken; the end of a run reaches a waiting call within 50 ms, p99";
    let mut section = Section::new("Runs of agents", bars);
    let started = starts(bench, bench.size.pick(50, 500))?;
    add(
        &mut section,
        "start",
        "use_agent(run_async) with all places taken: from the request to its answer",
        started,
        20,
    )?;
    let ended = ends(bench, bench.size.pick(20, 200))?;
    let caption = "get_task_status(timeout): from the end of the program's input to the answer";
    add(&mut section, "end", caption, ended, 50)?;
    following::add(&mut section, bench)?;
    section.notes.push(
        "Over HTTP, SQLite at its default durability. A start is queued behind all that were started before. The end \
         holds all that lies between: the program's own exit, its shim that looks whether anything is left of its \
         tree, and the transaction that settles the run."
            .to_owned(),
    );
    section.notes.push(
        "Following: what a program prints goes into the supervisor's spool, from there into the store in parts, and can be \
         read as soon as a part is committed; the supervisor's and the daemon's time count, the program's does not. The \
         plain pipe is the least that anything can cost that looks at each line."
            .to_owned(),
    );
    Ok(section)
}

fn add(section: &mut Section, what: &str, caption: &str, latencies: Vec<u64>, bar_ms: u32) -> Result<()> {
    let p99 = Percentiles::of(latencies.iter().copied())?.map(|found| found.p99_ns as f64);
    let bar_ns = f64::from(bar_ms) * 1e6;
    section.verdicts.push(Verdict::at_most(format!("{what}, p99 ≤ {bar_ms} ms"), p99, bar_ns, milliseconds));
    section.add_latencies(caption, &[("Matsu".to_owned(), latencies)])
}

fn starts(bench: &Bench, samples: usize) -> Result<Vec<u64>> {
    let folder = bench.fresh_folder()?;
    let daemon = daemon(bench, &folder)?;
    let mut client = daemon.http()?;
    for _ in 0..PLACES {
        let task = start(&mut client, &folder, "sleep 3600")?;
        let began = Instant::now();
        while status(&mut client, &task, 0)? != "running" {
            ensure!(began.elapsed() < BUSY_MAX, "the places are not taken");
            std::thread::sleep(SETTLE);
        }
    }
    let mut latencies = Vec::with_capacity(samples);
    for _ in 0..samples {
        let began = Instant::now();
        let task = start(&mut client, &folder, "true")?;
        latencies.push(u64::try_from(began.elapsed().as_nanos())?);
        ensure!(status(&mut client, &task, 0)? == "queued", "a place was free");
    }
    Ok(latencies)
}

fn ends(bench: &Bench, samples: usize) -> Result<Vec<u64>> {
    let folder = bench.fresh_folder()?;
    let daemon = daemon(bench, &folder)?;
    ensure!(Command::new("mkfifo").arg(folder.join("go")).status()?.success(), "no pipe could be made");
    (0..samples).map(|_| end(&daemon, &folder)).collect()
}

/// A run that ends when its pipe does, and the call that waits for it.
fn end(daemon: &Daemon, folder: &Path) -> Result<u64> {
    let (mut starter, mut waiter) = (daemon.http()?, daemon.http()?);
    let task = start(&mut starter, folder, "exec cat go")?;
    // Returns when the program has opened it as well.
    let held = OpenOptions::new().write(true).open(folder.join("go"))?;
    let waiting = std::thread::spawn(move || -> Result<(String, Instant)> {
        let status = status(&mut waiter, &task, 30)?;
        Ok((status, Instant::now()))
    });
    std::thread::sleep(SETTLE);
    let ended = Instant::now();
    drop(held);
    let (status, answered) = waiting.join().ok().context("the waiter broke")??;
    ensure!(status == "completed", "the run is {status}");
    Ok(u64::try_from(answered.saturating_duration_since(ended).as_nanos())?)
}

/// A daemon whose runs work in a folder. They are confined as by default, and see no other place.
fn daemon(bench: &Bench, folder: &Path) -> Result<Daemon> {
    let config = format!("[agents]\nroots = \"{}\"\n", folder.display());
    Daemon::launch_with_agent(bench, &config, Some(("shell", SHELL)))
}

fn start(client: &mut HttpClient, folder: &Path, script: &str) -> Result<String> {
    let wish = json!({ "cli_name": "shell", "message": script, "run_async": true, "working_directory": folder });
    let said = tool(client, "use_agent", wish)?;
    Ok(said["task_id"].as_str().with_context(|| format!("no task: {said}"))?.to_owned())
}

fn status(client: &mut HttpClient, task: &str, seconds: u64) -> Result<String> {
    let wish = json!({ "task_id": task, "timeout": seconds, "wait_for": "all", "since": 1 });
    let said = tool(client, "get_task_status", wish)?;
    Ok(said["status"].as_str().with_context(|| format!("no status: {said}"))?.to_owned())
}

fn tool(client: &mut HttpClient, name: &str, arguments: Value) -> Result<Value> {
    Ok(client.ask("tools/call", json!({ "name": name, "arguments": arguments }))?["structuredContent"].clone())
}
