//! Chats with models whose answers nobody has to wait for: posted here, answered in the background, read by whoever
//! looks. A reader that goes away and comes back misses nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use matsu_core::error_code::ErrorCode;
use matsu_core::id::ChatId;
use matsu_core::ports::store::StoreError;
use matsu_core::ports::tool_source::ToolSource;
use matsu_core::principal::Principal;
use matsu_core::transcript::{ChatPlace, StoredEntry, Transcript};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::room::{ChatError, Posted, Room, Rooms};
use super::shown::{ShownMessage, ShownState, shown};
use super::sketch::Sketch;
use crate::agentic_loop::{Event, KeptOutputs, LoopOptions};

/// Gives a chat its tools.
pub trait ChatTools: Send + Sync {
    fn for_chat(&self, id: &ChatId, owner: &Principal) -> Option<Arc<dyn ToolSource>>;
}

/// Cheap to clone; ends with its last owner.
#[derive(Clone)]
pub struct LiveChats {
    inner: Arc<Inner>,
}

struct Inner {
    rooms: Rooms,
    tools: Arc<dyn ChatTools>,
    chats: Mutex<HashMap<ChatId, Live>>,
    answers: Mutex<JoinSet<()>>,
}

/// An answer under way.
struct Live {
    cancel: CancellationToken,
    sketches: Vec<Sketch>,
    /// The line they answer.
    posted_seq: i64,
    /// What no model said: errors and notices, until the next line.
    notices: Vec<String>,
    outputs: Arc<KeptOutputs>,
    answering: bool,
    /// Grows with every change.
    version: watch::Sender<u64>,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            cancel: CancellationToken::new(),
            sketches: Vec::new(),
            posted_seq: 0,
            notices: Vec::new(),
            outputs: Arc::default(),
            answering: false,
            version: watch::Sender::new(0),
        }
    }
}

/// A chat as it stands, with what is being said.
pub struct View {
    pub transcript: Transcript,
    pub messages: Vec<ShownMessage>,
    pub notices: Vec<String>,
    pub answering: bool,
}

impl LiveChats {
    #[must_use]
    pub fn new(rooms: Rooms, tools: Arc<dyn ChatTools>) -> Self {
        let (chats, answers) = (Mutex::default(), Mutex::default());
        Self { inner: Arc::new(Inner { rooms, tools, chats, answers }) }
    }

    fn chats(&self) -> MutexGuard<'_, HashMap<ChatId, Live>> {
        self.inner.chats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// A model that is not there; the store.
    pub async fn open(&self, owner: &Principal, models: &[String]) -> Result<Transcript, ChatError> {
        Ok(self.inner.rooms.open(owner, models, ChatPlace::Page).await?.transcript)
    }

    /// Who can be asked.
    #[must_use]
    pub fn models(&self) -> Vec<String> {
        self.inner.rooms.roster.names().into_iter().map(str::to_owned).collect()
    }

    /// Stores a line and has it answered in the background.
    ///
    /// # Errors
    /// An unknown mention, an answer still under way, the store.
    pub async fn post(&self, owner: &Principal, id: &ChatId, text: &str) -> Result<Posted, ChatError> {
        if self.chats().get(id).is_some_and(|live| live.answering) {
            let message = "an answer is under way; wait for it or stop it".to_owned();
            return Err(StoreError::Refused { code: ErrorCode::IllegalTransition, message }.into());
        }
        // Nobody answers now, so what was left unfinished can be taken in.
        let room = self.inner.rooms.enter(owner, id).await?;
        let posted = room.post(text).await?;
        let sketches = posted.speakers.iter().filter_map(|name| room.roster.get(name));
        let sketches: Vec<Sketch> = sketches.map(|model| Sketch::new(model.name(), model.maker())).collect();
        let options = {
            let mut chats = self.chats();
            let live = chats.entry(id.clone()).or_default();
            live.cancel = CancellationToken::new();
            live.notices.clear();
            live.answering = !sketches.is_empty();
            live.sketches = sketches;
            live.posted_seq = posted.seq;
            live.version.send_modify(|version| *version += 1);
            LoopOptions {
                tools: self.inner.tools.for_chat(id, owner),
                outputs: Arc::clone(&live.outputs),
                cancel: live.cancel.clone(),
                ..LoopOptions::new(self.inner.rooms.clock)
            }
        };
        if !posted.speakers.is_empty() {
            let (chats, posted) = (self.clone(), posted.clone());
            let mut answers = self.inner.answers.lock().unwrap_or_else(PoisonError::into_inner);
            while answers.try_join_next().is_some() {}
            answers.spawn(async move { chats.answer(&room, &posted, options).await });
        }
        Ok(posted)
    }

