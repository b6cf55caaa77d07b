//! `matsu notify test`: a message to each channel, sent by this command itself.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Subcommand;
use matsu_core::clock::Clock;
use matsu_core::id::NoticeId;
use matsu_core::notify::{NoticeEvent, NoticeMessage};
use matsu_core::ports::store::NoteChannel;
use serde_json::{Value, json};

use super::{Context, field, print_json};
use crate::compose;

#[derive(Subcommand)]
pub enum NotifyCommand {
    /// Send a test message over every channel, or over one
    Test {
        /// The name of its section, [notify.NAME]
        channel: Option<String>,
    },
}

pub async fn run(cx: &Context, what: &NotifyCommand) -> Result<ExitCode> {
    let NotifyCommand::Test { channel } = what;
    let mut channels = cx.config.channels()?;
    if let Some(name) = channel {
        channels.retain(|config| config.name == *name);
    }
    if channels.is_empty() {
        let which = channel.as_ref().map_or_else(|| "no channel".to_owned(), |name| format!("no channel {name}"));
        bail!("{which} is configured; add a section [notify.NAME] to the configuration");
    }
    let now = Clock::system().now();
    let message = NoticeMessage {
        id: NoticeId::mint(now).to_string(),
        event: NoticeEvent::Done,
        task_id: None,
        title: "Matsu: a test".to_owned(),
        text: "This channel works.".to_owned(),
        link: None,
        at: now,
        buttons: Vec::new(),
    };
    let store = compose::open_store(&cx.config).await?.store;
    let mut results = Vec::new();
    for config in channels {
        let name = config.name.clone();
        let sent: Result<(), String> = match matsu_adapters::notify::open(config, &store) {
            Ok(channel) => channel.send(&message, "").await,
            Err(error) => Err(error),
        };
        // The doctor names a channel whose last message did not arrive.
        store.run(NoteChannel { channel: name.clone(), error: sent.clone().err() }).await?;
        results.push(json!({ "channel": name, "ok": sent.is_ok(), "error": sent.err() }));
    }
    let is_good = results.iter().all(|result| result["ok"] == true);
    if cx.json {
        print_json(&json!({ "ok": is_good, "items": results }));
    } else {
        results.iter().for_each(show);
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(result: &Value) {
    match result["error"].as_str() {
        None => say!("{}: sent", field(result, "channel")),
        Some(error) => say!("{}: not sent: {error}", field(result, "channel")),
    }
}
