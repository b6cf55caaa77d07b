//! What a tool call costs the server in processor time, over stdio and over HTTP. For the relay, daemon and relay count.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::bench::Bench;
use crate::mcp_client::McpClient;
use crate::measure::median;
use crate::peers::mcp_servers::{Contender, Daemon, start_http, start_stdio};
use crate::report::{Section, Table};
use crate::usage::cpu;
use crate::verdict::Verdict;

/// Enough for a just-in-time compiler to have seen everything.
const WARM_UP: usize = 300;
const NO_TASK: &str = "task_01";

/// What was seen of one contender, a figure for each round.
struct Seen {
    contender: Contender,
    cpu_us: Vec<f64>,
    wall_us: Vec<f64>,
}

pub fn run(bench: &Bench) -> Result<Section> {
    let bar = "≤ 1/10 of FastMCP; of the TypeScript SDK server ≤ 1/3 over stdio, ≤ 1/3.5 over HTTP";
    let mut section = Section::new("Server CPU per tools/call", bar);
    for (transport, contenders) in [("stdio", &Contender::STDIO[..]), ("HTTP", &Contender::HTTP[..])] {
        let mut all: Vec<Seen> = contenders
            .iter()
            .map(|contender| Seen { contender: *contender, cpu_us: Vec::new(), wall_us: Vec::new() })
            .collect();
        for round in 0..bench.rounds {
            for seen in &mut all {
                let calls = bench.size.pick(1_000, if seen.contender == Contender::FastMcp { 2_000 } else { 10_000 });
                let (cpu, wall) = measure(bench, transport, seen.contender, calls)?;
                let each = |span: Duration| span.as_secs_f64() * 1e6 / calls as f64;
                seen.cpu_us.push(each(cpu));
                seen.wall_us.push(each(wall));
                let (name, used) = (seen.contender.name(), each(cpu));
                eprintln!("  {transport}, round {} of {}, {name}: {used:.0} µs", round + 1, bench.rounds);
            }
        }
        add(&mut section, transport, &all);
    }
    section.notes.push(
        "One client, one call at a time, revision 2026-07-28. Matsu reads a stored task of its owner; the others answer \
         the same fields from memory, and their HTTP servers ask for no token."
            .to_owned(),
    );
    Ok(section)
}

fn measure(bench: &Bench, transport: &str, contender: Contender, calls: usize) -> Result<(Duration, Duration)> {
    let is_matsu = matches!(contender, Contender::MatsuRelay | Contender::MatsuAlone);
    let daemon = if is_matsu { Some(Daemon::launch(bench)?) } else { None };
    let task = daemon.as_ref().map_or(NO_TASK, |daemon| daemon.task.as_str());
    let daemon_pid = daemon.as_ref().map(|daemon| daemon.process.pid());
    match (&daemon, transport) {
        (Some(daemon), "HTTP") => timed(&mut daemon.http()?, &[daemon.process.pid()], task, calls),
        (None, "HTTP") => {
            let (running, mut client) = start_http(bench, contender)?;
            timed(&mut client, &[running.pid()], task, calls)
        }
        _ => {
            // Without a daemon the process opens the store itself; the daemon stands by and is not counted.
            let data = daemon.as_ref().map_or(bench.scratch().to_owned(), |daemon| daemon.data.clone());
            let (running, mut client) = start_stdio(bench, contender, &data)?;
            let counted = daemon_pid.filter(|_| contender == Contender::MatsuRelay);
            let pids: Vec<u32> = counted.into_iter().chain([running.pid()]).collect();
            timed(&mut client, &pids, task, calls)
        }
    }
}

fn timed(client: &mut dyn McpClient, pids: &[u32], task: &str, calls: usize) -> Result<(Duration, Duration)> {
    for _ in 0..WARM_UP {
        client.call(task)?;
    }
    let (before, began) = (cpu(pids)?, Instant::now());
    for _ in 0..calls {
        client.call(task)?;
    }
    let wall = began.elapsed();
    Ok((cpu(pids)?.saturating_sub(before), wall))
}

fn add(section: &mut Section, transport: &str, all: &[Seen]) {
    let ratio = |seen: &Seen, base: &Seen| {
        median(seen.cpu_us.iter().zip(&base.cpu_us).map(|(own, base)| own / base.max(0.01)).collect())
    };
    let find = |contender: Contender| all.iter().find(|seen| seen.contender == contender);
    let lines = all.iter().map(|seen| {
        let times = ratio(seen, &all[0]).map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        let show = |values: &[f64]| median(values.to_vec()).map_or("–".to_owned(), |value| format!("{value:.0}"));
        vec![seen.contender.name().to_owned(), times, show(&seen.cpu_us), show(&seen.wall_us)]
    });
    section.tables.push(Table {
        caption: format!("{transport}: processor time of the server for one call"),
        header: ["contender", "× Matsu", "CPU µs", "until the answer µs"].map(str::to_owned).to_vec(),
        lines: lines.collect(),
    });
    for matsu in all.iter().filter(|seen| matches!(seen.contender, Contender::MatsuRelay | Contender::MatsuAlone)) {
        let of_typescript = if transport == "HTTP" { 3.5 } else { 3.0 };
        for (peer, parts) in [(Contender::FastMcp, 10.0), (Contender::Typescript, of_typescript)] {
            let seen = find(peer).and_then(|peer| ratio(matsu, peer));
            let bar = format!("{transport}, {}, ≤ 1/{parts} of {}", matsu.contender.name(), peer.name());
            let show = |seen: f64| format!("1/{:.1}", 1.0 / seen);
            section.verdicts.push(Verdict::at_most(bar, seen, 1.0 / parts, show));
        }
    }
}
