//! The same faults for projects, agents, chats, sessions and notifications.

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

use super::FaultyStore;

#[async_trait]
impl DirectoryStore for FaultyStore {
    async fn insert_project(&self, project: NewProject) -> Result<Project, StoreError> {
        self.pass("insert_project", self.inner.insert_project(project)).await
    }

    async fn project(&self, id: &ProjectId) -> Result<Project, StoreError> {
        self.pass("project", self.inner.project(id)).await
    }

    async fn list_projects(&self, page: &PageRequest) -> Result<Page<Project>, StoreError> {
        self.pass("list_projects", self.inner.list_projects(page)).await
    }

    async fn insert_agent(&self, agent: NewAgent) -> Result<Agent, StoreError> {
        self.pass("insert_agent", self.inner.insert_agent(agent)).await
    }

    async fn agent(&self, id: &AgentId) -> Result<Agent, StoreError> {
        self.pass("agent", self.inner.agent(id)).await
    }

    async fn list_agents(&self, page: &PageRequest) -> Result<Page<Agent>, StoreError> {
        self.pass("list_agents", self.inner.list_agents(page)).await
    }
}

#[async_trait]
impl ChatStore for FaultyStore {
    async fn open_chat(&self, chat: NewChat) -> Result<OpenedChat, StoreError> {
        self.pass("open_chat", self.inner.open_chat(chat)).await
    }

    async fn chat(&self, id: &ChatId) -> Result<Chat, StoreError> {
        self.pass("chat", self.inner.chat(id)).await
    }

    async fn list_chats(&self, viewer: &Viewer, page: &PageRequest) -> Result<Page<Chat>, StoreError> {
        self.pass("list_chats", self.inner.list_chats(viewer, page)).await
    }

    async fn chats_known_to(&self, viewer: &Viewer, ids: &[ChatId]) -> Result<Vec<ChatId>, StoreError> {
        self.pass("chats_known_to", self.inner.chats_known_to(viewer, ids)).await
    }

    async fn insert_message(&self, message: NewMessage) -> Result<Message, StoreError> {
        self.pass("insert_message", self.inner.insert_message(message)).await
    }

    async fn list_messages(&self, filter: MessageFilter) -> Result<Vec<Message>, StoreError> {
        self.pass("list_messages", self.inner.list_messages(filter)).await
    }

    async fn say(&self, request: Say) -> Result<Message, StoreError> {
        self.pass("say", self.inner.say(request)).await
    }

    async fn acknowledge_messages(&self, chat: &ChatId, upto_seq: i64) -> Result<(), StoreError> {
        self.pass("acknowledge_messages", self.inner.acknowledge_messages(chat, upto_seq)).await
    }

    async fn take_messages(&self, request: TakeMessages) -> Result<Taken, StoreError> {
        self.pass("take_messages", self.inner.take_messages(request)).await
    }

    async fn take_back_messages(&self, session: &SessionId, handed_to: &str) -> Result<(), StoreError> {
        self.pass("take_back_messages", self.inner.take_back_messages(session, handed_to)).await
    }

    async fn end_chat(&self, id: &ChatId, now: Timestamp) -> Result<Chat, StoreError> {
        self.pass("end_chat", self.inner.end_chat(id, now)).await
    }

    async fn give_up_on_agents(
        &self,
        called_before: Timestamp,
        line: &str,
        now: Timestamp,
    ) -> Result<Vec<ChatId>, StoreError> {
        self.pass("give_up_on_agents", self.inner.give_up_on_agents(called_before, line, now)).await
    }
}

#[async_trait]
impl SessionStore for FaultyStore {
    async fn begin_session(&self, session: NewSession) -> Result<Session, StoreError> {
        self.pass("begin_session", self.inner.begin_session(session)).await
    }

    async fn session(&self, id: &SessionId) -> Result<Session, StoreError> {
        self.pass("session", self.inner.session(id)).await
    }

    async fn standing(&self, key: &SessionKey, now: Timestamp) -> Result<Option<Standing>, StoreError> {
        self.pass("standing", self.inner.standing(key, now)).await
    }

    async fn touch_session(&self, id: &SessionId, now: Timestamp, expires_at: Timestamp) -> Result<(), StoreError> {
        self.pass("touch_session", self.inner.touch_session(id, now, expires_at)).await
    }

