//! A long life under an even load: ten tasks of twenty jobs over and over, with waits, cancels and clients that leave,
//! and beside them runs of an agent, chats with a model, and research. Memory must stay flat, and no task, process,
//! descriptor, thread or folder may be left. Runs with `MATSU_SOAK_SECONDS` only; `make soak` sets it.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, noop, sleep, until};
use crate::home::{Backend, Daemon, Home};
use crate::model_chats;
use crate::stores;

const TASKS: usize = 10;
const JOBS: usize = 20;
/// Of the whole run: caches fill and the allocator finds its size.
const WARM_UP: f64 = 0.25;
const DRIFT_MAX: f64 = 0.05;

/// What a process has open and how large it is.
#[derive(Clone, Copy, Debug)]
struct Size {
    kilobytes: u64,
    files: usize,
    children: usize,
    threads: usize,
}

impl Size {
    fn of(pid: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        Self {
            kilobytes: field("VmRSS:"),
            files: std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
            children: children.split_whitespace().count(),
            threads: field("Threads:") as usize,
        }
    }
}

/// Ten tasks at once, to their ends: most complete, some are cancelled in one way or the other, one has a waiter that
/// disconnects.
fn round(api: &Api, nth: usize) {
    let tasks: Vec<String> = (0..TASKS)
        .map(|task| api.submit((0..JOBS).map(|job| if (task + job) % 3 == 0 { noop() } else { sleep(20) }).collect()))
        .collect();
    let left = &tasks[nth % TASKS];
    let mut gone = TcpStream::connect(api.address).unwrap();
    let wait = format!(
        "GET /test/wait?task={left}&since=99999&timeout=50&wait_for=any HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n",
        api.token
    );
    gone.write_all(wait.as_bytes()).unwrap();
    for (task, mode) in [(&tasks[(nth + 3) % TASKS], "immediate"), (&tasks[(nth + 7) % TASKS], "graceful")] {
        api.patch(&format!("/api/v1/tasks/{task}"), &json!({ "status": "cancelled", "mode": mode }));
    }
    drop(gone);
    for task in &tasks {
        let ended = api.ended(task, Duration::from_secs(60));
        assert!(matches!(ended["status"].as_str(), Some("completed" | "cancelled")), "{ended:#}");
    }
}

/// A run of an agent, a question to a model and a search, begun together and brought to their ends.
fn mixed(daemon: &Daemon) {
    let tool = |name: &str, input: Value| {
        let reply = daemon.api.post(&format!("/api/v1/tools/{name}"), &input);
        assert_eq!(reply["ok"], true, "{name}: {reply:#}");
        reply
    };
    let run = tool("use_agent", json!({ "cli_name": "lines", "message": "write a few lines", "run_async": true }));
    let research = tool("create_task", json!({ "query": "stone pines" }))["task_id"].clone();
    tool("queue_searches", json!({ "task_id": research, "queries": ["how do stone pines grow"] }));
    let chat = model_chats::open(daemon, &["echo"]);
    model_chats::say(daemon, &chat, "@echo hello");

    let run = daemon.api.ended(run["task_id"].as_str().unwrap(), model_chats::MOMENT);
    assert_eq!(run["status"], "completed", "{run:#}");
    model_chats::hears(daemon, &chat, "completed", "You said: @echo hello");
    let wait = json!({ "task_id": research, "wait": 30, "wait_for": "all" });
    let found = until("the search is done", model_chats::MOMENT, || {
        Some(tool("get_status", wait.clone())).filter(|status| status["status"] == "finished")
    });
    assert!(found["claims"].as_u64().is_none_or(|claims| claims > 0), "{found:#}");
    tool("stop_task", json!({ "task_id": research }));
}

const AGENT: &str = "name = \"lines\"\ncommand = \"/bin/sh\"\n\
    args = [\"-c\", \"cat >/dev/null; for n in 1 2 3 4 5; do echo line $n; done\"]\n\
    prompt = \"stdin\"\noutput = \"text\"\n[modes.read-only]\n";

