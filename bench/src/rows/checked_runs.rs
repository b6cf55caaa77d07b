//! Runs in a repository of their own: how soon the program begins in a large one, beside `git worktree add`, and what a
//! check that does nothing adds to a run.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::mcp_client::{HttpClient, McpClient};
use crate::measure::{Percentiles, median};
use crate::peers::mcp_servers::Daemon;
use crate::report::Section;
use crate::verdict::{Verdict, milliseconds, times};

const SHELL: &str = "name = \"shell\"\ncommand = \"/bin/sh\"\nprompt = \"stdin\"\noutput = \"text\"\n\
                     [modes.read-only]\n[modes.workspace-write]\n";
const CHECK_MAX_NS: f64 = 100e6;
/// Runs whose times are not counted.
const WARM_UP: usize = 1;

pub fn run(bench: &Bench) -> Result<Section> {
    let bars =
        "a check that does nothing adds at most 100 ms to a run; the start in 50,000 files beside git worktree add";
    let mut section = Section::new("Runs in a repository of their own", bars);
    let (plain, checked) = ends(bench, bench.size.pick(10, 100))?;
    let p50 = |latencies: &[u64]| -> Result<Option<f64>> {
        Ok(Percentiles::of(latencies.iter().copied())?.map(|found| found.p50_ns as f64))
    };
    let more = p50(&checked)?.zip(p50(&plain)?).map(|(checked, plain)| checked - plain);
    section.verdicts.push(Verdict::at_most("a trivial check, p50 ≤ 100 ms", more, CHECK_MAX_NS, milliseconds));
    let both = [("without a check".to_owned(), plain), ("with check \"true\"".to_owned(), checked)];
    section.add_latencies("use_agent: a run that changes one file, from the request to the end of its task", &both)?;
    let files = bench.size.pick(2_000, 50_000);
    let (started, added) = starts(bench, files)?;
    let ratio = median(started.iter().zip(&added).map(|(run, git)| *run as f64 / *git as f64).collect());
    section.verdicts.push(Verdict::at_most("start, ≤ 2 × git worktree add", ratio, 2.0, times));
    let both = [("git worktree add".to_owned(), added), ("Matsu, until the program runs".to_owned(), started)];
    section.add_latencies(&format!("A repository of {files} files"), &both)?;
    section.notes.push(
        "Over HTTP, SQLite at its default durability, one run at a time, the two of a pair in turn. Matsu's time holds \
         the look at the user's tree, a snapshot of it, a checkout of all files and what confines the program."
            .to_owned(),
    );
    Ok(section)
}

/// Both kinds of runs, in turn.
fn ends(bench: &Bench, samples: usize) -> Result<(Vec<u64>, Vec<u64>)> {
    let root = repository(bench, 10)?;
    let daemon = daemon(bench, &root)?;
    let mut client = daemon.http()?;
    let mut ended = |check: Option<&str>, script: &str| -> Result<u64> {
        let began = Instant::now();
        let task = start(&mut client, &root, script, check)?;
        wait(&mut client, &task)?;
        Ok(u64::try_from(began.elapsed().as_nanos())?)
    };
    let (mut plain, mut checked) = (Vec::new(), Vec::new());
    for sample in 0..WARM_UP + samples {
        let both = (ended(None, "echo new > new.txt")?, ended(Some("true"), "echo new > new.txt")?);
        if sample >= WARM_UP {
            plain.push(both.0);
            checked.push(both.1);
        }
    }
    Ok((plain, checked))
}

fn starts(bench: &Bench, files: usize) -> Result<(Vec<u64>, Vec<u64>)> {
    let root = repository(bench, files)?;
    let beside = bench.fresh_folder()?;
    let pipe = beside.join("go");
    ensure!(Command::new("mkfifo").arg(&pipe).status()?.success(), "no pipe could be made");
    let daemon = daemon(bench, &root)?;
    let mut client = daemon.http()?;
    let (mut started, mut added) = (Vec::new(), Vec::new());
    for sample in 0..WARM_UP + bench.size.pick(1, 5) {
        let tree = beside.join(format!("tree-{sample}"));
        let began = Instant::now();
        git(&root, &["worktree", "add", "--quiet", "--detach", &tree.display().to_string()])?;
        let of_git = u64::try_from(began.elapsed().as_nanos())?;
        git(&root, &["worktree", "remove", "--force", &tree.display().to_string()])?;
        let began = Instant::now();
        let task = start(&mut client, &root, &format!("exec cat {}", pipe.display()), None)?;
        // Returns when the program has opened it as well.
        let held = OpenOptions::new().write(true).open(&pipe)?;
        let of_run = u64::try_from(began.elapsed().as_nanos())?;
        drop(held);
        wait(&mut client, &task)?;
        if sample >= WARM_UP {
            started.push(of_run);
            added.push(of_git);
        }
    }
    Ok((started, added))
}

/// A repository with so many small files, committed.
fn repository(bench: &Bench, files: usize) -> Result<PathBuf> {
    let root = bench.fresh_folder()?;
    for number in 0..files {
        let folder = root.join(format!("d{}", number / 100));
        if number % 100 == 0 {
            std::fs::create_dir(&folder)?;
        }
        std::fs::write(folder.join(format!("{number}.txt")), format!("file {number}\n").repeat(20))?;
    }
    git(&root, &["init", "--quiet"])?;
    git(&root, &["add", "."])?;
    git(&root, &["-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "--quiet", "-m", "all"])?;
    Ok(root)
}

fn git(root: &Path, args: &[&str]) -> Result<()> {
    ensure!(Command::new("git").args(args).current_dir(root).status()?.success(), "git {args:?} failed");
    Ok(())
}

fn daemon(bench: &Bench, root: &Path) -> Result<Daemon> {
    let above = root.parent().context("the repository has no folder")?;
    let config =
        format!("[agents]\nmode_max = \"workspace-write\"\nroots = \"{0}\"\nread = \"{0}\"\n", above.display());
    Daemon::launch_with_agent(bench, &config, Some(("shell", SHELL)))
}

fn start(client: &mut HttpClient, root: &Path, script: &str, check: Option<&str>) -> Result<String> {
    let mut wish = json!({
        "cli_name": "shell", "message": script, "run_async": true, "mode": "workspace-write", "working_directory": root,
    });
    if let Some(check) = check {
        wish["check"] = json!(check);
    }
    let said = tool(client, "use_agent", wish)?;
    Ok(said["task_id"].as_str().with_context(|| format!("no task: {said}"))?.to_owned())
}

fn wait(client: &mut HttpClient, task: &str) -> Result<()> {
    let wish = json!({ "task_id": task, "timeout": 50, "wait_for": "all", "since": 1 });
    let said = tool(client, "get_task_status", wish)?;
    ensure!(said["status"] == "completed", "the run is not completed: {said}");
    Ok(())
}

fn tool(client: &mut HttpClient, name: &str, arguments: Value) -> Result<Value> {
    Ok(client.ask("tools/call", json!({ "name": name, "arguments": arguments }))?["structuredContent"].clone())
}
