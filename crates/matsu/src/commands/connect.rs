//! `matsu connect`: tells AI clients about Matsu, in user scope, and takes it back.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use serde_json::{Value, json};

use super::ask::Ask;
use super::{Context, lasting, print_json};
use crate::cli::Global;
use crate::connect::pieces::{self, Edit};
use crate::connect::record::Change;
use crate::connect::{ByHand, CLIENTS, Client, RecordState, Undone, Wish, record};
use crate::homes::Homes;
use crate::service;

#[derive(Args)]
pub struct Connect {
    /// claude, codex, cursor, gemini or vscode; without a name, all that are installed
    pub client: Option<String>,
    /// Also install hooks, if the client has them: at the end of a turn the model is asked once to read unread results,
    /// and with each prompt it gets one line of news
    #[arg(long)]
    pub hooks: bool,
    /// Remove everything that connect wrote
    #[arg(long, conflicts_with = "hooks")]
    pub undo: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

pub fn run(cx: &Context, global: &Global, args: &Connect) -> Result<ExitCode> {
    let homes = cx.config.homes()?;
    let clients = match &args.client {
        Some(name) => vec![Client::named(name).with_context(|| {
            let names = CLIENTS.iter().map(|client| client.name).collect::<Vec<_>>().join(", ");
            format!("there is no client {name:?}; expected one of {names}")
        })?],
        None if args.undo => {
            let names = record::names(&cx.config.paths.data_dir)?;
            CLIENTS.iter().filter(|client| names.iter().any(|name| name == client.name)).collect()
        }
        None => CLIENTS.iter().filter(|client| client.is_installed(&homes)).collect(),
    };
    if args.undo {
        return undo(cx, &clients);
    }
    if clients.is_empty() {
        bail!("no AI client was found; name one to set it up anyway, for instance `matsu connect claude`");
    }
    // A client that was named and cannot be set up is an error; of all clients, those with an own entry stay as they are.
    let left_out = if args.client.is_some() { Vec::new() } else { by_hand(cx, global, &homes, &clients) };
    let clients: Vec<_> =
        clients.into_iter().filter(|client| !left_out.iter().any(|left| left.client.name == client.name)).collect();
    if !cx.json {
        left_out.iter().for_each(|left| say!("{}", left.line()));
    }
    let plans = plans(cx, global, &homes, &clients, args.hooks)?;
    if !args.yes && !plans.is_empty() && !agreed(&plans)? {
        say!("nothing was changed");
        return Ok(ExitCode::FAILURE);
    }
    record::apply(&cx.config.paths.data_dir, &changes(&plans))?;
    report(cx, &plans, &left_out, args.hooks);
    Ok(ExitCode::SUCCESS)
}

/// A client that is not set up, because its file has an entry of the same name that a person made.
pub struct LeftOut {
    pub client: &'static Client,
    reason: String,
}

impl LeftOut {
    pub fn line(&self) -> String {
        format!("{} stays as it is: {}", self.client.title, self.reason)
    }

