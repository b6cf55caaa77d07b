//! From the start of the process to its first list of tools, and what it then holds in memory with nothing to do.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use crate::bench::Bench;
use crate::mcp_client::McpClient;
use crate::measure::median;
use crate::peers::mcp_servers::{Contender, Daemon, start_stdio};
use crate::report::{Section, Table};
use crate::usage::resident_mib;
use crate::verdict::{Verdict, milliseconds};

const START_MAX_NS: f64 = 60e6;
const IDLE_MAX_MIB: f64 = 28.0;
/// What a start has allocated and gives back is given back by then.
const IDLE_AFTER: Duration = Duration::from_secs(2);

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new("Start to first tools/list; idle memory", "≤ 60 ms; ≤ 28 MiB");
    let samples = bench.size.pick(3, 30);
    let daemon = Daemon::launch(bench)?;
    let mut starts: Vec<(String, Vec<u64>)> =
        Contender::STDIO.iter().map(|contender| (label(*contender), Vec::new())).collect();
    for sample in 0..samples {
        for (contender, (_, found)) in Contender::STDIO.iter().zip(&mut starts) {
            // The slow ones need fewer looks to be told apart.
            if *contender == Contender::FastMcp && sample % 3 != 0 {
                continue;
            }
            found.push(start(bench, *contender, &daemon)?.as_nanos() as u64);
        }
    }
    for (contender, (name, found)) in Contender::STDIO.iter().zip(&starts) {
        let middle = median(found.iter().map(|ns| *ns as f64).collect());
        eprintln!("  {name}: {:.1} ms", middle.unwrap_or_default() / 1e6);
        if matches!(contender, Contender::MatsuRelay | Contender::MatsuAlone) {
            let bar = format!("{name}, median ≤ 60 ms");
            section.verdicts.push(Verdict::at_most(bar, middle, START_MAX_NS, milliseconds));
        }
    }
    section.add_latencies("Start of the process to the last byte of its first tools/list", &starts)?;
    add_memory(bench, &mut section, &daemon)?;
    section.notes.push("The daemon lives already and serves a relay; --no-daemon opens a fresh store.".to_owned());
    Ok(section)
}

fn label(contender: Contender) -> String {
    match contender {
        Contender::MatsuRelay => "Matsu, relay to a live daemon".to_owned(),
        other => other.name().to_owned(),
    }
}

fn start(bench: &Bench, contender: Contender, daemon: &Daemon) -> Result<Duration> {
    let fresh = bench.fresh_folder()?;
    let data = if contender == Contender::MatsuRelay { &daemon.data } else { &fresh };
    let began = Instant::now();
    let (running, mut client) = start_stdio(bench, contender, data)?;
    client.ask("tools/list", json!({}))?;
    let took = began.elapsed();
    drop(running);
    std::fs::remove_dir_all(fresh)?;
    Ok(took)
}

fn add_memory(bench: &Bench, section: &mut Section, daemon: &Daemon) -> Result<()> {
    let mut lines = Vec::new();
    for contender in Contender::STDIO {
        let fresh = bench.fresh_folder()?;
        let data = if contender == Contender::MatsuRelay { &daemon.data } else { &fresh };
        let (running, mut client) = start_stdio(bench, contender, data)?;
        client.ask("tools/list", json!({}))?;
        std::thread::sleep(IDLE_AFTER);
        let mut found = vec![(label(contender), resident_mib(running.pid())?)];
        if contender == Contender::MatsuRelay {
            found.push(("Matsu, the daemon".to_owned(), resident_mib(daemon.process.pid())?));
        }
        for (name, mib) in found {
            eprintln!("  {name}: {mib:.1} MiB");
            if name.starts_with("Matsu") {
                let bar = format!("{name}, idle ≤ {IDLE_MAX_MIB} MiB");
                section.verdicts.push(Verdict::at_most(bar, Some(mib), IDLE_MAX_MIB, |mib| format!("{mib:.1} MiB")));
            }
            lines.push(vec![name, format!("{mib:.1}")]);
        }
    }
    section.tables.push(Table {
        caption: "Resident memory, idle, one client connected".to_owned(),
        header: ["contender", "MiB"].map(str::to_owned).to_vec(),
        lines,
    });
    Ok(())
}
