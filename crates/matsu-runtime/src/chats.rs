//! What people do: make agents and projects, open chats and write in them, give tasks, send notices, end sessions.

use matsu_core::access::Viewer;
use matsu_core::agent::{Agent, NewAgent};
use matsu_core::chat::{Chat, ChatState, Message, NewChat, NewMessage, Sender, check_content};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{AgentId, ChatId, MessageId, NotificationId, ProjectId, SessionId, TaskId};
use matsu_core::job::Priority;
use matsu_core::notification::{NewNotice, Notification, NotificationAction, NotificationKind};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::agent::{Delivery, RunWish};
use matsu_core::ports::store::{
    ChatsKnownTo, EndChat, EndSession, InsertAgent, InsertMessage, InsertNotice, InsertProject, ListAgents, ListChats,
    ListMessages, ListProjects, ListSessions, MessageFilter, OpenChat, OpenedChat, ReadAgent, ReadChat, ReadProject,
    ReadQuestion, Reassign, SessionFilter, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::project::{NewProject, Project, is_usable_id};
use matsu_core::run::{Question, RunPresence};
use matsu_core::secret;
use matsu_core::session::{EndReason, Session, SessionState};
use matsu_core::task::{NewTask, Task, TaskKind};
use serde::{Deserialize, Serialize};

use crate::agents::{Agents, RunError, RunOptions};
use crate::runtime::service;
use crate::sessions::{Waiters, passkey};
use crate::tasks::{TaskError, Tasks};

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

/// What a task for an agent that comes by itself remembers.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedTask {
    pub message: String,
}

/// The instructions of an agent that is started for a task, besides the task.
const REPORT: &str = "You work on this as a task of Matsu, and you are connected to it as the MCP server matsu. When you \
                      are done, or cannot go on, call report_completed with result success, failed or blocked and a \
                      summary. If a reply says that there is a notification, call get_notifications and follow it.";

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

    /// The chat of this id.
    ///
    /// # Errors
    /// As the store's.
    pub async fn read(self, id: &ChatId) -> Result<Chat, StoreError> {
        self.runtime.store().run(ReadChat(id.clone())).await
    }

    /// Messages of a chat, oldest first.
    ///
    /// # Errors
    /// As the store's.
    pub async fn messages(self, filter: MessageFilter) -> Result<Vec<Message>, StoreError> {
        self.runtime.store().run(ListMessages(filter)).await
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
                let message = format!("there is no definition {definition}; there are {}", known.join(", "));
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
            agent_id: Some(agent.clone()),
            project_id: project.clone(),
            models_json: None,
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
        let Some(agent) = &chat.agent_id else { return Ok(None) };
        let filter = SessionFilter {
            owner: None,
            agent_id: Some(agent.clone()),
            project_id: Some(chat.project_id.clone()),
            state: Some(SessionState::Active),
        };
        let now = self.runtime.clock().now();
        let live = self
            .runtime
            .store()
            .run(ListSessions { filter: filter.clone(), page: PageRequest::default() })
            .await?
            .items;
        Ok(live.into_iter().find(|session| session.chat_id.as_ref() == Some(&chat.id) && session.is_live(now)))
    }

    /// Where the agent of a chat is. `None` for a chat with models.
    ///
    /// # Errors
    /// As the store's.
    pub async fn agent_state(self, chat: &Chat) -> Result<Option<AgentState>, StoreError> {
        let Some(agent) = &chat.agent_id else { return Ok(None) };
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

    /// Gives a task to an agent: one with a definition is started for it, another takes it when it comes.
    ///
    /// # Errors
    /// An unknown agent or project; a blank message; a definition that cannot be started here.
    pub async fn assign_task(
        self,
        owner: &Principal,
        agent: &AgentId,
        project: &ProjectId,
        message: String,
    ) -> Result<Task, TaskError> {
        if message.trim().is_empty() {
            return Err(refused("message is empty; write what the agent shall do").into());
        }
        let worker = self.runtime.store().run(ReadAgent(agent.clone())).await?;
        let project = self.runtime.store().run(ReadProject(project.clone())).await?;
        if worker.definition.is_some() {
            return self.start_worker(owner, worker, project, message).await;
        }
        let (agent, project) = (&worker.id, &project.id);
        let now = self.runtime.clock().now();
        let title = message.lines().next().unwrap_or_default().to_owned();
        let config = HandedTask { message };
        let task = NewTask {
            id: TaskId::mint(now),
            kind: TaskKind::Agent,
            owner: owner.clone(),
            project_id: Some(project.to_string()),
            title: format!("{agent}: {title}"),
            config_json: serde_json::to_string(&config).map_err(|error| TaskError::Invalid(error.to_string()))?,
            budget: Vec::new(),
            assignee: Some(agent.to_string()),
            parent_id: None,
            depends_on: Vec::new(),
            jobs: Vec::new(),
            idempotency: None,
            created_at: now,
        };
        Ok(Tasks::of(self.runtime).submit(task).await?.task)
    }

    async fn start_worker(
        self,
        owner: &Principal,
        worker: Agent,
        project: Project,
        message: String,
    ) -> Result<Task, TaskError> {
        let known = self.runtime.agents().map(|host| host.agents()).unwrap_or_default();
        let known = known.into_iter().find(|known| Some(&known.name) == worker.definition.as_ref());
        let takes_system_prompt = known.as_ref().is_some_and(|known| known.supports.system_prompt);
        let reports = known.is_some_and(|known| known.connect_back.is_enabled);
        let who = worker.system_prompt.clone().filter(|_| !takes_system_prompt);
        let report = reports.then(|| REPORT.to_owned());
        let body = message.clone();
        let wish = RunWish {
            agent: worker.definition.unwrap_or_default(),
            message: who.into_iter().chain([message]).chain(report).collect::<Vec<_>>().join("\n\n"),
            system_prompt: worker.system_prompt.filter(|_| takes_system_prompt),
            working_directory: project.working_directory,
            presence: Some(RunPresence { agent_id: worker.id, project_id: project.id }),
            ..RunWish::default()
        };
        let (tool, priority, idempotency_key, parent) = ("hand_task", Priority::Medium, None, None);
        let (depends_on, run_at) = (Vec::new(), None);
        let options =
            RunOptions { tool, priority, idempotency_key, body, depends_on, run_at, parent, started_in: None };
        match Agents::of(self.runtime).start_runs(owner, vec![wish], options).await {
            Ok(started) => Ok(started.inserted.task),
            Err(RunError::Refused(refusal)) => {
                Err(StoreError::Refused { code: refusal.code, message: refusal.message }.into())
            }
            Err(RunError::Task(error)) => Err(error),
        }
    }

    /// Gives a task to another agent; the session that worked on it is interrupted.
    ///
    /// # Errors
    /// A foreign task, an unknown agent, a task that has ended or that Matsu itself runs.
    pub async fn reassign(self, owner: &Principal, id: &TaskId, to: &AgentId) -> Result<Task, TaskError> {
        Tasks::of(self.runtime).read_own(owner, id).await?;
        self.runtime.store().run(ReadAgent(to.clone())).await?;
        let request = Reassign { task_id: id.clone(), to: Some(to.to_string()), now: self.runtime.clock().now() };
        Ok(self.runtime.store().run(request).await?)
    }
}
