//! One entry of a transcript and the items in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Image;
use crate::clock::Timestamp;
use crate::id::EntryId;
use crate::words::words;

words! {
    /// The author of an entry.
    pub enum Role {
        /// Only as the first entry.
        System = "system",
        User = "user",
        /// A model; [`Entry::model`] says which.
        Assistant = "assistant",
        /// What tools answered, and nothing else.
        Tool = "tool",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub role: Role,
    pub content: Vec<Item>,
    pub id: EntryId,
    pub at: Timestamp,
    /// The model that answered, by its name in the chat. Assistants only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What made it, so that signatures and sealed thoughts go back to their maker alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<Maker>,
    /// Why the answer ended before the model was done; absent: it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_by: Option<String>,
}

/// A wire format and the vendor's name of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    pub wire: String,
    pub model: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolCall {
        id: String,
        name: String,
        /// An object; a string is text that the model meant as arguments and that cannot be parsed.
        arguments: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolResult {
        id: String,
        name: String,
        content: String,
        #[serde(default)]
        is_error: bool,
        /// What the tool showed beside its words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    Image(Image),
    Thinking {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The vendor's own item, where text and signature do not hold all of it. Goes back word for word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<Value>,
    },
}

impl Item {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), signature: None }
    }

    /// What a tool answered in words.
    pub fn result(id: impl Into<String>, name: impl Into<String>, content: impl Into<String>, is_error: bool) -> Self {
        Self::ToolResult { id: id.into(), name: name.into(), content: content.into(), is_error, images: Vec::new() }
    }

    /// The name of its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Text { .. } => "text",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolResult { .. } => "tool_result",
            Self::Image(_) => "image",
            Self::Thinking { .. } => "thinking",
        }
    }
}

impl Entry {
    #[must_use]
    pub fn new(role: Role, content: Vec<Item>, now: Timestamp) -> Self {
        Self { role, content, id: EntryId::mint(now), at: now, model: None, maker: None, cut_by: None }
    }

    pub fn user(text: impl Into<String>, now: Timestamp) -> Self {
        Self::new(Role::User, vec![Item::text(text)], now)
    }

    pub fn system(text: impl Into<String>, now: Timestamp) -> Self {
        Self::new(Role::System, vec![Item::text(text)], now)
    }

    pub fn assistant(model: impl Into<String>, content: Vec<Item>, now: Timestamp) -> Self {
        Self { model: Some(model.into()), ..Self::new(Role::Assistant, content, now) }
    }

    #[must_use]
    pub fn tool(results: Vec<Item>, now: Timestamp) -> Self {
        Self::new(Role::Tool, results, now)
    }

    #[must_use]
    pub fn made_by(self, maker: Maker) -> Self {
        Self { maker: Some(maker), ..self }
    }

    /// The images of it, without those of tools.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.content.iter().filter_map(|item| match item {
            Item::Image(image) => Some(image),
            _ => None,
        })
    }

    /// The text of it, without tools and thoughts.
    #[must_use]
    pub fn spoken(&self) -> String {
        let parts = self.content.iter().filter_map(|item| match item {
            Item::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        parts.collect::<Vec<_>>().concat()
    }
}
