//! Chats with models that answer in the background: a line is posted here, and its answers can be read at any time. A
//! reader that goes away and comes back misses nothing.
//!
//! One line is answered at a time in a chat: it is taken before the line is stored and free again when the last answer
//! is stored, whatever happens in between.

mod approvals;
mod chat;
mod taken;
mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::chat::Chat;
use matsu_core::error_code::ErrorCode;
use matsu_core::history::{Entry, Maker};
use matsu_core::id::{ChatId, RunId};
use matsu_core::limits::CHAT_LINE_CHARS_MAX;
use matsu_core::ports::store::StoreError;
use matsu_core::ports::tool_source::ToolSource;
use matsu_core::principal::Principal;
use matsu_core::transcript::{ChatPlace, Transcript};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use approvals::{Approval, Unasked};
use chat::LiveChat;
pub use chat::Spoken;
use taken::Taken;
pub use view::LiveView;

use super::line::Line;
use super::open_chats::{ChatError, OpenChat, OpenChats, Posted};
use super::roster::Roster;
use super::standing::StandingApprovals;
use crate::models::agentic_loop::{Event, LoopLimits, LoopOptions, SpendingMax};

/// Gives a chat its tools.
#[async_trait]
pub trait ChatTools: Send + Sync {
    fn for_chat(&self, chat: &Transcript) -> Option<Arc<dyn ToolSource>>;

    /// The chat has ended; what was opened for it is closed.
    async fn close(&self, id: &ChatId);
}

/// A model that can be asked.
pub struct Asked {
    pub name: String,
    pub maker: Maker,
    /// Whether it answers a line without a mention.
    pub is_default: bool,
}

/// What holds for the answers in all chats.
#[derive(Clone)]
pub struct LiveSettings {
    pub spending_max: SpendingMax,
    pub limits: LoopLimits,
    /// What a person approved for every chat.
    pub standing: Arc<dyn StandingApprovals>,
}

/// Cheap to clone; ends with its last owner.
#[derive(Clone)]
pub struct LiveChats {
    pub(super) inner: Arc<Inner>,
}

pub struct Inner {
    open_chats: RwLock<OpenChats>,
    tools: Arc<dyn ChatTools>,
    settings: RwLock<LiveSettings>,
    chats: Mutex<HashMap<ChatId, LiveChat>>,
    /// None: this process ends, and nothing more is answered.
    answers: Mutex<Option<JoinSet<()>>>,
}

impl LiveChats {
    #[must_use]
    pub fn new(open_chats: OpenChats, tools: Arc<dyn ChatTools>, settings: LiveSettings) -> Self {
        let (chats, answers) = (Mutex::default(), Mutex::new(Some(JoinSet::new())));
        let (open_chats, settings) = (RwLock::new(open_chats), RwLock::new(settings));
        Self { inner: Arc::new(Inner { open_chats, tools, settings, chats, answers }) }
    }

