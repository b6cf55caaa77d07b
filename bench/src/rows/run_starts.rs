//! How soon the program of a run begins, by how it is confined: from the request to the moment in which the program
//! has opened a pipe. Beside it the same program, started by nothing but the operating system.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::mcp_client::{HttpClient, McpClient};
use crate::measure::Percentiles;
use crate::peers::mcp_servers::Daemon;
use crate::report::Section;
use crate::verdict::{Verdict, milliseconds};

const SHELL: &str = "name = \"shell\"\ncommand = \"/bin/sh\"\nprompt = \"stdin\"\noutput = \"text\"\n";
const LEVELS: [&str; 3] = ["sealed", "fenced", "open"];
const SEALED_MAX_NS: f64 = 60e6;
/// Runs whose times are not counted: the first one makes folders that the others find.
const WARM_UP: usize = 3;

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Start of a run", "sealed: the program runs within 60 ms of the request, p99");
    let samples = bench.size.pick(20, 200);
    let mut all = vec![("sh, bare".to_owned(), bare(bench, samples)?)];
    for level in LEVELS {
        let latencies = confined(bench, level, samples)?;
        if level == "sealed" {
            let p99 = Percentiles::of(latencies.iter().copied())?.map(|found| found.p99_ns as f64);
            section.verdicts.push(Verdict::at_most("sealed, p99 ≤ 60 ms".to_owned(), p99, SEALED_MAX_NS, milliseconds));
        }
        all.push((level.to_owned(), latencies));
    }
    section.add_latencies("use_agent(run_async): from the request until the program has opened its pipe", &all)?;
    section.notes.push(
        "Over HTTP, SQLite at its default durability, one run at a time in a folder without a repository. The time \
         holds the request, the transaction that queues the run, its claim, the supervisor process and what confines \
         the program."
            .to_owned(),
    );
    Ok(section)
}

fn bare(bench: &Bench, samples: usize) -> Result<Vec<u64>> {
    let folder = bench.fresh_folder()?;
    let pipe = pipe_in(&folder)?;
    let mut latencies = Vec::with_capacity(samples);
    for _ in 0..samples {
        let began = Instant::now();
        let mut child =
            Command::new("/bin/sh").arg("-c").arg("exec cat go").current_dir(&folder).stdout(Stdio::null()).spawn()?;
        let held = OpenOptions::new().write(true).open(&pipe)?;
        latencies.push(u64::try_from(began.elapsed().as_nanos())?);
        drop(held);
        ensure!(child.wait()?.success(), "the program failed");
    }
    Ok(latencies)
}

fn confined(bench: &Bench, level: &str, samples: usize) -> Result<Vec<u64>> {
    let folder = bench.fresh_folder()?;
    let pipe = pipe_in(&folder)?;
    let config = format!("[agents]\nconfine = \"{level}\"\nroots = \"{}\"\n", folder.display());
    let daemon = Daemon::launch_with_agent(bench, &config, Some(("shell", SHELL)))?;
    let mut client = daemon.http()?;
    let mut latencies = Vec::with_capacity(samples);
    for sample in 0..WARM_UP + samples {
        let wish =
            json!({ "cli_name": "shell", "message": "exec cat go", "run_async": true, "working_directory": folder });
        let began = Instant::now();
        let said = tool(&mut client, "use_agent", wish)?;
        let task = said["task_id"].as_str().with_context(|| format!("no task: {said}"))?;
        // Returns when the program has opened it as well.
        let held = OpenOptions::new().write(true).open(&pipe)?;
        if sample >= WARM_UP {
            latencies.push(u64::try_from(began.elapsed().as_nanos())?);
        }
        ensure!(said["confinement"] == level, "the run is not {level}: {said}");
        drop(held);
        let wish = json!({ "task_id": task, "timeout": 30, "wait_for": "all", "since": 1 });
        let ended = tool(&mut client, "get_task_status", wish)?;
        ensure!(ended["status"] == "completed", "the run is not completed: {ended}");
    }
    Ok(latencies)
}

fn pipe_in(folder: &Path) -> Result<std::path::PathBuf> {
    let pipe = folder.join("go");
    ensure!(Command::new("mkfifo").arg(&pipe).status()?.success(), "no pipe could be made");
    Ok(pipe)
}

fn tool(client: &mut HttpClient, name: &str, arguments: Value) -> Result<Value> {
    Ok(client.ask("tools/call", json!({ "name": name, "arguments": arguments }))?["structuredContent"].clone())
}