    pub fn json(&self) -> Value {
        json!({ "client": self.client.name, "reason": self.reason })
    }
}

/// Those of these clients that a person has set up.
pub fn by_hand(cx: &Context, global: &Global, homes: &Homes, clients: &[&'static Client]) -> Vec<LeftOut> {
    // Any other error is found again, and reported, where everything is planned.
    let left_out = |client: &&'static Client| match plans(cx, global, homes, &[*client], false) {
        Err(error) if error.is::<ByHand>() => Some(LeftOut { client, reason: format!("{error:#}") }),
        _ => None,
    };
    clients.iter().filter_map(left_out).collect()
}

/// What would be written for these clients. A client that is connected is planned from the start: against its files
/// without what an earlier version put there.
pub fn plans(
    cx: &Context,
    global: &Global,
    homes: &Homes,
    clients: &[&'static Client],
    hooks: bool,
) -> Result<Vec<(&'static Client, Vec<Edit>)>> {
    let wish = Wish { program: lasting::program()?, options: options(cx, global)?, hooks };
    let edits = |client: &'static Client| {
        let texts = record::texts_without(&cx.config.paths.data_dir, client.name)?;
        let edits = pieces::edits(client, homes, &wish, &texts);
        Ok((client, edits.map_err(|error| if error.is::<ByHand>() { error } else { with_next_step(&error) })?))
    };
    clients.iter().copied().map(edits).collect()
}

/// A file that cannot be read or changed keeps the other clients from being connected too.
fn with_next_step(error: &anyhow::Error) -> anyhow::Error {
    anyhow!(
        "{error:#}. Correct that file and run this again, or connect the other clients by name: `matsu connect NAME`"
    )
}

/// A client that is connected is written anew.
pub fn changes<'a>(plans: &'a [(&'static Client, Vec<Edit>)]) -> Vec<Change<'a>> {
    plans.iter().map(|(client, edits)| Change { name: client.name, edits, replaces: true }).collect()
}

/// What chose the data directory and the store here, by flag or environment, for the client to pass: it starts the
/// program in another folder, where a relative path would mean another file.
fn options(cx: &Context, global: &Global) -> Result<Vec<String>> {
    let path = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
    let mut options = Vec::new();
    if global.data_dir.is_some() || cx.config.unusual_data_dir().is_some() {
        options.extend(["--data-dir".to_owned(), path(&cx.config.paths.data_dir)]);
    }
    if let Some(file) = &global.config {
        options.extend(["--config".to_owned(), path(file)]);
    }
    if let Some(url) = cx.config.store_to_write("a client's file")? {
        options.extend(["--store".to_owned(), url.to_owned()]);
    }
    Ok(options)
}

/// Whether a client has all that Matsu wrote for it.
pub fn record_state(cx: &Context, client: &Client) -> Result<RecordState> {
    record::record_state(&cx.config.paths.data_dir, client.name)
}

fn agreed(plans: &[(&Client, Vec<Edit>)]) -> Result<bool> {
    for (client, edits) in plans {
        say!("{}", client.title);
        edits.iter().flat_map(Edit::lines).for_each(|line| say!("{line}"));
    }
    Ask::new(false)?.yes_or_no("Write this?", false)
}

fn report(cx: &Context, plans: &[(&Client, Vec<Edit>)], left_out: &[LeftOut], hooks: bool) {
    if cx.json {
        let clients = plans.iter().map(|(client, edits)| {
            json!({
                "client": client.name,
                "files": edits.iter().map(|edit| json!({ "file": edit.file, "what": edit.what })).collect::<Vec<_>>(),
                "tool_timeout_seconds": client.timeout.seconds(),
                "hold_seconds": client.timeout.hold(),
                "hooks": hooks && client.hooks.is_some(),
                "after": client.after,
            })
        });
        let left_out = left_out.iter().map(LeftOut::json).collect::<Vec<_>>();
        print_json(&json!({ "ok": true, "clients": clients.collect::<Vec<Value>>(), "left_out": left_out }));
        return;
    }
    if plans.is_empty() {
        say!("nothing was changed");
        return;
    }
    for (client, edits) in plans {
        say!("{}: connected", client.title);
        for edit in edits {
            say!("  {} in {}", edit.what, edit.file.display());
        }
        if hooks && client.hooks.is_none() {
            say!("  no hooks are available for {}", client.title);
        }
        say!("  a wait is held up to {} s; {}", client.timeout.hold(), client.after);
    }
    if service::can_install(&cx.config).unwrap_or(false) {
        say!("start Matsu with the machine, so that interrupted runs continue by themselves: `matsu service install`");
    }
    say!("undo this with `matsu connect --undo`");
}

/// What became of one file of a client.
pub struct UndoneFile {
    client: String,
    pub file: PathBuf,
    pub became: &'static str,
}

impl UndoneFile {
    pub fn json(&self) -> Value {
        json!({ "client": self.client, "file": self.file, "became": self.became })
    }
}

/// Takes out everything that is on record, of clients and of settings.
pub fn undo_all(cx: &Context) -> Result<Vec<UndoneFile>> {
    let data_dir = &cx.config.paths.data_dir;
    let mut all = Vec::new();
    for name in record::names(data_dir)? {
        all.extend(undo_one(data_dir, &name)?);
    }
    Ok(all)
}

fn undo_one(data_dir: &Path, name: &str) -> Result<Vec<UndoneFile>> {
    let undone = record::undo(data_dir, name)?.into_iter().map(|undone| {
        let (file, became) = match undone {
            Undone::Restored(file) => (file, "restored"),
            Undone::Removed(file) => (file, "removed"),
            Undone::Changed(file) => {
                (file, "changed by another program since; search it for matsu and remove the rest")
            }
            Undone::Gone(file) => (file, "gone"),
        };
        UndoneFile { client: name.to_owned(), file, became }
    });
    Ok(undone.collect())
}

fn undo(cx: &Context, clients: &[&Client]) -> Result<ExitCode> {
    let mut all = Vec::new();
    for client in clients {
        all.extend(undo_one(&cx.config.paths.data_dir, client.name)?);
    }
    if cx.json {
        print_json(&json!({ "ok": true, "files": all.iter().map(UndoneFile::json).collect::<Vec<_>>() }));
        return Ok(ExitCode::SUCCESS);
    }
    all.iter().for_each(|file| say!("{}: {}", file.file.display(), file.became));
    if all.is_empty() {
        say!("nothing was connected");
    }
    Ok(ExitCode::SUCCESS)
}
