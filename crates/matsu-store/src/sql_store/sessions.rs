//! Projects, agents, chats, sessions and notifications: each method names its transition.

use async_trait::async_trait;
use matsu_core::access::Viewer;
use matsu_core::agent::{Agent, NewAgent};
use matsu_core::chat::{Chat, Message, NewChat, NewMessage};
use matsu_core::clock::Timestamp;
use matsu_core::id::{AgentId, ChatId, JobId, NotificationId, ProjectId, RunId, SessionId};
use matsu_core::job::Lease;
use matsu_core::notification::{NewNotice, Notification};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{
    ChatStore, DirectoryStore, EndSession, EndTurn, Give, MessageFilter, NewSession, NotificationStore, OpenedChat,
    PendingInterrupt, Report, Reported, Say, SessionFilter, SessionKey, SessionStore, Standing, StoreError,
    TakeMessages, Taken, Turn, TurnStore, UnreadResult,
};
use matsu_core::principal::Principal;
use matsu_core::project::{NewProject, Project};
use matsu_core::run::Question;
use matsu_core::session::{Said, Session, SessionView};

use super::SqlStore;
use crate::transitions::chats::{ChatsKnownTo, EndChat, GiveUpOnAgents, ListChats, OpenChat, ReadChat};
use crate::transitions::directory::{InsertAgent, InsertProject, ListAgents, ListProjects, ReadAgent, ReadProject};
use crate::transitions::messages::{AcknowledgeMessages, InsertMessage, ListMessages, TakeBackMessages};
use crate::transitions::notifications::{
    AcknowledgeGiven, InsertNotice, ListNotifications, PendingInterrupts, SweepNotifications, TakeBackNotifications,
    UnreadResults,
};
use crate::transitions::sessions::{SweepSessions, TouchSession};
use crate::transitions::standing::{ListSessions, ReadReport, ReadSession, ReadStanding, ReadView, SessionOfRun};
use crate::transitions::turns::{BeginTurn, ReadQuestion, ReleaseChats, TurnUnderWay};

#[async_trait]
impl DirectoryStore for SqlStore {
    async fn insert_project(&self, project: NewProject) -> Result<Project, StoreError> {
        self.write(InsertProject(project)).await
    }

    async fn project(&self, id: &ProjectId) -> Result<Project, StoreError> {
        self.read(ReadProject(id.clone())).await
    }

    async fn list_projects(&self, page: &PageRequest) -> Result<Page<Project>, StoreError> {
        self.read(ListProjects(page.clone())).await
    }

    async fn insert_agent(&self, agent: NewAgent) -> Result<Agent, StoreError> {
        self.write(InsertAgent(agent)).await
    }

    async fn agent(&self, id: &AgentId) -> Result<Agent, StoreError> {
        self.read(ReadAgent(id.clone())).await
    }

    async fn list_agents(&self, page: &PageRequest) -> Result<Page<Agent>, StoreError> {
        self.read(ListAgents(page.clone())).await
    }
}

#[async_trait]
impl ChatStore for SqlStore {
    async fn open_chat(&self, chat: NewChat) -> Result<OpenedChat, StoreError> {
        self.write(OpenChat(chat)).await
    }

    async fn chat(&self, id: &ChatId) -> Result<Chat, StoreError> {
        self.read(ReadChat(id.clone())).await
    }

    async fn list_chats(&self, viewer: &Viewer, page: &PageRequest) -> Result<Page<Chat>, StoreError> {
        self.read(ListChats { viewer: viewer.clone(), page: page.clone() }).await
    }

    async fn chats_known_to(&self, viewer: &Viewer, ids: &[ChatId]) -> Result<Vec<ChatId>, StoreError> {
        self.read(ChatsKnownTo { viewer: viewer.clone(), ids: ids.to_vec() }).await
    }

    async fn insert_message(&self, message: NewMessage) -> Result<Message, StoreError> {
        self.write(InsertMessage(message)).await
    }

    async fn list_messages(&self, filter: MessageFilter) -> Result<Vec<Message>, StoreError> {
        self.read(ListMessages(filter)).await
    }

    async fn say(&self, request: Say) -> Result<Message, StoreError> {
        self.write(request).await
    }

    async fn acknowledge_messages(&self, chat: &ChatId, upto_seq: i64) -> Result<(), StoreError> {
        self.write(AcknowledgeMessages { chat_id: chat.clone(), upto_seq }).await
    }

    async fn take_messages(&self, request: TakeMessages) -> Result<Taken, StoreError> {
        self.write(request).await
    }

    async fn take_back_messages(&self, session: &SessionId, handed_to: &str) -> Result<(), StoreError> {
        self.write(TakeBackMessages { session: session.clone(), handed_to: handed_to.to_owned() }).await
    }

    async fn end_chat(&self, id: &ChatId, now: Timestamp) -> Result<Chat, StoreError> {
        self.write(EndChat { id: id.clone(), now }).await
    }

