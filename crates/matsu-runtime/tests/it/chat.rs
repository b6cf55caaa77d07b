//! The behaviours that a chat with several models must have, by number. Those that need a wire, a real MCP server or
//! the real binary are beside those: `matsu-adapters`, `matsu/tests/it`.

mod autosave;
mod endings;
mod history;
mod routing;
mod together;
mod view;

use std::sync::Arc;

use matsu_core::clock::Clock;
use matsu_core::history::{Entry, validate};
use matsu_core::ports::provider::Provider;
use matsu_core::ports::store::Store;
use matsu_core::transcript::ChatPlace;
use matsu_runtime::models::agentic_loop::{Event, LoopOptions};
use matsu_runtime::models::chat::{Answered, OpenChat, OpenChats, Roster};
use matsu_testkit::fake_model::FakeModel;

use crate::fixtures::{me, memory};

pub async fn open_chats(models: &[&Arc<FakeModel>]) -> OpenChats {
    let (store, clock) = memory().await;
    open_chats_on(store, clock, models)
}

pub fn open_chats_on(store: Arc<dyn Store>, clock: Clock, models: &[&Arc<FakeModel>]) -> OpenChats {
    let models = models.iter().map(|model| Arc::clone(model) as Arc<dyn Provider>).collect();
    OpenChats { store, clock, roster: Roster::new(models, None) }
}

pub async fn open_chat(open_chats: &OpenChats) -> OpenChat {
    open_chats.open(&me(), &[], ChatPlace::Terminal).await.unwrap()
}

/// Posts a line and lets the addressed models answer. The transcript must be valid afterwards.
pub async fn say(open_chat: &OpenChat, line: &str, options: LoopOptions) -> Vec<Answered> {
    let posted = open_chat.post(line).await.unwrap();
    let answered = open_chat.answer(&posted, options, &mut |_: &str, _: &Event| {}).await.unwrap();
    assert_eq!(validate(&open_chat.entries().await.unwrap()), Ok(()));
    answered
}

pub fn plain(open_chats: &OpenChats) -> LoopOptions {
    LoopOptions::new(open_chats.clock)
}

/// Speaker and text of each entry, in order.
pub async fn spoken(open_chat: &OpenChat) -> Vec<(String, String)> {
    let who = |entry: &Entry| entry.model.clone().unwrap_or_else(|| entry.role.to_string());
    open_chat.entries().await.unwrap().iter().map(|entry| (who(entry), entry.spoken())).collect()
}

pub fn line(who: &str, text: &str) -> (String, String) {
    (who.to_owned(), text.to_owned())
}
