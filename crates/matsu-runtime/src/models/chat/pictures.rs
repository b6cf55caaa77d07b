//! The images of one message, or of one result of a tool, as a reader asks for them: apart from the words, because they
//! are large and never change.

use matsu_core::history::{Entry, Image, Item};
use matsu_core::id::ChatId;
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;

use super::LiveChats;
use super::open_chats::ChatError;

impl LiveChats {
    /// The images of a message, or of the result of a call, by its id.
    ///
    /// # Errors
    /// There is no such chat, it belongs to another principal, nothing in it has this id, or the store.
    pub async fn images(&self, owner: &Principal, id: &ChatId, of: &str) -> Result<Vec<Image>, ChatError> {
        let open_chat = self.open_chats().look_into(owner, id).await?;
        let stored = open_chat.entries().await?;
        // An answer under way is not stored yet.
        let found = find(&stored, of).or_else(|| find(&self.under_way(id), of));
        found.ok_or_else(|| StoreError::NotFound { what: "message or call of a tool", id: of.to_owned() }.into())
    }
}

fn find(entries: &[Entry], of: &str) -> Option<Vec<Image>> {
    entries.iter().find_map(|entry| {
        if entry.id.as_str() == of {
            return Some(entry.images().cloned().collect());
        }
        entry.content.iter().find_map(|item| match item {
            Item::ToolResult { id, images, .. } if id == of => Some(images.clone()),
            _ => None,
        })
    })
}