    async fn give_up_on_agents(
        &self,
        called_before: Timestamp,
        line: &str,
        now: Timestamp,
    ) -> Result<Vec<ChatId>, StoreError> {
        self.write(GiveUpOnAgents { called_before, line: line.to_owned(), now }).await
    }
}

#[async_trait]
impl SessionStore for SqlStore {
    async fn begin_session(&self, session: NewSession) -> Result<Session, StoreError> {
        self.write(session).await
    }

    async fn session(&self, id: &SessionId) -> Result<Session, StoreError> {
        self.read(ReadSession(id.clone())).await
    }

    async fn standing(&self, key: &SessionKey, now: Timestamp) -> Result<Option<Standing>, StoreError> {
        self.read(ReadStanding { key: key.clone(), now }).await
    }

    async fn touch_session(&self, id: &SessionId, now: Timestamp, expires_at: Timestamp) -> Result<(), StoreError> {
        self.write(TouchSession { id: id.clone(), now, expires_at }).await
    }

    async fn session_view(
        &self,
        id: &SessionId,
        after_seq: Option<i64>,
        now: Timestamp,
    ) -> Result<SessionView, StoreError> {
        self.read(ReadView { id: id.clone(), after_seq, now }).await
    }

    async fn end_session(&self, request: EndSession) -> Result<Session, StoreError> {
        self.write(request).await
    }

    async fn report(&self, report: Report) -> Result<Reported, StoreError> {
        self.write(report).await
    }

    async fn report_of(&self, id: &SessionId) -> Result<Option<Said>, StoreError> {
        self.read(ReadReport(id.clone())).await
    }

    async fn session_of_run(&self, run: &RunId) -> Result<Option<Session>, StoreError> {
        self.read(SessionOfRun(run.clone())).await
    }

    async fn list_sessions(&self, filter: &SessionFilter, page: &PageRequest) -> Result<Page<Session>, StoreError> {
        self.read(ListSessions { filter: filter.clone(), page: page.clone() }).await
    }

    async fn sweep_sessions(
        &self,
        now: Timestamp,
        ended_before: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<SessionId>, StoreError> {
        self.write(SweepSessions { now, ended_before, rows_max }).await
    }
}

#[async_trait]
impl NotificationStore for SqlStore {
    async fn insert_notice(&self, notice: NewNotice) -> Result<Notification, StoreError> {
        self.write(InsertNotice(notice)).await
    }

    async fn give_notifications(&self, request: Give) -> Result<Vec<Notification>, StoreError> {
        self.write(request).await
    }

    async fn acknowledge_given(&self, session: &SessionId, now: Timestamp) -> Result<u64, StoreError> {
        self.write(AcknowledgeGiven { session: session.clone(), now }).await
    }

    async fn take_back_notifications(&self, session: &SessionId, ids: &[NotificationId]) -> Result<(), StoreError> {
        self.write(TakeBackNotifications { session: session.clone(), ids: ids.to_vec() }).await
    }

    async fn pending_interrupts(&self, now: Timestamp) -> Result<Vec<PendingInterrupt>, StoreError> {
        self.read(PendingInterrupts { now }).await
    }

    async fn list_notifications(
        &self,
        session: Option<&SessionId>,
        owner: Option<&Principal>,
        page: &PageRequest,
    ) -> Result<Page<Notification>, StoreError> {
        self.read(ListNotifications { session: session.cloned(), owner: owner.cloned(), page: page.clone() }).await
    }

    async fn sweep_notifications(
        &self,
        now: Timestamp,
        read_before: Timestamp,
        rows_max: u32,
    ) -> Result<u64, StoreError> {
        self.write(SweepNotifications { now, read_before, rows_max }).await
    }

    async fn unread_results(&self, owner: &Principal, rows_max: u32) -> Result<Vec<UnreadResult>, StoreError> {
        self.read(UnreadResults(owner.clone(), rows_max)).await
    }
}

#[async_trait]
impl TurnStore for SqlStore {
    async fn begin_turn(&self, lease: &Lease, rows_max: u32, now: Timestamp) -> Result<Option<Turn>, StoreError> {
        self.write(BeginTurn { lease: lease.clone(), rows_max, now }).await
    }

    async fn turn_under_way(&self, lease: &Lease, rows_max: u32) -> Result<Option<Turn>, StoreError> {
        self.write(TurnUnderWay { lease: lease.clone(), rows_max }).await
    }

    async fn end_turn(&self, turn: EndTurn) -> Result<(), StoreError> {
        self.write(turn).await
    }

    async fn question_in(&self, chat: &ChatId) -> Result<Option<(JobId, Question)>, StoreError> {
        self.read(ReadQuestion(chat.clone())).await
    }

    async fn release_chats(&self, line: &str, now: Timestamp) -> Result<Vec<ChatId>, StoreError> {
        self.write(ReleaseChats { line: line.to_owned(), now }).await
    }
}
