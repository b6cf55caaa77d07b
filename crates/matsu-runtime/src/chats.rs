//! What people do: make agents and projects, open chats and write in them, give tasks, send notices, end sessions.

pub mod sessions;
pub mod shown;
mod view;

pub use view::{ChatView, MessageRange};

use matsu_core::access::Viewer;
use matsu_core::agent::{Agent, NewAgent};
use matsu_core::change::Topic;
use matsu_core::chat::{Chat, ChatKind, ChatState, Message, NewChat, NewMessage, Sender, check_content};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{AgentId, ChatId, MessageId, NotificationId, ProjectId, SessionId};
use matsu_core::notification::{NewNotice, Notification, NotificationAction, NotificationKind};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::agent::Delivery;
use matsu_core::ports::store::{
    ChatsKnownTo, EndChat, EndSession, InsertAgent, InsertMessage, InsertNotice, InsertProject, ListAgents, ListChats,
    ListProjects, OpenChat, OpenedChat, ReadAgent, ReadChat, ReadChatFor, ReadQuestion, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::project::{NewProject, Project, is_usable_id};
use matsu_core::run::Question;
use matsu_core::secret;
use matsu_core::session::{EndReason, Session, SessionState};
use matsu_core::wake::Subscription;

use crate::chats::sessions::{Sessions, Waiters, passkey};
use crate::runtime::service;

/// Where the agent of a chat is, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// It was called and has not come yet.
    Connecting,
    /// It is there and busy.
    Connected,
    /// It is there and waits for the next message.
    Listening,
    /// It is not there; the next message starts it.
    Idle,
    /// It is not there, and comes when it comes.
    Disconnected,
    Ended,
}

impl AgentState {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Listening => "listening",
            Self::Idle => "idle",
            Self::Disconnected => "disconnected",
            Self::Ended => "ended",
        }
    }
}

fn refused(message: impl Into<String>) -> StoreError {
    StoreError::Refused { code: ErrorCode::InvalidParams, message: message.into() }
}

fn check_id(what: &str, id: &str) -> Result<(), StoreError> {
    if is_usable_id(id) {
        return Ok(());
    }
    Err(refused(format!("{what} must have 1 to 64 letters, digits, dots, dashes or underscores, got {id:?}")))
}

service! {
    /// What people do with named agents, projects, chats and sessions.
    Chats
}