    async fn answer(&self, room: &Room, posted: &Posted, options: LoopOptions) {
        let mut tell = |model: &str, event: &Event| self.note(room.id(), posted, model, event);
        let answered = room.answer(posted, options, &mut tell).await;
        let mut chats = self.chats();
        let Some(live) = chats.get_mut(room.id()) else { return };
        match answered {
            Err(error) => live.notices.push(error.to_string()),
            Ok(answered) => {
                let unsaved = answered.into_iter().filter_map(|answer| answer.unsaved);
                live.notices.extend(unsaved.map(|words| format!("an answer could not be stored: {words}")));
            }
        }
        live.answering = false;
        live.sketches.clear();
        live.version.send_modify(|version| *version += 1);
    }

    fn note(&self, id: &ChatId, posted: &Posted, model: &str, event: &Event) {
        let now = self.inner.rooms.clock.now();
        let mut chats = self.chats();
        let Some(live) = chats.get_mut(id) else { return };
        let at = posted.speakers.iter().position(|name| name == model);
        if let Some(sketch) = at.and_then(|at| live.sketches.get_mut(at)) {
            sketch.take(event, now);
        }
        match event {
            Event::Notice(words) => live.notices.push(format!("{model}: {words}")),
            Event::Done(result) => {
                live.notices.extend(result.error.as_ref().map(|error| format!("{model}: {error} ({})", error.code)));
            }
            _ => {}
        }
        live.version.send_modify(|version| *version += 1);
    }

    /// The chat with whatever is being said in it.
    ///
    /// # Errors
    /// There is none, it is somebody else's, or the store.
    pub async fn view(&self, owner: &Principal, id: &ChatId) -> Result<View, ChatError> {
        let room = self.inner.rooms.look_into(owner, id).await?;
        let stored = self.inner.rooms.store.entries(id, 0, u32::MAX).await?;
        let mut messages = shown(&stored, ShownState::Complete);
        // What a crash cut off is shown as far as it came; it becomes part of the chat with the next line.
        let drafts = self.inner.rooms.store.drafts(id).await?;
        let chats = self.chats();
        let Some(live) = chats.get(id).filter(|live| live.answering) else {
            let notices = chats.get(id).map(|live| live.notices.clone()).unwrap_or_default();
            let left = drafts.into_iter().flat_map(|draft| draft.entries).zip(room.transcript.last_seq + 1..);
            let left: Vec<StoredEntry> = left.map(|(entry, seq)| StoredEntry { seq, entry }).collect();
            messages.extend(shown(&left, ShownState::Complete));
            return Ok(View { transcript: room.transcript, messages, notices, answering: false });
        };
        let mut seq = stored.last().map_or(0, |last| last.seq);
        for sketch in &live.sketches {
            // One that is stored already is shown from there.
            let is_stored = stored
                .iter()
                .any(|stored| stored.seq > live.posted_seq && stored.entry.model.as_deref() == Some(sketch.model()));
            if is_stored {
                continue;
            }
            let entries = sketch.entries().iter().map(|entry| {
                seq += 1;
                StoredEntry { seq, entry: entry.clone() }
            });
            let entries: Vec<StoredEntry> = entries.collect();
            messages.extend(shown(&entries, ShownState::Running));
        }
        Ok(View { transcript: room.transcript, messages, notices: live.notices.clone(), answering: true })
    }

    /// Follows the changes of a chat; each value is a reason to look again.
    #[must_use]
    pub fn follow(&self, id: &ChatId) -> watch::Receiver<u64> {
        self.chats().entry(id.clone()).or_default().version.subscribe()
    }

    /// Stops the answer that is under way and keeps what came; false if there was none.
    #[must_use]
    pub fn stop(&self, id: &ChatId) -> bool {
        let chats = self.chats();
        let Some(live) = chats.get(id).filter(|live| live.answering) else { return false };
        live.cancel.cancel();
        true
    }

    /// Stops every answer and returns when all are stored.
    pub async fn end(&self) {
        for live in self.chats().values() {
            live.cancel.cancel();
        }
        let mut answers = std::mem::take(&mut *self.inner.answers.lock().unwrap_or_else(PoisonError::into_inner));
        while answers.join_next().await.is_some() {}
    }
}