/// The home of the mixed load: a scripted model, an agent and a folder with something to find.
fn home_of(backend: Backend) -> Home {
    let home = model_chats::home_on(backend).with_variable("MATSU_SLOTS_AGENT_CLI", "16");
    std::fs::create_dir_all(home.path("agents")).unwrap();
    std::fs::write(home.path("agents/lines.toml"), AGENT).unwrap();
    let note = "# Pines\n\nStone pines grow slowly in the mountains.\n";
    std::fs::write(home.path("some documents/note.md"), note).unwrap();
    home
}

/// Folders of runs and worktrees that are there.
fn folders(data: &Path) -> usize {
    let count = |name: &str| std::fs::read_dir(data.join(name)).map_or(0, |entries| entries.flatten().count());
    count("runs") + count("worktrees")
}

/// Processes that have a path of this home on their command line, but for the daemon.
fn processes(home: &Home, daemon: u32) -> Vec<String> {
    let mark = home.path("").to_string_lossy().into_owned();
    let others =
        std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| *entry.file_name() != *daemon.to_string());
    let lines = others.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).filter(|line| line.contains(&mark)).collect()
}

fn median(sizes: &[Size], of: impl Fn(&Size) -> u64) -> u64 {
    let mut numbers: Vec<u64> = sizes.iter().map(of).collect();
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

fn soak(backend: Backend, span: Duration) {
    let home = home_of(backend);
    let daemon = model_chats::serve(&home);
    let pid = daemon.process.pid();
    let began = Instant::now();
    let mut sizes = Vec::new();
    let mut rounds = 0;
    while began.elapsed() < span {
        round(&daemon.api, rounds);
        mixed(&daemon);
        rounds += 1;
        if began.elapsed() > span.mul_f64(WARM_UP) {
            sizes.push(Size::of(pid));
        }
    }
    let metrics = || daemon.api.send("GET", "/metrics", None).unwrap().body;
    until("no waiter is left", Duration::from_secs(60), || metrics().contains("matsu_waiters 0").then_some(()));
    let quarter = (sizes.len() / 4).max(1);
    let (early, late) = (&sizes[..quarter], &sizes[sizes.len() - quarter..]);
    let (before, after) = (median(early, |size| size.kilobytes), median(late, |size| size.kilobytes));
    let drift = after as f64 / before as f64 - 1.0;
    let last = Size::of(pid);
    println!(
        "  {backend:?}: {rounds} rounds, {} jobs in {:?}; {before} kB, then {after} kB ({:+.1} %); {last:?}",
        rounds * TASKS * JOBS,
        began.elapsed(),
        drift * 100.0
    );
    assert!(drift <= DRIFT_MAX, "memory grew by {:.1} %", drift * 100.0);
    // Readers of documents are kept for the next document; there are as many as there were.
    let children = median(early, |size| size.children as u64);
    assert!(last.children as u64 <= children, "{children} children, then {}", last.children);
    let left = || processes(&home, pid);
    until("no process is left", Duration::from_secs(60), || left().is_empty().then_some(()));
    until("no folder is left", Duration::from_secs(60), || (folders(&home.data_dir()) == 0).then_some(()));
    let open = "SELECT count(*) FROM tasks WHERE finished_at IS NULL";
    assert_eq!(stores::ask(&home.store, open), ["0"], "tasks that have not ended");
    let (files, threads) = (median(early, |size| size.files as u64), median(early, |size| size.threads as u64));
    assert!(last.files as u64 <= files + 4, "{files} files were open, then {}", last.files);
    assert!(last.threads as u64 <= threads + 4, "{threads} threads, then {}", last.threads);
}

#[test]
fn memory_stays_flat_and_nothing_stays_open() {
    let Ok(seconds) = std::env::var("MATSU_SOAK_SECONDS") else {
        println!("soak: only with MATSU_SOAK_SECONDS");
        return;
    };
    let span = Duration::from_secs(seconds.parse().expect("MATSU_SOAK_SECONDS is a number"));
    let backends = [Backend::Sqlite, Backend::Postgres];
    let runs = backends.map(|backend| std::thread::spawn(move || soak(backend, span)));
    for (backend, run) in backends.iter().zip(runs) {
        assert!(run.join().is_ok(), "{backend:?}");
    }
}
