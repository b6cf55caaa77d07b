//! An answer as far as it has arrived, as entries: what is kept if the rest never arrives.

use matsu_core::clock::Timestamp;
use matsu_core::history::{Entry, Item, Maker, Role};

use crate::models::agentic_loop::Event;

pub struct OpenAnswer {
    model: String,
    maker: Maker,
    entries: Vec<Entry>,
}

impl OpenAnswer {
    pub fn new(model: &str, maker: Maker) -> Self {
        Self { model: model.to_owned(), maker, entries: Vec::new() }
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn take(&mut self, event: &Event, now: Timestamp) {
        match event {
            Event::Text(text) => match self.spoken(now).content.last_mut() {
                Some(Item::Text { text: before, .. }) => before.push_str(text),
                _ => self.spoken(now).content.push(Item::text(text.as_str())),
            },
            Event::ToolCall { id, name, arguments } => {
                let (id, name, arguments) = (id.clone(), name.clone(), arguments.clone());
                self.spoken(now).content.push(Item::ToolCall { id, name, arguments, signature: None });
            }
            Event::ToolResult { id, name, content, is_error, images } => {
                let (id, name, content, images) = (id.clone(), name.clone(), content.clone(), images.clone());
                let result = Item::ToolResult { id, name, content, is_error: *is_error, images };
                match self.entries.last_mut() {
                    Some(last) if last.role == Role::Tool => last.content.push(result),
                    _ => self.entries.push(Entry::tool(vec![result], now)),
                }
            }
            Event::Thinking(_) | Event::Asked { .. } | Event::Notice(_) | Event::Done(_) => {}
        }
    }

    /// The entry that the model writes now. After results, that is a new one.
    fn spoken(&mut self, now: Timestamp) -> &mut Entry {
        let begin = self.entries.last().is_none_or(|last| last.role != Role::Assistant);
        if begin {
            self.entries.push(Entry::assistant(&self.model, Vec::new(), now).made_by(self.maker.clone()));
        }
        let at = self.entries.len() - 1;
        &mut self.entries[at]
    }
}

#[cfg(test)]
mod tests {
    use matsu_core::history::validate;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_open_answer_is_a_valid_transcript_at_every_moment() {
        let call = |id: &str| Event::ToolCall { id: id.into(), name: "look".into(), arguments: json!({}) };
        let result = |id: &str| Event::ToolResult {
            id: id.into(),
            name: "look".into(),
            content: "x".into(),
            is_error: false,
            images: Vec::new(),
        };
        let events = [
            Event::Text("Let ".into()),
            Event::Text("me.".into()),
            call("a"),
            call("b"),
            result("a"),
            result("b"),
            Event::Notice("n".into()),
            Event::Text("Seen.".into()),
        ];
        let mut open_answer = OpenAnswer::new("m", Maker { wire: "w".into(), model: "m".into() });
        for event in &events {
            open_answer.take(event, Timestamp::from_millis(1));
            assert_eq!(validate(open_answer.entries()), Ok(()), "{event:?}");
        }
        let said: Vec<String> = open_answer.entries().iter().map(Entry::spoken).collect();
        assert_eq!(said, ["Let me.", "", "Seen."]);
        assert_eq!(open_answer.entries()[0].content.len(), 3);
    }
}
