//! Open chats: one stored chat each, with the models that may answer in it.

use std::sync::Arc;

use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::history::{Entry, Item, Role, rename_taken_ids};
use matsu_core::id::{ChatId, RunId};
use matsu_core::ports::provider::Provider;
use matsu_core::ports::store::{
    AppendEntries, AppendTranscript, Change, ChatContent, Describe, DescribeTranscript, OpenTranscript,
    ReadChatContent, ReadEntries, ReadTranscript, Store, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::transcript::{ChatPlace, Draft, NewTranscript, StoredEntry, Transcript, check_name};

use super::answering::{Answered, Answering, EventSink};
use super::line::Line;
use super::mentions::{self, Addressed, UnknownMention};
use super::open_answer::OpenAnswers;
use super::roster::Roster;
use crate::models::agentic_loop::LoopOptions;

#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    #[error(transparent)]
    Unknown(#[from] UnknownMention),
    #[error("there is no model {0}; see providers in the configuration")]
    NoModel(String),
    #[error(
        "no model is configured; set GEMINI_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY, or add a [providers.NAME] section"
    )]
    NoModels,
    #[error(transparent)]
    Unasked(#[from] super::live::Unasked),
    #[error(transparent)]
    Name(#[from] matsu_core::transcript::BadName),
    #[error("say something")]
    Blank,
    #[error("{0}")]
    Image(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ChatError {
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Unasked(_) => ErrorCode::ResourceNotFound,
            Self::Unknown(_) | Self::NoModel(_) | Self::NoModels | Self::Name(_) | Self::Blank | Self::Image(_) => {
                ErrorCode::InvalidParams
            }
        }
    }
}

/// Everything that opening a chat needs.
#[derive(Clone)]
pub struct OpenChats {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub roster: Roster,
}

impl OpenChats {
    /// A new chat. With no models named, all of them may answer.
    ///
    /// # Errors
    /// A name that no model has; the store.
    pub async fn open(&self, owner: &Principal, models: &[String], place: ChatPlace) -> Result<OpenChat, ChatError> {
        self.open_for(owner, models, place, None).await
    }

    /// The same by a run, which is stored with the chat.
    ///
    /// # Errors
    /// A name that no model has; the store.
    pub async fn open_for(
        &self,
        owner: &Principal,
        models: &[String],
        place: ChatPlace,
        run_id: Option<RunId>,
    ) -> Result<OpenChat, ChatError> {
        if let Some(unknown) = models.iter().find(|name| self.roster.get(name).is_none()) {
            return Err(ChatError::NoModel(unknown.clone()));
        }
        let roster = self.roster.only(models);
        let now = self.clock.now();
        let new = NewTranscript {
            chat_id: ChatId::mint(now),
            owner: owner.clone(),
            models: roster.names().into_iter().map(str::to_owned).collect(),
            place,
            run_id,
            created_at: now,
        };
        Ok(self.opened(self.store.run(OpenTranscript(new)).await?, Vec::new()))
    }

    /// A chat that exists. Answers that were cut off by a crash become part of it.
    ///
    /// # Errors
    /// There is none, it belongs to another principal, or the store.
    pub async fn enter(&self, owner: &Principal, id: &ChatId) -> Result<OpenChat, ChatError> {
        let (open_chat, drafts) = self.read(owner, id).await?;
        open_chat.recover(drafts).await
    }

    /// A chat that exists, and the drafts of answers that are not stored yet: one read.
    ///
    /// # Errors
    /// There is none, it belongs to another principal, or the store.
    pub(super) async fn read(&self, owner: &Principal, id: &ChatId) -> Result<(OpenChat, Vec<Draft>), ChatError> {
        let ChatContent { transcript, entries, drafts } = self.content(owner, id, 0).await?;
        Ok((self.opened(transcript, entries), drafts))
    }

    pub(super) async fn content(
        &self,
        owner: &Principal,
        id: &ChatId,
        after_seq: i64,
    ) -> Result<ChatContent, ChatError> {
        let content = self.store.run(ReadChatContent { id: id.clone(), after_seq }).await?;
        check_owner(&content.transcript, owner)?;
        Ok(content)
    }

    /// The same without touching anything: answers may be under way.
    ///
    /// # Errors
    /// There is none, it belongs to another principal, or the store.
    pub async fn look_into(&self, owner: &Principal, id: &ChatId) -> Result<OpenChat, ChatError> {
        let transcript = self.store.run(ReadTranscript(id.clone())).await?;
        check_owner(&transcript, owner)?;
        Ok(self.opened(transcript, Vec::new()))
    }

    fn opened(&self, transcript: Transcript, entries: Vec<StoredEntry>) -> OpenChat {
        OpenChat { open_chats: self.clone(), roster: self.roster.only(transcript.models()), transcript, entries }
    }
}

fn check_owner(transcript: &Transcript, owner: &Principal) -> Result<(), StoreError> {
    if transcript.owner == *owner {
        return Ok(());
    }
    Err(StoreError::NotFound { what: "chat", id: transcript.chat.id.to_string() })
}

/// A message that was posted, and the models it is for.
#[derive(Clone, Debug)]
pub struct Posted {
    pub line: StoredEntry,
    /// The models that answer, in order; none: it is a note.
    pub speakers: Vec<String>,
    /// What they have answered so far.
    pub open_answers: OpenAnswers,
}

pub struct OpenChat {
    open_chats: OpenChats,
    pub roster: Roster,
    pub transcript: Transcript,
    /// The first ones, as far as they were read; later ones are read when they are needed.
    entries: Vec<StoredEntry>,
}

impl OpenChat {
    #[must_use]
    pub fn id(&self) -> &ChatId {
        &self.transcript.chat.id
    }

    /// Stores a person's line, and finds the models it names. Nothing is stored if a mention is unknown.
    ///
    /// # Errors
    /// An unknown mention, an empty text, the store.
    pub async fn post(&self, line: impl Into<Line>) -> Result<Posted, ChatError> {
        let line = line.into();
        let text = line.text.as_str();
        if text.trim().is_empty() {
            return Err(ChatError::Blank);
        }
        let speakers = match mentions::read(text, &self.roster.names(), self.roster.default())? {
            Addressed::Models(names) => names,
            Addressed::Note => Vec::new(),
        };
        self.post_for(&line, speakers).await
    }

    /// The same for models that are named beside the text, whatever the text begins with; for none: a note.
    ///
    /// # Errors
    /// An unknown name, an empty line, the store.
    pub async fn post_to(&self, line: &Line, names: &[String]) -> Result<Posted, ChatError> {
        if line.text.trim().is_empty() {
            return Err(ChatError::Blank);
        }
        if let Some(unknown) = names.iter().find(|name| self.roster.get(name).is_none()) {
            return Err(ChatError::NoModel(unknown.clone()));
        }
        let speakers = self.roster.names().into_iter().filter(|known| names.iter().any(|name| name == known));
        self.post_for(line, speakers.map(str::to_owned).collect()).await
    }

    async fn post_for(&self, line: &Line, speakers: Vec<String>) -> Result<Posted, ChatError> {
        let entry = line.entry(self.open_chats.clock.now());
        let seq = self.append(vec![entry.clone()], None).await?;
        let open_answers = OpenAnswers::of(speakers.iter().filter_map(|name| self.roster.get(name)));
        Ok(Posted { line: StoredEntry { seq, entry }, speakers, open_answers })
    }

    /// Lets the addressed models answer. Each sees the chat as it was when the person's message was stored.
    ///
    /// # Errors
    /// The store. What a model or a tool does wrong is part of its answer.
    pub async fn answer(
        &self,
        posted: &Posted,
        options: LoopOptions,
        tell: EventSink<'_>,
    ) -> Result<Vec<Answered>, ChatError> {
        let speakers: Vec<Arc<dyn Provider>> =
            posted.speakers.iter().filter_map(|name| self.roster.get(name).cloned()).collect();
        let snapshot = self.snapshot(&posted.line).await?;
        let answering = Answering {
            store: &self.open_chats.store,
            clock: self.open_chats.clock,
            chat_id: self.id(),
            line_seq: posted.line.seq,
            owner: &self.transcript.owner,
            snapshot: &snapshot,
            speakers,
            open_answers: &posted.open_answers,
            options,
        };
        Ok(answering.run(tell).await)
    }

    /// The entries, oldest first.
    ///
    /// # Errors
    /// The store.
    pub async fn entries(&self) -> Result<Vec<Entry>, ChatError> {
        let stored =
            self.open_chats.store.run(ReadEntries { id: self.id().clone(), after_seq: 0, rows_max: u32::MAX }).await?;
        Ok(stored.into_iter().map(|stored| stored.entry).collect())
    }

    /// The chat up to a line. Entries that came between what is known here and the line are read.
    async fn snapshot(&self, line: &StoredEntry) -> Result<Vec<Entry>, ChatError> {
        let prompt = self.transcript.system_prompt.as_ref();
        let prompt = prompt.map(|text| Entry::system(text.as_str(), self.transcript.chat.created_at));
        let known_seq = self.entries.last().map_or(0, |last| last.seq);
        let since = if line.seq == known_seq + 1 {
            Vec::new()
        } else {
            let since = ReadEntries { id: self.id().clone(), after_seq: known_seq, rows_max: u32::MAX };
            self.open_chats.store.run(since).await?
        };
        let since = since.iter().filter(|stored| stored.seq < line.seq);
        let said = self.entries.iter().chain(since).chain([line]).map(|stored| stored.entry.clone());
        Ok(prompt.into_iter().chain(said).collect())
    }

    async fn append(&self, entries: Vec<Entry>, finishes: Option<String>) -> Result<i64, StoreError> {
        let now = self.open_chats.clock.now();
        let chat_id = self.id().clone();
        self.open_chats.store.run(AppendTranscript(AppendEntries { chat_id, entries, finishes, now })).await
    }

    /// Puts what others wrote into the chat: a file that was exported before, for instance.
    ///
    /// # Errors
    /// The store.
    pub async fn import(&self, entries: Vec<Entry>) -> Result<(), ChatError> {
        self.append(entries, None).await?;
        Ok(())
    }

    /// Unfinished answers become part of the chat as far as they came. They must not be under way any more.
    pub(super) async fn recover(self, drafts: Vec<Draft>) -> Result<Self, ChatError> {
        if drafts.is_empty() {
            return Ok(self);
        }
        let mut before: Vec<Entry> = self.entries.iter().map(|stored| stored.entry.clone()).collect();
        for draft in drafts {
            let mut entries = rename_taken_ids(draft.entries, &before, self.open_chats.clock.now());
            mark_cut_off(&mut entries);
            before.extend(entries.iter().cloned());
            self.append(entries, Some(draft.model)).await?;
        }
        Ok(self.open_chats.read(&self.transcript.owner, self.id()).await?.0)
    }

    /// Keeps the chat as it is now under a name: a copy, which later lines do not change.
    ///
    /// # Errors
    /// Not a name, taken by another chat, or the store.
    pub async fn save_as(&self, name: &str, replace: bool) -> Result<(), ChatError> {
        check_name(name)?;
        let (owner, models) = (&self.transcript.owner, self.transcript.models());
        let mut copy = self.open_chats.open(owner, models, self.transcript.place).await?;
        copy.name(name, replace).await?;
        copy.set_system_prompt(self.transcript.system_prompt.clone()).await?;
        copy.import(self.entries().await?).await?;
        copy.end().await
    }

    /// # Errors
    /// Not a name, taken by another chat, or the store.
    pub async fn name(&mut self, name: &str, replace: bool) -> Result<(), ChatError> {
        let name = check_name(name)?;
        let change = if replace { Change::TakeName(name) } else { Change::Name(name) };
        self.transcript = self.change(change).await?;
        Ok(())
    }

    /// # Errors
    /// The store.
    pub async fn set_system_prompt(&mut self, prompt: Option<String>) -> Result<(), ChatError> {
        self.transcript = self.change(Change::SystemPrompt(prompt)).await?;
        Ok(())
    }

    /// # Errors
    /// The store.
    pub async fn end(&mut self) -> Result<(), ChatError> {
        self.transcript = self.change(Change::Ended).await?;
        Ok(())
    }

    /// # Errors
    /// The store.
    pub async fn reopen(&mut self) -> Result<(), ChatError> {
        self.transcript = self.change(Change::Reopened).await?;
        Ok(())
    }

    async fn change(&self, change: Change) -> Result<Transcript, StoreError> {
        let (chat_id, now) = (self.id().clone(), self.open_chats.clock.now());
        self.open_chats.store.run(DescribeTranscript(Describe { chat_id, change, now })).await
    }
}

/// Says at the end of an answer that its rest is missing, to people and to the model that goes on with it.
fn mark_cut_off(entries: &mut [Entry]) {
    let last = entries.last_mut().filter(|entry| entry.role == Role::Assistant);
    // Behind the call of a tool comes its result and nothing else.
    if let Some(Item::Text { text, .. }) = last.and_then(|entry| entry.content.last_mut()) {
        text.push_str("\n[cut off here: the server ended before the answer was complete]");
    }
}