    /// Other models and bounds from here on. Answers under way go on as they began.
    pub fn reload(&self, roster: Roster, settings: LiveSettings) {
        self.inner.open_chats.write().unwrap_or_else(PoisonError::into_inner).roster = roster;
        *self.inner.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    fn settings(&self) -> LiveSettings {
        self.inner.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn chats(&self) -> MutexGuard<'_, HashMap<ChatId, LiveChat>> {
        self.inner.chats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.inner.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with what is known here of a chat, beginning to know it if need be.
    fn with<T>(&self, id: &ChatId, act: impl FnOnce(&mut LiveChat) -> T) -> T {
        let now = self.open_chats().clock.instant();
        let mut chats = self.chats();
        let chat = chats.entry(id.clone()).or_insert_with(|| LiveChat::new(now));
        chat.used_at = now;
        act(chat)
    }

    /// # Errors
    /// A model that is not there, or none at all; the store.
    pub async fn open(
        &self,
        owner: &Principal,
        models: &[String],
        place: ChatPlace,
        run: Option<RunId>,
    ) -> Result<Chat, ChatError> {
        if self.open_chats().roster.names().is_empty() {
            return Err(ChatError::NoModels);
        }
        Ok(self.open_chats().open_for(owner, models, place, run).await?.transcript.chat)
    }

    /// The models that can be asked, in the order in which they answer.
    #[must_use]
    pub fn models(&self) -> Vec<Asked> {
        let roster = self.open_chats().roster;
        let asked = |name: &str| {
            let maker = roster.get(name)?.maker();
            Some(Asked { name: name.to_owned(), maker, is_default: roster.default() == Some(name) })
        };
        roster.names().into_iter().filter_map(asked).collect()
    }

    /// Where chats are kept, for operations that need no answer of a model.
    #[must_use]
    pub fn open_chats(&self) -> OpenChats {
        self.inner.open_chats.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores a line and has it answered in the background, by those it is for or by whom it mentions.
    ///
    /// # Errors
    /// An unknown name, an answer still under way, the store.
    pub async fn post(
        &self,
        owner: &Principal,
        id: &ChatId,
        line: Line,
        to: Option<&[String]>,
    ) -> Result<Posted, ChatError> {
        if line.text.chars().count() > CHAT_LINE_CHARS_MAX {
            let message = format!("a message can have at most {CHAT_LINE_CHARS_MAX} characters");
            return Err(StoreError::Refused { code: ErrorCode::InvalidParams, message }.into());
        }
        // Before the chat is read: what is read stays true until the line is stored, as far as this process writes.
        let taken = Taken::take(self, id)?;
        let (open_chat, drafts) = self.open_chats().read(owner, id).await?;
        if open_chat.transcript.place == ChatPlace::Terminal && !open_chat.transcript.is_ended() {
            let message = format!("this chat belongs to a terminal; continue it with `matsu chat --chat {id}`");
            return Err(StoreError::Refused { code: ErrorCode::IllegalTransition, message }.into());
        }
        // No model answers now, so what was left unfinished can be taken in.
        let open_chat = open_chat.recover(drafts).await?;
        let posted = match to {
            Some(names) => open_chat.post_to(&line, names).await?,
            None => open_chat.post(line).await?,
        };
        let tools = self.inner.tools.for_chat(&open_chat.transcript);
        let place = open_chat.transcript.place;
        let options = self.with(id, |chat| {
            chat.begin(&posted);
            // One account for all models that answer this line.
            let spending = self.settings().spending_max.account();
            LoopOptions { tools, spending, ..chat.options(place, self.open_chats().clock, &self.settings()) }
        });
        if posted.speakers.is_empty() {
            return Ok(posted);
        }
        let said = posted.clone();
        let answer = async move { taken.chats().answer(&open_chat, &said, options).await };
        if let Some(answers) = &mut *self.answers() {
            while answers.try_join_next().is_some() {}
            answers.spawn(answer);
        }
        Ok(posted)
    }

    async fn answer(&self, open_chat: &OpenChat, posted: &Posted, options: LoopOptions) {
        let mut tell = |model: &str, event: &Event| self.with(open_chat.id(), |chat| chat.note(model, event));
        let answered = open_chat.answer(posted, options, &mut tell).await;
        let unstored: Vec<String> = match answered {
            Err(error) => vec![error.to_string()],
            Ok(answered) => {
                let unsaved = answered.into_iter().filter_map(|answer| answer.unsaved);
                unsaved.map(|words| format!("an answer could not be stored: {words}")).collect()
            }
        };
        self.with(open_chat.id(), |chat| chat.notices.extend(unstored));
    }

    /// A person's decision about a call that waits for it.
    ///
    /// # Errors
    /// The chat belongs to another principal, or no such call waits.
    pub async fn approve(&self, owner: &Principal, id: &ChatId, approval: Approval) -> Result<(), ChatError> {
        self.open_chats().look_into(owner, id).await?;
        let remembered = approval.remember && approval.allow && *owner == Principal::local_user();
        let tool = self.with(id, |chat| chat.approvals.decide(approval).inspect(|_| chat.changed()))?;
        if remembered && let Err(why) = self.settings().standing.remember(&tool, true) {
            let words = format!("the approval of {tool} holds for this call, but could not be remembered: {why}");
            self.with(id, |chat| chat.notices.push(words));
        }
        Ok(())
    }

    /// The chats in which a call of this id waits.
    pub(super) fn asked_for(&self, call_id: &str) -> Vec<ChatId> {
        let chats = self.chats();
        chats.iter().filter(|(_, chat)| chat.approvals.waits(None, call_id)).map(|(id, _)| id.clone()).collect()
    }

    /// As [`LiveChats::approve`], for a caller whose access was checked before.
    pub(super) fn decide(&self, id: &ChatId, approval: Approval) -> Result<(), Unasked> {
        self.with(id, |chat| chat.approvals.decide(approval).inspect(|_| chat.changed())).map(drop)
    }

    /// As [`LiveChats::stop`], for a caller whose access was checked before.
    pub fn interrupt(&self, id: &ChatId) {
        self.with(id, LiveChat::stop);
    }

    /// Follows the changes of a chat that this process makes; each value is a reason to look again.
    ///
    /// # Errors
    /// There is none, it belongs to another principal, or the store.
    pub async fn follow(&self, owner: &Principal, id: &ChatId) -> Result<watch::Receiver<u64>, ChatError> {
        self.open_chats().look_into(owner, id).await?;
        Ok(self.with(id, |chat| chat.version.subscribe()))
    }

    /// What has arrived of the answers under way.
    pub(super) fn under_way(&self, id: &ChatId) -> Vec<Entry> {
        self.with(id, |chat| chat.open_answers.drafts()).into_iter().flat_map(|draft| draft.entries).collect()
    }

    /// Stops the answer that is under way and keeps what came; false if there was none.
    ///
    /// # Errors
    /// There is no such chat, it belongs to another principal, or the store.
    pub async fn stop(&self, owner: &Principal, id: &ChatId) -> Result<bool, ChatError> {
        self.open_chats().look_into(owner, id).await?;
        Ok(self.with(id, LiveChat::stop))
    }

    /// Stops the answer that is under way, ends the chat, and closes what was opened for it.
    ///
    /// # Errors
    /// There is no such chat, it belongs to another principal, or the store.
    pub async fn end_chat(&self, owner: &Principal, id: &ChatId) -> Result<Chat, ChatError> {
        let mut open_chat = self.open_chats().look_into(owner, id).await?;
        self.interrupt(id);
        open_chat.end().await?;
        self.inner.tools.close(id).await;
        Ok(open_chat.transcript.chat)
    }

    /// How many chats are being answered in, without those that wait for a person, who may be long in coming.
    #[must_use]
    pub fn answering(&self) -> usize {
        self.chats().values().filter(|chat| chat.is_taken && !chat.approvals.is_anybody_asked()).count()
    }

    /// Drops the state of chats that were not used for a while. The chats themselves are in the store.
    pub fn forget_idle(&self, idle_max: Duration) {
        let now = self.open_chats().clock.instant();
        let is_idle = |chat: &LiveChat| {
            !chat.is_taken && chat.version.receiver_count() == 0 && now.duration_since(chat.used_at) >= idle_max
        };
        self.chats().retain(|_, chat| !is_idle(chat));
    }

    /// Stops every answer and returns when all are stored. Nothing is answered afterwards.
    pub async fn end(&self) {
        let answers = self.answers().take();
        for chat in self.chats().values_mut() {
            chat.stop();
        }
        let Some(mut answers) = answers else { return };
        while answers.join_next().await.is_some() {}
    }
}
