//! A transcript as every wire format needs it: each call together with exactly one result, in call order.
//!
//! This is where "no result without its call, no call without its result" is made true, once for all formats. A call
//! that has no result yet is given one that says so. A result that came after a later message is given as text at its
//! own place, because there is no other place where it would be both valid and new.

use std::collections::HashMap;

use super::{Entry, Image, Item, Maker, Role};

/// What a call without a result is sent with.
pub const NO_RESULT_YET: &str = "No result: the call was interrupted, or is still running.";

/// One step of the conversation, in the order it is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum HistoryStep<'a> {
    User(Vec<UserPart<'a>>),
    Assistant {
        /// The model that answered, by its name in the chat.
        model: &'a str,
        maker: Option<&'a Maker>,
        /// In the order they were made.
        parts: Vec<AssistantPart<'a>>,
    },
}

/// What an assistant's step holds.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantPart<'a> {
    /// Anything but a call.
    Other(&'a Item),
    Call(CallWithResult<'a>),
}

impl HistoryStep<'_> {
    /// The calls of an assistant's step, in order.
    pub fn calls(&self) -> impl Iterator<Item = &CallWithResult<'_>> {
        let parts = match self {
            Self::Assistant { parts, .. } => parts.as_slice(),
            Self::User(_) => &[],
        };
        parts.iter().filter_map(|part| match part {
            AssistantPart::Call(call) => Some(call),
            AssistantPart::Other(_) => None,
        })
    }
}

/// What a user's step holds.
#[derive(Clone, Debug, PartialEq)]
pub enum UserPart<'a> {
    Text(&'a str),
    Image(&'a Image),
    /// A tool's answer that came late.
    Late(CallWithResult<'a>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CallWithResult<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a serde_json::Value,
    pub signature: Option<&'a str>,
    pub result: &'a str,
    pub is_error: bool,
    /// What the tool showed beside its words.
    pub images: &'a [Image],
}

/// The steps of a valid history. Its system prompt is not among them; [`system_prompt`] has it.
#[must_use]
pub fn steps(history: &[Entry]) -> Vec<HistoryStep<'_>> {
    let mut steps: Vec<HistoryStep<'_>> = Vec::new();
    let answers = prompt_answers(history);
    let calls = all_calls(history);
    for entry in history {
        match entry.role {
            Role::System => {}
            Role::User => push_user(&mut steps, entry.content.iter().filter_map(user_part).collect()),
            Role::Tool => push_user(&mut steps, late(entry, &answers, &calls)),
            Role::Assistant => steps.push(HistoryStep::Assistant {
                model: entry.model.as_deref().unwrap_or_default(),
                maker: entry.maker.as_ref(),
                parts: entry.content.iter().map(|item| part(item, &answers)).collect(),
            }),
        }
    }
    steps
}

/// What stands before everything.
#[must_use]
pub fn system_prompt(history: &[Entry]) -> Option<String> {
    let first = history.first().filter(|entry| entry.role == Role::System)?;
    Some(first.spoken()).filter(|text| !text.trim().is_empty())
}

type PromptAnswers<'a> = HashMap<&'a str, PromptAnswer<'a>>;

/// What a tool answered.
#[derive(Clone, Copy)]
struct PromptAnswer<'a> {
    result: &'a str,
    is_error: bool,
    images: &'a [Image],
}

/// Results that came before the next message of a user, a model or the system, by call id.
fn prompt_answers(history: &[Entry]) -> PromptAnswers<'_> {
    let mut answers = HashMap::new();
    let mut open: Vec<&str> = Vec::new();
    for entry in history {
        match entry.role {
            Role::Assistant => {
                open = entry.content.iter().filter_map(call_id).collect();
            }
            Role::Tool => {
                for item in &entry.content {
                    if let Item::ToolResult { id, content, is_error, images, .. } = item
                        && open.contains(&id.as_str())
                    {
                        answers.insert(id.as_str(), PromptAnswer { result: content, is_error: *is_error, images });
                    }
                }
            }
            Role::User | Role::System => open.clear(),
        }
    }
    answers
}

fn call_id(item: &Item) -> Option<&str> {
    match item {
        Item::ToolCall { id, .. } => Some(id),
        _ => None,
    }
}

