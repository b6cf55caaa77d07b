//! What is shown of answers: one model after the other, though they answer at once; tool calls as one line each, kept
//! so that they can be looked at whole.

use std::collections::BTreeMap;
use std::io::Write;

use matsu_runtime::models::agentic_loop::Event;
use serde_json::Value;

/// Characters of arguments or results that one line shows.
const LINE_CHARS_MAX: usize = 100;

/// A tool call with what came of it.
#[derive(Clone, Debug, Default)]
pub struct ShownCall {
    pub id: String,
    pub name: String,
    pub arguments: Value,
    pub result: Option<(String, bool)>,
}

pub struct Stage {
    /// In the order in which they are shown.
    speakers: Vec<String>,
    current: usize,
    /// The models whose answers are complete.
    done: Vec<String>,
    /// Events of the models behind the one that is shown.
    waiting: BTreeMap<String, Vec<Event>>,
    pub calls: Vec<ShownCall>,
    at_line_start: bool,
}

impl Stage {
    /// Numbers of calls go on from those before.
    pub fn new(speakers: &[String], calls: Vec<ShownCall>) -> Self {
        Self {
            speakers: speakers.to_vec(),
            current: 0,
            done: Vec::new(),
            waiting: BTreeMap::new(),
            calls,
            at_line_start: true,
        }
    }

    pub fn take(&mut self, model: &str, event: &Event, out: &mut impl Write) {
        let is_current = self.speakers.get(self.current).is_some_and(|current| current == model);
        if !is_current {
            self.waiting.entry(model.to_owned()).or_default().push(event.clone());
            return;
        }
        self.show(model, event, out);
        while let Some(current) = self.speakers.get(self.current).cloned()
            && self.done.contains(&current)
        {
            self.current += 1;
            let Some(next) = self.speakers.get(self.current).cloned() else { break };
            for event in self.waiting.remove(&next).unwrap_or_default() {
                self.show(&next, &event, out);
            }
        }
        let _ = out.flush();
    }

    fn show(&mut self, model: &str, event: &Event, out: &mut impl Write) {
        match event {
            Event::Text(text) => {
                if self.at_line_start && !text.is_empty() {
                    let _ = write!(out, "[{model}]: ");
                }
                let _ = write!(out, "{text}");
                self.at_line_start = self.at_line_start && text.is_empty();
            }
            Event::Thinking(_) => {}
            Event::ToolCall { id, name, arguments } => {
                self.line(out);
                let shown =
                    ShownCall { id: id.clone(), name: name.clone(), arguments: arguments.clone(), result: None };
                self.calls.push(shown);
                let _ = writeln!(out, "  #{} {name} {}", self.calls.len(), short(&arguments.to_string()));
            }
            Event::Asked { name, .. } => {
                self.line(out);
                let _ = writeln!(out, "  {name} waits for your decision");
            }
            Event::ToolResult { id, name, content, is_error, .. } => {
                self.line(out);
                let at = self.calls.iter().rposition(|call| call.id == *id);
                if let Some(call) = at.and_then(|at| self.calls.get_mut(at)) {
                    call.result = Some((content.clone(), *is_error));
                }
                let (number, mark) = (at.map_or(0, |at| at + 1), if *is_error { "failed: " } else { "" });
                let _ = writeln!(out, "  #{number} {name} → {mark}{}", short(content));
            }
            Event::Notice(text) => {
                self.line(out);
                let _ = writeln!(out, "  ({text})");
            }
            Event::Done(result) => {
                self.line(out);
                if let Some(error) = &result.error {
                    let _ = writeln!(out, "  [{model}] {} ({})", error.message, error.code);
                }
                self.done.push(model.to_owned());
            }
        }
    }

    fn line(&mut self, out: &mut impl Write) {
        if !self.at_line_start {
            let _ = writeln!(out);
            self.at_line_start = true;
        }
    }
}

/// One line, not too long, with nothing in it that a terminal would obey.
pub fn short(text: &str) -> String {
    let mut line: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .take(LINE_CHARS_MAX)
        .collect();
    if text.chars().count() > LINE_CHARS_MAX {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use matsu_core::ports::provider::Usage;
    use matsu_runtime::models::agentic_loop::{AgenticLoopResult, StopReason};
    use serde_json::json;

    use super::*;

    fn done() -> Event {
        Event::Done(Arc::new(AgenticLoopResult {
            chunks: vec![],
            history_delta: vec![],
            final_text: String::new(),
            iterations_used: 1,
            timed_out: false,
            error: None,
            stop_reason: StopReason::EndTurn,
            usage: Usage::default(),
            cost_micros: None,
        }))
    }

    #[test]
    fn models_that_answer_at_once_are_shown_one_after_the_other() {
        let text = |text: &str| Event::Text(text.to_owned());
        let mut stage = Stage::new(&["a".to_owned(), "b".to_owned()], vec![]);
        let mut out = Vec::new();
        for (model, event) in [("b", text("B1")), ("a", text("A1")), ("b", done()), ("a", text("A2")), ("a", done())] {
            stage.take(model, &event, &mut out);
        }
        assert_eq!(String::from_utf8(out).unwrap(), "[a]: A1A2\n[b]: B1\n");
    }

    #[test]
    fn calls_are_one_line_each_and_kept_whole() {
        let mut stage = Stage::new(&["a".to_owned()], vec![]);
        let mut out = Vec::new();
        let call = Event::ToolCall { id: "c".into(), name: "look".into(), arguments: json!({"q": "x"}) };
        let content = format!("one\u{1b}[2J\n{}", "y".repeat(200));
        let result = Event::ToolResult {
            id: "c".into(),
            name: "look".into(),
            content: content.clone(),
            is_error: true,
            images: Vec::new(),
        };
        for event in [call, result] {
            stage.take("a", &event, &mut out);
        }
        let shown = String::from_utf8(out).unwrap();
        assert_eq!(shown.lines().count(), 2);
        assert!(
            shown.contains("#1 look {\"q\":\"x\"}")
                && shown.contains("#1 look → failed: one [2J ")
                && !shown.contains('\u{1b}')
        );
        assert_eq!(stage.calls[0].result, Some((content, true)));
    }
}