    async fn report_of(&self, id: &SessionId) -> Result<Option<Said>, StoreError> {
        self.pass("report_of", self.inner.report_of(id)).await
    }

    async fn session_view(
        &self,
        id: &SessionId,
        after_seq: Option<i64>,
        now: Timestamp,
    ) -> Result<SessionView, StoreError> {
        self.pass("session_view", self.inner.session_view(id, after_seq, now)).await
    }

    async fn end_session(&self, request: EndSession) -> Result<Session, StoreError> {
        self.pass("end_session", self.inner.end_session(request)).await
    }

    async fn report(&self, report: Report) -> Result<Reported, StoreError> {
        self.pass("report", self.inner.report(report)).await
    }

    async fn session_of_run(&self, run: &RunId) -> Result<Option<Session>, StoreError> {
        self.pass("session_of_run", self.inner.session_of_run(run)).await
    }

    async fn list_sessions(&self, filter: &SessionFilter, page: &PageRequest) -> Result<Page<Session>, StoreError> {
        self.pass("list_sessions", self.inner.list_sessions(filter, page)).await
    }

    async fn sweep_sessions(
        &self,
        now: Timestamp,
        ended_before: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<SessionId>, StoreError> {
        self.pass("sweep_sessions", self.inner.sweep_sessions(now, ended_before, rows_max)).await
    }
}

#[async_trait]
impl NotificationStore for FaultyStore {
    async fn insert_notice(&self, notice: NewNotice) -> Result<Notification, StoreError> {
        self.pass("insert_notice", self.inner.insert_notice(notice)).await
    }

    async fn give_notifications(&self, request: Give) -> Result<Vec<Notification>, StoreError> {
        self.pass("give_notifications", self.inner.give_notifications(request)).await
    }

    async fn acknowledge_given(&self, session: &SessionId, now: Timestamp) -> Result<u64, StoreError> {
        self.pass("acknowledge_given", self.inner.acknowledge_given(session, now)).await
    }

    async fn take_back_notifications(&self, session: &SessionId, ids: &[NotificationId]) -> Result<(), StoreError> {
        self.pass("take_back_notifications", self.inner.take_back_notifications(session, ids)).await
    }

    async fn pending_interrupts(&self, now: Timestamp) -> Result<Vec<PendingInterrupt>, StoreError> {
        self.pass("pending_interrupts", self.inner.pending_interrupts(now)).await
    }

    async fn list_notifications(
        &self,
        session: Option<&SessionId>,
        owner: Option<&Principal>,
        page: &PageRequest,
    ) -> Result<Page<Notification>, StoreError> {
        self.pass("list_notifications", self.inner.list_notifications(session, owner, page)).await
    }

    async fn sweep_notifications(
        &self,
        now: Timestamp,
        read_before: Timestamp,
        rows_max: u32,
    ) -> Result<u64, StoreError> {
        self.pass("sweep_notifications", self.inner.sweep_notifications(now, read_before, rows_max)).await
    }

    async fn unread_results(&self, owner: &Principal, rows_max: u32) -> Result<Vec<UnreadResult>, StoreError> {
        self.pass("unread_results", self.inner.unread_results(owner, rows_max)).await
    }
}

#[async_trait]
impl TurnStore for FaultyStore {
    async fn begin_turn(&self, lease: &Lease, rows_max: u32, now: Timestamp) -> Result<Option<Turn>, StoreError> {
        self.pass("begin_turn", self.inner.begin_turn(lease, rows_max, now)).await
    }

    async fn turn_under_way(&self, lease: &Lease, rows_max: u32) -> Result<Option<Turn>, StoreError> {
        self.pass("turn_under_way", self.inner.turn_under_way(lease, rows_max)).await
    }

    async fn end_turn(&self, turn: EndTurn) -> Result<(), StoreError> {
        self.pass("end_turn", self.inner.end_turn(turn)).await
    }

    async fn question_in(&self, chat: &ChatId) -> Result<Option<(JobId, Question)>, StoreError> {
        self.pass("question_in", self.inner.question_in(chat)).await
    }

    async fn release_chats(&self, line: &str, now: Timestamp) -> Result<Vec<ChatId>, StoreError> {
        self.pass("release_chats", self.inner.release_chats(line, now)).await
    }
}
