//! The real command lines, as their vendors publish them, with a scripted model behind them. They are large, so they
//! run with `make test-agents` only; `MATSU_TEST_AGENTS` is the folder that `scripts/agents.sh` put them in.

mod cable;
mod cases;
mod chats;
mod claude;
mod connect;
mod delivery;
mod figures;
mod five;
mod long_sleep;
mod long_wait;
mod own_sandbox;
mod own_state;
mod places;
mod questions;
mod receipts;
mod refresh;
mod research;
mod survival;
pub mod terminal;
mod wire;

use std::path::PathBuf;

/// Where the command lines are; `None` if they were not asked for.
fn programs(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("MATSU_TEST_AGENTS").map(PathBuf::from);
    if folder.is_none() {
        println!("{test}: only with make test-agents");
    }
    folder
}