fn all_calls(history: &[Entry]) -> HashMap<&str, &Item> {
    history.iter().flat_map(|entry| &entry.content).filter_map(|item| Some((call_id(item)?, item))).collect()
}

fn part<'a>(item: &'a Item, answers: &PromptAnswers<'a>) -> AssistantPart<'a> {
    with_result(item, answers).map_or(AssistantPart::Other(item), AssistantPart::Call)
}

fn with_result<'a>(call: &'a Item, answers: &PromptAnswers<'a>) -> Option<CallWithResult<'a>> {
    let Item::ToolCall { id, name, arguments, signature } = call else { return None };
    let none = PromptAnswer { result: NO_RESULT_YET, is_error: true, images: &[] };
    let PromptAnswer { result, is_error, images } = answers.get(id.as_str()).copied().unwrap_or(none);
    Some(CallWithResult { id, name, arguments, signature: signature.as_deref(), result, is_error, images })
}

/// The results of a tool entry that were not sent with their calls.
fn late<'a>(entry: &'a Entry, answers: &PromptAnswers<'a>, calls: &HashMap<&'a str, &'a Item>) -> Vec<UserPart<'a>> {
    let results = entry.content.iter().filter_map(|item| {
        let Item::ToolResult { id, content, is_error, images, .. } = item else { return None };
        if answers.contains_key(id.as_str()) {
            return None;
        }
        let call = with_result(calls.get(id.as_str())?, answers)?;
        Some(UserPart::Late(CallWithResult { result: content, is_error: *is_error, images, ..call }))
    });
    results.collect()
}

fn user_part(item: &Item) -> Option<UserPart<'_>> {
    match item {
        Item::Text { text, .. } => Some(UserPart::Text(text)),
        Item::Image(image) => Some(UserPart::Image(image)),
        Item::ToolCall { .. } | Item::ToolResult { .. } | Item::Thinking { .. } => None,
    }
}

/// Two user entries in a row are one step: a note, and the question that follows it.
fn push_user<'a>(steps: &mut Vec<HistoryStep<'a>>, said: Vec<UserPart<'a>>) {
    if said.is_empty() {
        return;
    }
    match steps.last_mut() {
        Some(HistoryStep::User(before)) => before.extend(said),
        _ => steps.push(HistoryStep::User(said)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Timestamp;

    const NOW: Timestamp = Timestamp::from_millis(1);

    fn call(id: &str) -> Item {
        Item::ToolCall { id: id.to_owned(), name: "look".to_owned(), arguments: json!({}), signature: None }
    }

    fn result(id: &str, content: &str) -> Item {
        Item::result(id, "look", content, false)
    }

    fn results<'a>(step: &'a HistoryStep<'_>) -> Vec<(&'a str, &'a str)> {
        step.calls().map(|call| (call.id, call.result)).collect()
    }

    #[test]
    fn results_stand_in_call_order_and_a_missing_one_is_said() {
        let history = [
            Entry::user("u", NOW),
            Entry::assistant("m", vec![call("a"), call("b"), call("c")], NOW),
            Entry::tool(vec![result("c", "3"), result("a", "1")], NOW),
        ];
        let steps = steps(&history);
        assert_eq!(results(&steps[1]), [("a", "1"), ("b", NO_RESULT_YET), ("c", "3")]);
        assert_eq!(steps.len(), 2);
    }

    #[test]
    fn a_late_result_is_placed_where_it_came() {
        let history = [
            Entry::assistant("m", vec![call("a")], NOW),
            Entry::assistant("m", vec![Item::text("it runs")], NOW),
            Entry::tool(vec![result("a", "done")], NOW),
        ];
        let steps = steps(&history);
        assert_eq!(results(&steps[0]), [("a", NO_RESULT_YET)]);
        assert!(
            matches!(&steps[2], HistoryStep::User(said) if matches!(&said[..], [UserPart::Late(call)] if call.result == "done"))
        );
    }

    #[test]
    fn notes_and_the_question_after_them_are_one_step() {
        let history = [Entry::system("s", NOW), Entry::user("note", NOW), Entry::user("question", NOW)];
        assert_eq!(steps(&history), [HistoryStep::User(vec![UserPart::Text("note"), UserPart::Text("question")])]);
        assert_eq!(system_prompt(&history).as_deref(), Some("s"));
    }
}