impl Chats<'_> {
    /// Wakes when a chat has changed, in whatever process.
    #[must_use]
    pub fn subscribe(self, id: &ChatId) -> Subscription {
        self.runtime.hub().subscribe(&[Topic::chat(id)])
    }

    /// The chats that the viewer may see, newest first.
    ///
    /// # Errors
    /// As the store's.
    pub async fn list(self, viewer: &Viewer, page: &PageRequest) -> Result<Page<Chat>, StoreError> {
        self.runtime.store().run(ListChats { viewer: viewer.clone(), page: page.clone() }).await
    }

    /// Which of these chats the viewer may see.
    ///
    /// # Errors
    /// As the store's.
    pub async fn known_to(self, viewer: &Viewer, ids: &[ChatId]) -> Result<Vec<ChatId>, StoreError> {
        self.runtime.store().run(ChatsKnownTo { viewer: viewer.clone(), ids: ids.to_vec() }).await
    }

    /// The chat of this id, if the viewer may see it.
    ///
    /// # Errors
    /// There is none for this viewer; the store.
    pub async fn read_for(self, viewer: &Viewer, id: &ChatId) -> Result<Chat, StoreError> {
        self.runtime.store().run(ReadChatFor { viewer: viewer.clone(), id: id.clone() }).await
    }

    /// What the agent of a chat asks at the moment.
    ///
    /// # Errors
    /// As the store's.
    pub async fn question(self, id: &ChatId) -> Result<Option<Question>, StoreError> {
        Ok(self.runtime.store().run(ReadQuestion(id.clone())).await?.map(|(_, question)| question))
    }

    /// Projects, oldest first.
    ///
    /// # Errors
    /// As the store's.
    pub async fn projects(self, page: &PageRequest) -> Result<Page<Project>, StoreError> {
        self.runtime.store().run(ListProjects(page.clone())).await
    }

    /// Agents with a name, oldest first.
    ///
    /// # Errors
    /// As the store's.
    pub async fn agents(self, page: &PageRequest) -> Result<Page<Agent>, StoreError> {
        self.runtime.store().run(ListAgents(page.clone())).await
    }

    /// Makes an agent and returns it with its passkey, which is not kept.
    ///
    /// # Errors
    /// An id that is in use or unusable; a definition that is not known here.
    pub async fn make_agent(
        self,
        id: &str,
        name: String,
        definition: Option<String>,
        system_prompt: Option<String>,
    ) -> Result<(Agent, String), StoreError> {
        check_id("id", id)?;
        if let (Some(definition), Some(host)) = (&definition, self.runtime.agents()) {
            let known: Vec<String> = host.agents().into_iter().map(|agent| agent.name).collect();
            if !known.contains(definition) {
                let message = format!("there is no definition {definition}; the definitions are {}", known.join(", "));
                return Err(StoreError::Refused { code: ErrorCode::AgentNotFound, message });
            }
        }
        let passkey = secret::mint();
        let passkey_hash = passkey::hash(passkey.clone()).await?;
        let (id, created_at) = (AgentId::from_text(id), self.runtime.clock().now());
        let agent = NewAgent { id, name, definition, system_prompt, passkey_hash, created_at };
        Ok((self.runtime.store().run(InsertAgent(agent)).await?, passkey))
    }

    /// # Errors
    /// An id that is in use or unusable.
    pub async fn make_project(
        self,
        id: &str,
        name: String,
        working_directory: Option<String>,
    ) -> Result<Project, StoreError> {
        check_id("id", id)?;
        let (id, created_at) = (ProjectId::from_text(id), self.runtime.clock().now());
        self.runtime.store().run(InsertProject(NewProject { id, name, working_directory, created_at })).await
    }

    /// Opens a chat with an agent, or returns the one that is open.
    ///
    /// # Errors
    /// An unknown agent or project.
    pub async fn open_chat(self, agent: &AgentId, project: &ProjectId) -> Result<OpenedChat, StoreError> {
        let now = self.runtime.clock().now();
        let chat = NewChat {
            id: ChatId::mint(now),
            kind: ChatKind::Agent(agent.clone()),
            project_id: project.clone(),
            created_at: now,
        };
        self.runtime.store().run(OpenChat(chat)).await
    }

    /// A person writes in a chat.
    ///
    /// # Errors
    /// Blank or too long; an ended or unknown chat.
    pub async fn post_as_person(
        self,
        who: &Principal,
        chat: &ChatId,
        content: String,
        reply_to: Option<MessageId>,
    ) -> Result<Message, StoreError> {
        check_content(&content).map_err(|bad| refused(bad.to_string()))?;
        let now = self.runtime.clock().now();
        let message = NewMessage {
            id: MessageId::mint(now),
            chat_id: chat.clone(),
            sender: Sender::Person,
            sender_id: who.to_string(),
            content,
            reply_to,
            created_at: now,
        };
        self.runtime.store().run(InsertMessage(message)).await
    }

    /// # Errors
    /// An unknown chat.
    pub async fn end_chat(self, chat: &ChatId) -> Result<Chat, StoreError> {
        self.runtime.store().run(EndChat { id: chat.clone(), now: self.runtime.clock().now() }).await
    }

    /// The session that is there for this chat, if any.
    ///
    /// # Errors
    /// As the store's.
    pub async fn session_of_chat(self, chat: &Chat) -> Result<Option<Session>, StoreError> {
        let Some(agent) = chat.kind.agent() else { return Ok(None) };
        let live = Sessions::of(self.runtime).active_of(agent, &chat.project_id).await?;
        let now = self.runtime.clock().now();
        Ok(live.into_iter().find(|session| session.chat_id.as_ref() == Some(&chat.id) && session.is_live(now)))
    }

    /// Where the agent of a chat is. `None` for a chat with models.
    ///
    /// # Errors
    /// As the store's.
    pub async fn agent_state(self, chat: &Chat) -> Result<Option<AgentState>, StoreError> {
        let Some(agent) = chat.kind.agent() else { return Ok(None) };
        if chat.state == ChatState::Ended {
            return Ok(Some(AgentState::Ended));
        }
        if let Some(session) = self.session_of_chat(chat).await? {
            if self.runtime.part::<Waiters>().any(&session.id) {
                return Ok(Some(AgentState::Listening));
            }
            let is_awaited = !session.has_called() && self.waits_itself(agent).await?;
            return Ok(Some(if is_awaited { AgentState::Connecting } else { AgentState::Connected }));
        }
        if chat.connecting_since.is_some() {
            return Ok(Some(AgentState::Connecting));
        }
        let can_be_started = self.runtime.store().run(ReadAgent(agent.clone())).await?.definition.is_some();
        Ok(Some(if can_be_started { AgentState::Idle } else { AgentState::Disconnected }))
    }

    /// Whether the agent's program takes its messages itself, once it is there.
    async fn waits_itself(self, agent: &AgentId) -> Result<bool, StoreError> {
        let definition = self.runtime.store().run(ReadAgent(agent.clone())).await?.definition;
        let known = self.runtime.agents().map(|host| host.agents()).unwrap_or_default();
        let known = known.into_iter().find(|known| Some(&known.name) == definition.as_ref());
        Ok(known.is_some_and(|known| known.delivery == Delivery::Wait))
    }

    /// Has an agent in a chat stop what it is doing, without ending the chat. `None`: no agent is in the chat.
    ///
    /// # Errors
    /// An unknown chat.
    pub async fn stop_in_chat(self, chat: &ChatId, text: String) -> Result<Option<Notification>, StoreError> {
        let chat = self.runtime.store().run(ReadChat(chat.clone())).await?;
        let Some(session) = self.session_of_chat(&chat).await? else { return Ok(None) };
        let (kind, action) = (NotificationKind::Interrupt, NotificationAction::Cancel);
        let instruction = Some("Stop what you are doing and call get_next_action.".to_owned());
        self.send_notice(&session.id, kind, action, text, instruction).await.map(Some)
    }

    /// A person's own words to a session.
    ///
    /// # Errors
    /// An unknown or ended session; words that are blank or too long.
    pub async fn send_notice(
        self,
        session: &SessionId,
        kind: NotificationKind,
        action: NotificationAction,
        text: String,
        instruction: Option<String>,
    ) -> Result<Notification, StoreError> {
        check_content(&text).map_err(|bad| refused(bad.to_string()))?;
        let now = self.runtime.clock().now();
        let id = NotificationId::mint(now);
        let notice = NewNotice { id, session_id: session.clone(), kind, action, text, instruction, now };
        self.runtime.store().run(InsertNotice(notice)).await
    }

    /// A person ends a session; the agent gets to know it at its next look.
    ///
    /// # Errors
    /// An unknown session.
    pub async fn close_session(self, session: &SessionId) -> Result<Session, StoreError> {
        let (to, reason, now) = (SessionState::Ending, EndReason::ClosedByPerson, self.runtime.clock().now());
        self.runtime.store().run(EndSession { id: session.clone(), to, reason, now }).await
    }
}
