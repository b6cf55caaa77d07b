//! Messages as people read them, in a chat of either kind: who said what, with the tools they used folded into it.

use matsu_core::chat::{Message, Sender};
use matsu_core::clock::Timestamp;
use matsu_core::history::{Entry, Image, Item, Role};
use matsu_core::id::MessageId;
use matsu_core::transcript::StoredEntry;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct ShownMessage {
    pub id: String,
    pub seq: i64,
    pub sender: Sender,
    /// A principal or an agent; in a chat with models a model, or the role of what no model said.
    pub sender_id: String,
    /// The model that said it.
    pub model: Option<String>,
    pub content: String,
    pub reply_to: Option<MessageId>,
    pub images: Vec<ShownImage>,
    pub tools: Vec<ShownTool>,
    /// Absent in a chat with an agent, whose messages come whole.
    pub state: Option<ShownState>,
    pub at: Timestamp,
}

impl From<&Message> for ShownMessage {
    fn from(message: &Message) -> Self {
        Self {
            id: message.id.to_string(),
            seq: message.seq,
            sender: message.sender,
            sender_id: message.sender_id.clone(),
            model: None,
            content: message.content.clone(),
            reply_to: message.reply_to.clone(),
            images: Vec::new(),
            tools: Vec::new(),
            state: None,
            at: message.created_at,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShownTool {
    pub id: String,
    pub name: String,
    pub arguments: Value,
    /// Absent while it runs.
    pub result: Option<String>,
    pub is_error: bool,
    pub images: Vec<ShownImage>,
    /// Whether a person is asked whether it may run.
    pub asked: bool,
}

/// An image without its data, which is read apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownImage {
    pub media_type: String,
    pub bytes: usize,
}

impl From<&Image> for ShownImage {
    fn from(image: &Image) -> Self {
        Self { media_type: image.media_type.clone(), bytes: image.bytes() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownState {
    Complete,
    /// More is to come.
    Running,
    /// A person stopped it.
    Stopped,
    /// It ended before the model was done: an error, the time, the turns or the budget.
    Failed,
}

/// A line that was just stored.
impl From<&StoredEntry> for ShownMessage {
    fn from(line: &StoredEntry) -> Self {
        message(line.seq, &line.entry, ShownState::Complete)
    }
}

/// Tool entries become part of the message whose calls they answer.
#[must_use]
pub fn shown(entries: &[StoredEntry], state: ShownState) -> Vec<ShownMessage> {
    let mut messages: Vec<ShownMessage> = Vec::new();
    for StoredEntry { seq, entry } in entries {
        match entry.role {
            Role::Tool => answer(&mut messages, entry),
            Role::User | Role::Assistant | Role::System => messages.push(message(*seq, entry, state)),
        }
    }
    messages
}

fn message(seq: i64, entry: &Entry, state: ShownState) -> ShownMessage {
    let tools = entry.content.iter().filter_map(|item| match item {
        Item::ToolCall { id, name, arguments, .. } => Some(ShownTool {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
            result: None,
            is_error: false,
            images: Vec::new(),
            asked: false,
        }),
        _ => None,
    });
    ShownMessage {
        id: entry.id.as_str().to_owned(),
        seq,
        sender: if entry.role == Role::User { Sender::Person } else { Sender::Agent },
        sender_id: entry.model.clone().unwrap_or_else(|| entry.role.to_string()),
        model: entry.model.clone(),
        content: entry.spoken(),
        reply_to: None,
        images: entry.images().map(ShownImage::from).collect(),
        tools: tools.collect(),
        state: Some(match entry.cut_by.as_deref() {
            Some("cancelled") => ShownState::Stopped,
            Some(_) => ShownState::Failed,
            None => state,
        }),
        at: entry.at,
    }
}

fn answer(messages: &mut [ShownMessage], entry: &Entry) {
    for item in &entry.content {
        let Item::ToolResult { id, content, is_error, images, .. } = item else { continue };
        let tool = messages.iter_mut().rev().flat_map(|message| &mut message.tools).find(|tool| tool.id == *id);
        if let Some(tool) = tool {
            tool.result = Some(content.clone());
            tool.is_error = *is_error;
            tool.images = images.iter().map(ShownImage::from).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_folded_into_the_message_that_asked() {
        let now = Timestamp::from_millis(1);
        let call = Item::ToolCall { id: "c".into(), name: "look".into(), arguments: json!({}), signature: None };
        let image = Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
        let images = vec![image.clone()];
        let (id, name, content) = ("c".to_owned(), "look".to_owned(), "seen".to_owned());
        let result = Item::ToolResult { id, name, content, is_error: true, images };
        let entries = [
            Entry::new(Role::User, vec![Item::text("hi"), Item::Image(image)], now),
            Entry::assistant("m", vec![Item::text("hm"), call], now),
            Entry::tool(vec![result], now),
            Entry::assistant("m", vec![Item::text("ok")], now),
        ];
        let stored: Vec<StoredEntry> =
            entries.into_iter().zip(1..).map(|(entry, seq)| StoredEntry { seq, entry }).collect();
        let messages = shown(&stored, ShownState::Complete);
        assert_eq!(messages.iter().map(|message| message.seq).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!((messages[1].tools[0].result.as_deref(), messages[1].tools[0].is_error), (Some("seen"), true));
        assert_eq!((messages[0].images.len(), messages[1].tools[0].images[0].bytes), (1, 3));
    }
}
