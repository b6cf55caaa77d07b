//! Chats: open, write, hand out, acknowledge, end.

use async_trait::async_trait;

use crate::access::Viewer;
use crate::chat::{Chat, Message, NewChat, NewMessage};
use crate::clock::Timestamp;
use crate::id::{ChatId, MessageId, SessionId};
use crate::page::{Page, PageRequest};

use super::StoreError;

#[async_trait]
pub trait ChatStore {
    /// Opens a chat. An agent has one open chat in a project: if there is one, it is returned and nothing changes.
    async fn open_chat(&self, chat: NewChat) -> Result<OpenedChat, StoreError>;

    async fn chat(&self, id: &ChatId) -> Result<Chat, StoreError>;

    /// The chats that the viewer may see, newest first: chats with named agents are for admins, chats with models for
    /// their owner.
    async fn list_chats(&self, viewer: &Viewer, page: &PageRequest) -> Result<Page<Chat>, StoreError>;

    /// Which of these chats the viewer may see.
    async fn chats_known_to(&self, viewer: &Viewer, ids: &[ChatId]) -> Result<Vec<ChatId>, StoreError>;

    /// Adds a message under the chat's next number. A person's message to an agent that is busy with a task makes one
    /// notification for that session, or adds to the one it has not been given yet. An ended chat is `Closed`.
    async fn insert_message(&self, message: NewMessage) -> Result<Message, StoreError>;

    /// Oldest first.
    async fn list_messages(&self, filter: MessageFilter) -> Result<Vec<Message>, StoreError>;

    /// An agent writes through its session: in its chat, or in the open chat of its agent and project. Acknowledges up
    /// to the message it answers, else what was handed out over the same connection.
    async fn say(&self, request: Say) -> Result<Message, StoreError>;

    /// Notes that the agent has everything up to here. Only ever grows; beyond the last message it is `Refused`.
    async fn acknowledge_messages(&self, chat: &ChatId, upto_seq: i64) -> Result<(), StoreError>;

    /// Hands out the messages of persons that the agent has not acknowledged, in order, and notes that it did.
    async fn take_messages(&self, request: TakeMessages) -> Result<Taken, StoreError>;

    /// A call is lost: what it was to hand out does not count as given.
    async fn take_back_messages(&self, session: &SessionId, handed_to: &str) -> Result<(), StoreError>;

    /// The chat is over, and its session gets to know it. Repeating it changes nothing.
    async fn end_chat(&self, id: &ChatId, now: Timestamp) -> Result<Chat, StoreError>;

    /// Chats whose agent was called before `called_before` and has not connected get a system message, once. Returns
    /// them in id order.
    async fn give_up_on_agents(
        &self,
        called_before: Timestamp,
        line: &str,
        now: Timestamp,
    ) -> Result<Vec<ChatId>, StoreError>;
}

#[derive(Clone, Debug)]
pub struct OpenedChat {
    pub chat: Chat,
    pub existed: bool,
}

/// Which messages: after one number, or the last ones before another.
#[derive(Clone, Debug)]
pub struct MessageFilter {
    pub chat_id: ChatId,
    pub after_seq: Option<i64>,
    pub before_seq: Option<i64>,
    pub rows_max: u32,
}

#[derive(Clone, Debug)]
pub struct Say {
    pub id: MessageId,
    pub session_id: SessionId,
    pub content: String,
    pub reply_to: Option<MessageId>,
    /// The connection that sends it: what was handed out over another may never have arrived.
    pub connection: String,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct TakeMessages {
    pub session_id: SessionId,
    pub chat_id: ChatId,
    /// Read from here instead of from what was acknowledged.
    pub after_seq: Option<i64>,
    pub rows_max: u32,
    /// The connection they go out on.
    pub handed_to: String,
}

#[derive(Clone, Debug, Default)]
pub struct Taken {
    pub messages: Vec<TakenMessage>,
    /// There are more than were handed out.
    pub more: bool,
}

#[derive(Clone, Debug)]
pub struct TakenMessage {
    pub message: Message,
    /// It was handed out before and not acknowledged.
    pub redelivered: bool,
}
