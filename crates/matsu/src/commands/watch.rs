//! `matsu watch`: the list of tasks as it changes, over the whole screen, or one line per piece of news.

mod board;
mod draw;
mod lines;
mod news;
mod screen;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use matsu_runtime::tool::folders::project_of;

use super::Context;
use crate::cli::Global;

#[derive(Args)]
pub struct Watch {
    /// Print one line for each task that ends, fails or asks, if nothing has read it within two seconds
    #[arg(long)]
    pub lines: bool,
    /// Only tasks that were started from the project of this folder or from no project
    #[arg(long)]
    pub here: bool,
}

pub async fn run(cx: &Context, global: &Global, args: &Watch) -> Result<ExitCode> {
    let here = std::env::current_dir().ok().filter(|_| args.here);
    let folder = here.map(|folder| project_of(&folder));
    if args.lines {
        return lines::run(cx, folder).await;
    }
    if cx.json || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        bail!("the full screen needs a terminal; use `matsu watch --lines`, or `matsu tasks` for the list once");
    }
    screen::run(cx, global, folder).await
}
