//! `matsu uninstall`: takes out what `setup`, `connect` and `service install` wrote, and the data only if asked.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::json;

use matsu_adapters::agents::removal::remove_folder;

use super::ask::Ask;
use super::installed::{self, Installed};
use super::{Context, connect, print_json, service, shutdown};
use crate::connect::pieces::shell_word;
use crate::connect::record;

#[derive(Args)]
pub struct Uninstall {
    /// Also end the runs of agents and delete the data directory: tasks, results, chats, tokens
    #[arg(long)]
    pub data: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

pub async fn run(cx: &Context, args: &Uninstall) -> Result<ExitCode> {
    let data_dir = &cx.config.paths.data_dir;
    let ask = Ask::new(args.yes)?;
    if args.data && !is_ours(data_dir) {
        bail!("{} holds no store of Matsu; nothing was deleted", data_dir.display());
    }
    let question = if args.data {
        format!("Disconnect all clients, end all runs and delete {}?", data_dir.display())
    } else {
        "Disconnect all clients, remove the service and end the daemon? Your data stays.".to_owned()
    };
    // With --yes this was decided on the command line.
    if ask == Ask::Person && !ask.yes_or_no(&question, false)? {
        say!("Nothing was changed.");
        return Ok(ExitCode::FAILURE);
    }
    let files = connect::undo_all(cx)?;
    let service = service::remove_quietly(cx)?;
    let ended = shutdown::end(cx, args.data).await?;
    if args.data {
        delete(data_dir)?;
    }
    let remove = Installed::here()?.remove()?;
    let man_page = installed::man_page(&cx.config.environment);
    if cx.json {
        print_json(&json!({
            "files": files.iter().map(connect::UndoneFile::json).collect::<Vec<_>>(),
            "service": service, "daemon": ended, "data_deleted": args.data, "remove_program": remove, "man_page": man_page,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    files.iter().for_each(|file| say!("{}: {}", file.file.display(), file.became));
    if let Some(file) = service {
        say!("{}: removed", file.display());
    }
    shutdown::show(&ended);
    if args.data {
        say!("{}: deleted", data_dir.display());
    } else if data_dir.exists() {
        say!("Your data is still in {}; `matsu uninstall --data` deletes it.", data_dir.display());
    }
    say!("Remove the program itself with: {remove}");
    if let Some(page) = man_page {
        say!("Remove its manual page with: rm {}", shell_word(&page.display().to_string()));
    }
    Ok(ExitCode::SUCCESS)
}

/// A wrong --data-dir must not delete a folder of the user.
fn is_ours(data_dir: &Path) -> bool {
    data_dir.join("token").is_file() || data_dir.join("matsu.db").is_file() || record::any(data_dir)
}

fn delete(data_dir: &Path) -> Result<()> {
    remove_folder(data_dir).with_context(|| format!("cannot delete {}", data_dir.display()))
}
