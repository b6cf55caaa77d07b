//! Chats: open, write, hand out, acknowledge, end.

use crate::access::Viewer;
use crate::chat::{Chat, Message, NewChat, NewMessage};
use crate::clock::Timestamp;
use crate::id::{ChatId, MessageId, SessionId};
use crate::page::{Page, PageRequest};

use super::request;

/// Opens a chat. An agent has one open chat in a project: if there is one, it is returned and nothing changes.
#[derive(Clone, Debug)]
pub struct OpenChat(pub NewChat);
request!(OpenChat => OpenedChat);

#[derive(Clone, Debug)]
pub struct ReadChat(pub ChatId);
request!(ReadChat => Chat);

/// The chat, if the viewer may see it; else it is not found.
#[derive(Clone, Debug)]
pub struct ReadChatFor {
    pub viewer: Viewer,
    pub id: ChatId,
}
request!(ReadChatFor => Chat);

/// The chats that the viewer may see, newest first: chats with named agents are for admins, chats with models for
/// their owner.
#[derive(Clone, Debug)]
pub struct ListChats {
    pub viewer: Viewer,
    pub page: PageRequest,
}
request!(ListChats => Page<Chat>);

/// Which of these chats the viewer may see.
#[derive(Clone, Debug)]
pub struct ChatsKnownTo {
    pub viewer: Viewer,
    pub ids: Vec<ChatId>,
}
request!(ChatsKnownTo => Vec<ChatId>);

/// Adds a message under the chat's next number. A person's message to an agent that is busy with a task makes one
/// notification for that session, or adds to the one it has not been given yet. An ended chat is `Closed`.
#[derive(Clone, Debug)]
pub struct InsertMessage(pub NewMessage);
request!(InsertMessage => Message);

/// Oldest first.
#[derive(Clone, Debug)]
pub struct ListMessages(pub MessageFilter);
request!(ListMessages => Vec<Message>);

request! {
    /// An agent writes through its session: in its chat, or in the open chat of its agent and project. Acknowledges up
    /// to the message it answers, else what was handed out over the same connection.
    PostMessage => Message
}

/// Notes that the agent has everything up to here. Only ever grows; beyond the last message it is `Refused`.
#[derive(Clone, Debug)]
pub struct AcknowledgeMessages {
    pub chat_id: ChatId,
    pub upto_seq: i64,
}
request!(AcknowledgeMessages => ());

request! {
    /// Hands out the messages of persons that the agent has not acknowledged, in order, and notes that it did.
    TakeMessages => Taken
}

/// A call is lost: what it was to hand out does not count as given.
#[derive(Clone, Debug)]
pub struct TakeBackMessages {
    pub session: SessionId,
    pub handed_to: String,
}
request!(TakeBackMessages => ());

/// The chat is over, and its session gets to know it. Repeating it changes nothing.
#[derive(Clone, Debug)]
pub struct EndChat {
    pub id: ChatId,
    pub now: Timestamp,
}
request!(EndChat => Chat);

/// Chats whose agent was called before `called_before` and has not connected get a system message, once. Returns
/// them in id order.
#[derive(Clone, Debug)]
pub struct GiveUpOnAgents {
    pub called_before: Timestamp,
    pub line: String,
    pub now: Timestamp,
}
request!(GiveUpOnAgents => Vec<ChatId>);

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
pub struct PostMessage {
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
