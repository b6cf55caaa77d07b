//! A long life under an even load: ten tasks of twenty jobs over and over, with waits, cancels and clients that leave.
//! Memory must stay flat, and nothing may be left open. Runs with `MATSU_SOAK_SECONDS` only; `make soak` sets it.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::api::{Api, noop, sleep, until};
use crate::home::{Backend, Home};

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

fn median(sizes: &[Size], of: impl Fn(&Size) -> u64) -> u64 {
    let mut numbers: Vec<u64> = sizes.iter().map(of).collect();
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

fn soak(backend: Backend, span: Duration) {
    let home = Home::new(backend).with_variable("MATSU_SLOTS_AGENT_CLI", "16");
    let daemon = home.serve();
    let pid = daemon.process.pid();
    let began = Instant::now();
    let mut sizes = Vec::new();
    let mut rounds = 0;
    while began.elapsed() < span {
        round(&daemon.api, rounds);
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
    assert_eq!(last.children, 0);
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
