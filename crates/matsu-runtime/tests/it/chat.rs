//! The behaviours that a chat with several models must have, by number. Those that need a wire, a real MCP server or
//! the real binary are beside those: `matsu-adapters`, `matsu/tests/it`.

mod autosave;
mod endings;
mod history;
mod routing;
mod together;

use std::sync::Arc;

use matsu_core::clock::Clock;
use matsu_core::history::{Entry, validate};
use matsu_core::ports::provider::Provider;
use matsu_core::ports::store::Store;
use matsu_core::transcript::ChatPlace;
use matsu_runtime::agentic_loop::{Event, LoopOptions};
use matsu_runtime::chat::{Answered, Room, Rooms, Roster};
use matsu_testkit::fake_model::FakeModel;

use crate::fixtures::{me, memory};

pub async fn rooms(models: &[&Arc<FakeModel>]) -> Rooms {
    let (store, clock) = memory().await;
    rooms_on(store, clock, models)
}

pub fn rooms_on(store: Arc<dyn Store>, clock: Clock, models: &[&Arc<FakeModel>]) -> Rooms {
    let models = models.iter().map(|model| Arc::clone(model) as Arc<dyn Provider>).collect();
    Rooms { store, clock, roster: Roster::new(models, None) }
}

pub async fn room(rooms: &Rooms) -> Room {
    rooms.open(&me(), &[], ChatPlace::Terminal).await.unwrap()
}

/// Says a line and lets who is meant answer. The transcript must be valid afterwards.
pub async fn say(room: &Room, line: &str, options: LoopOptions) -> Vec<Answered> {
    let posted = room.post(line).await.unwrap();
    let answered = room.answer(&posted, options, &mut |_: &str, _: &Event| {}).await.unwrap();
    assert_eq!(validate(&room.entries().await.unwrap()), Ok(()));
    answered
}

pub fn plain(rooms: &Rooms) -> LoopOptions {
    LoopOptions::new(rooms.clock)
}

/// Who said what, in order.
pub async fn spoken(room: &Room) -> Vec<(String, String)> {
    let who = |entry: &Entry| entry.model.clone().unwrap_or_else(|| entry.role.to_string());
    room.entries().await.unwrap().iter().map(|entry| (who(entry), entry.spoken())).collect()
}

pub fn line(who: &str, text: &str) -> (String, String) {
    (who.to_owned(), text.to_owned())
}
