//! `matsu-bench`: Matsu's queue and wake-ups beside their peers, in one run, with the ratios in one report.
//!
//! The binary is also its own child: `__order` answers one measurement and `__axum-server` is the bare long poll, so
//! that every contender starts from a fresh process.

mod bench;
mod chart;
mod matsu_side;
mod mcp_client;
mod measure;
mod peers;
mod processes;
mod report;
mod research_data;
mod rows;
mod usage;
mod verdict;
mod waiters;
mod wake;

use std::path::{Path, PathBuf};

use anyhow::Result;
use bench_peer::Opener;
use clap::Parser;

/// Measure Matsu beside its peers and write a Markdown report.
#[derive(Parser)]
struct Flags {
    /// Run only these rows (see --list); may be repeated.
    #[arg(long, value_name = "ROW")]
    only: Vec<String>,
    /// Small counts, to see that everything runs; the numbers mean little.
    #[arg(long)]
    quick: bool,
    /// Where the report goes; charts are written beside it.
    #[arg(long, value_name = "FILE", default_value = "report.md")]
    out: PathBuf,
    /// How often the contenders take turns in each row.
    #[arg(long)]
    rounds: Option<usize>,
    /// Where SQLite files are made; it must be a real disk for FULL to mean anything.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
    /// Print the names of the rows.
    #[arg(long)]
    list: bool,
}

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("__order") => return bench_peer::serve(&openers()),
        Some("__axum-server") => return peers::bare_axum::serve(std::env::args().nth(2).as_ref().map(Path::new)),
        _ => {}
    }
    let flags = Flags::parse();
    if flags.list {
        for row in rows::ROWS {
            println!("{}", row.name);
        }
        return Ok(());
    }
    let size = if flags.quick { bench::Size::Quick } else { bench::Size::Full };
    let bench = bench::Bench::prepare(size, flags.rounds, flags.scratch, &flags.out)?;
    rows::run(&bench, &flags.only, |sections| report::write(&bench, &flags.out, sections))?;
    eprintln!("wrote {}", flags.out.display());
    Ok(())
}

fn openers() -> Vec<(&'static str, Opener)> {
    vec![(bench::BARE_SQLITE, peers::bare_sqlite::open), (bench::BARE_GROUPED, peers::bare_grouped::open)]
}
