//! What it costs to follow a run: its lines go through the supervisor's spool into the store, where a reader sees them.
//! Beside it, in the same rounds, a thread that reads the same lines from a plain pipe and keeps nothing.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::{daemon, start, tool};
use crate::bench::Bench;
use crate::mcp_client::HttpClient;
use crate::measure::median;
use crate::peers::mcp_servers::Daemon;
use crate::report::{Section, Table};

const LINE: &str = "sixty-three characters, as much as a program prints in one line";
const LAST: &str = "this was the last line";
/// How often a reader looks for the last line; seldom enough to cost next to nothing.
const LOOK_EVERY: Duration = Duration::from_millis(25);
const SEEN_MAX: Duration = Duration::from_secs(60);

/// What one round of one contender has taken.
struct Cost {
    cpu: Duration,
    wall: Duration,
}

pub fn add(section: &mut Section, bench: &Bench) -> Result<()> {
    let lines = bench.size.pick(20_000, 200_000);
    let (mut followed, mut piped) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        followed.push(follow(bench, lines)?);
        piped.push(read_pipe(lines)?);
    }
    let each = |costs: &[Cost], of: fn(&Cost) -> Duration| {
        median(costs.iter().map(|cost| of(cost).as_secs_f64() * 1e6 / lines as f64).collect()).unwrap_or_default()
    };
    let of_all = |costs: &[Cost]| (each(costs, |cost| cost.cpu), each(costs, |cost| cost.wall));
    let ((cpu, wall), (pipe_cpu, pipe_wall)) = (of_all(&followed), of_all(&piped));
    let line = |name: &str, cpu: f64, wall: f64| vec![name.to_owned(), format!("{cpu:.2}"), format!("{wall:.2}")];
    section.tables.push(Table {
        caption: format!("{lines} lines of a run: for each line, until the last one can be read"),
        header: ["contender", "CPU µs", "until it is there µs"].map(str::to_owned).to_vec(),
        lines: vec![
            line("Matsu: daemon and supervisor, stored", cpu, wall),
            line("a thread at a plain pipe, not stored", pipe_cpu, pipe_wall),
        ],
    });
    let seen = visible_after(bench, bench.size.pick(20, 100))?;
    section
        .add_latencies("A single line: from the program's pipe to a reader of the task", &[("Matsu".to_owned(), seen)])
}

/// A run that prints all lines when its first pipe is opened, and ends when its second one is.
fn follow(bench: &Bench, lines: usize) -> Result<Cost> {
    let folder = bench.fresh_folder()?;
    let daemon = daemon(bench, &folder)?;
    let mut client = daemon.http()?;
    let (go, stay) = (pipe(&folder, "go")?, pipe(&folder, "stay")?);
    let script = format!("cat go; yes '{LINE}' | head -n {lines}; echo {LAST}; exec cat stay");
    let task = start(&mut client, &folder, &script)?;
    let waiting = OpenOptions::new().write(true).open(&go)?;
    let pids = [daemon.process.pid(), supervisor(&daemon)?];
    let (before, began) = (cpu(&pids)?, Instant::now());
    drop(waiting);
    until_last(&mut client, &task, LAST, LOOK_EVERY)?;
    let wall = began.elapsed();
    let used = cpu(&pids)?.saturating_sub(before);
    drop(OpenOptions::new().write(true).open(&stay)?);
    Ok(Cost { cpu: used, wall })
}

fn read_pipe(lines: usize) -> Result<Cost> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("read go; yes '{LINE}' | head -n {lines}; echo {LAST}")]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (mut input, output) = (child.stdin.take().context("no pipe")?, child.stdout.take().context("no pipe")?);
    let reader = std::thread::spawn(move || -> Result<(usize, Duration, Instant)> {
        let before = nanos(Path::new("/proc/thread-self/schedstat"))?;
        let mut read = 0;
        for line in BufReader::new(output).lines() {
            line?;
            read += 1;
        }
        let used = nanos(Path::new("/proc/thread-self/schedstat"))? - before;
        Ok((read, Duration::from_nanos(used), Instant::now()))
    });
    let began = Instant::now();
    input.write_all(b"go\n")?;
    let (read, cpu, ended) = reader.join().ok().context("the reader broke")??;
    child.wait()?;
    ensure!(read == lines + 1, "{read} lines were read");
    Ok(Cost { cpu, wall: ended - began })
}

/// From one line in the program's pipe to its place in the task's tail.
fn visible_after(bench: &Bench, samples: usize) -> Result<Vec<u64>> {
    let folder = bench.fresh_folder()?;
    let daemon = daemon(bench, &folder)?;
    let mut client = daemon.http()?;
    let go = pipe(&folder, "go")?;
    let task = start(&mut client, &folder, "exec cat go")?;
    let mut held: File = OpenOptions::new().write(true).open(&go)?;
    (0..samples)
        .map(|n| {
            let line = format!("line {n}.");
            let began = Instant::now();
            writeln!(held, "{line}")?;
            until_last(&mut client, &task, &line, Duration::ZERO)?;
            Ok(u64::try_from(began.elapsed().as_nanos())?)
        })
        .collect()
}

fn until_last(client: &mut HttpClient, task: &str, line: &str, pause: Duration) -> Result<()> {
    let began = Instant::now();
    loop {
        let said = tool(client, "get_task_status", json!({ "task_id": task, "tail": 1 }))?;
        if said["tail"].as_str().is_some_and(|tail| tail.trim_end() == line) {
            return Ok(());
        }
        ensure!(began.elapsed() < SEEN_MAX, "the line is not seen: {said}");
        std::thread::sleep(pause);
    }
}

fn pipe(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    ensure!(Command::new("mkfifo").arg(&path).status()?.success(), "no pipe could be made");
    Ok(path)
}

/// The supervisor of the one run of this daemon.
fn supervisor(daemon: &Daemon) -> Result<u32> {
    let folder = daemon.data.display().to_string();
    let pids =
        std::fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains("__supervise") && line.contains(&folder)
    };
    pids.into_iter().find(is_it).context("no supervisor")
}

/// Time on a processor of all threads, to the nanosecond.
fn cpu(pids: &[u32]) -> Result<Duration> {
    let mut sum = 0;
    for pid in pids {
        for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            sum += nanos(&thread?.path().join("schedstat"))?;
        }
    }
    Ok(Duration::from_nanos(sum))
}

fn nanos(schedstat: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(schedstat)?;
    text.split_whitespace().next().and_then(|time| time.parse().ok()).context("no time in schedstat")
}
