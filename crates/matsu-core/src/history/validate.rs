//! The rules of a transcript, all of them, checked wherever one is read.
//!
//! A call may stand without its result: the process may have died between the two. A result never stands without
//! its call.

use std::collections::{HashMap, HashSet};

use super::{Entry, HistoryFault, Item, Role};

/// # Errors
/// The first entry that breaks a rule, and which.
pub fn validate(history: &[Entry]) -> Result<(), HistoryFault> {
    let mut seen = Seen::default();
    for (at, entry) in history.iter().enumerate() {
        check_entry(at, entry)?;
        if !seen.entries.insert(entry.id.as_str()) {
            return Err(HistoryFault::entry(at, format!("the id {} occurs twice in this transcript", entry.id)));
        }
        for (nth, item) in entry.content.iter().enumerate() {
            check_item(entry.role, item).map_err(|reason| HistoryFault::item(at, nth, reason))?;
            seen.pair(item).map_err(|reason| HistoryFault::item(at, nth, reason))?;
        }
    }
    Ok(())
}

#[derive(Default)]
struct Seen<'a> {
    entries: HashSet<&'a str>,
    /// Calls by id, with their name.
    calls: HashMap<&'a str, &'a str>,
    answered: HashSet<&'a str>,
}

impl<'a> Seen<'a> {
    fn pair(&mut self, item: &'a Item) -> Result<(), String> {
        match item {
            Item::ToolCall { id, name, .. } => match self.calls.insert(id, name) {
                Some(_) => Err(format!("the call id {id} occurs twice in this transcript")),
                None => Ok(()),
            },
            Item::ToolResult { id, name, .. } => match self.calls.get(id.as_str()) {
                None => Err(format!("the result for {id} has no earlier call")),
                Some(called) if called != name => {
                    Err(format!("the result for {id} is of {name}, the call of {called}"))
                }
                Some(_) if !self.answered.insert(id) => Err(format!("a second result for {id}")),
                Some(_) => Ok(()),
            },
            Item::Text { .. } | Item::Image(_) | Item::Thinking { .. } => Ok(()),
        }
    }
}

fn check_entry(at: usize, entry: &Entry) -> Result<(), HistoryFault> {
    let named = entry.model.as_deref().is_some_and(|model| !model.is_empty());
    let reason = match entry.role {
        Role::System if at > 0 => "the role system is allowed only in the first entry",
        Role::Assistant if !named => "an assistant's entry must name its model",
        Role::System | Role::User | Role::Tool if entry.model.is_some() => "only an assistant's entry names a model",
        Role::Tool if entry.content.is_empty() => "a tool entry must hold at least one result",
        _ if entry.id.as_str().is_empty() => "an entry must have an id",
        _ => return Ok(()),
    };
    Err(HistoryFault::entry(at, reason))
}

fn check_item(role: Role, item: &Item) -> Result<(), String> {
    let fits = match item {
        Item::Text { .. } => role != Role::Tool,
        Item::Image(_) => matches!(role, Role::User | Role::Assistant),
        Item::ToolCall { .. } | Item::Thinking { .. } => role == Role::Assistant,
        Item::ToolResult { .. } => role == Role::Tool,
    };
    if !fits {
        return Err(format!("a {role} entry cannot hold a {}", item.kind()));
    }
    match item {
        Item::ToolCall { id, name, .. } | Item::ToolResult { id, name, .. } if id.is_empty() || name.is_empty() => {
            Err(format!("a {} must have an id and a name", item.kind()))
        }
        Item::ToolCall { arguments, .. } if !arguments.is_object() && !arguments.is_string() => {
            Err("the arguments of a call must be an object, or the text that could not be read as one".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
