//! Answers as far as they have arrived, as drafts: what is kept if the rest never arrives, and what readers are shown
//! meanwhile. There is one of each answer, in [`OpenAnswers`]; who stores drafts and who shows them read the same.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use matsu_core::clock::Timestamp;
use matsu_core::history::{Entry, Item, Maker, Role};
use matsu_core::ports::provider::Provider;
use matsu_core::transcript::Draft;

use crate::models::agentic_loop::Event;

/// The answers to one line, one for each model that was asked, in their order.
#[derive(Clone, Debug, Default)]
pub struct OpenAnswers(Arc<Mutex<Vec<OpenAnswer>>>);

impl OpenAnswers {
    pub fn of<'a>(models: impl IntoIterator<Item = &'a Arc<dyn Provider>>) -> Self {
        let answers = models.into_iter().map(|model| OpenAnswer::new(model.name(), model.maker()));
        Self(Arc::new(Mutex::new(answers.collect())))
    }

    /// Takes in an event of the model at this place.
    pub fn take(&self, at: usize, event: &Event, now: Timestamp) {
        if let Some(answer) = self.lock().get_mut(at) {
            answer.take(event, now);
        }
    }

    /// What the model at this place has answered so far.
    pub fn draft(&self, at: usize) -> Option<Draft> {
        self.lock().get(at).map(|answer| answer.draft.clone())
    }

    /// What all of them have answered so far.
    #[must_use]
    pub fn drafts(&self) -> Vec<Draft> {
        self.lock().iter().map(|answer| answer.draft.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OpenAnswer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct OpenAnswer {
    draft: Draft,
    maker: Maker,
}

impl OpenAnswer {
    fn new(model: &str, maker: Maker) -> Self {
        Self { draft: Draft { model: model.to_owned(), entries: Vec::new() }, maker }
    }

    fn take(&mut self, event: &Event, now: Timestamp) {
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
                match self.draft.entries.last_mut() {
                    Some(last) if last.role == Role::Tool => last.content.push(result),
                    _ => self.draft.entries.push(Entry::tool(vec![result], now)),
                }
            }
            Event::Thinking(_) | Event::Asked { .. } | Event::Notice(_) | Event::Done(_) => {}
        }
    }

    /// The entry that the model writes now. After results, that is a new one.
    fn spoken(&mut self, now: Timestamp) -> &mut Entry {
        let Draft { model, entries } = &mut self.draft;
        if entries.last().is_none_or(|last| last.role != Role::Assistant) {
            entries.push(Entry::assistant(model.as_str(), Vec::new(), now).made_by(self.maker.clone()));
        }
        let at = entries.len() - 1;
        &mut entries[at]
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
            assert_eq!(validate(&open_answer.draft.entries), Ok(()), "{event:?}");
        }
        let said: Vec<String> = open_answer.draft.entries.iter().map(Entry::spoken).collect();
        assert_eq!(said, ["Let me.", "", "Seen."]);
        assert_eq!(open_answer.draft.entries[0].content.len(), 3);
    }
}
