//! Ids stay unique when entries that were made apart come together.

use std::collections::{HashMap, HashSet};

use super::{Entry, Item};
use crate::clock::Timestamp;
use crate::id::{CallId, EntryId};

/// Gives new ids to calls, their results and entries of `delta` that `before` has already.
#[must_use]
pub fn rename_taken_ids(mut delta: Vec<Entry>, before: &[Entry], now: Timestamp) -> Vec<Entry> {
    let calls = |entries: &[Entry]| -> HashSet<String> {
        let items = entries.iter().flat_map(|entry| &entry.content);
        let ids = items.filter_map(|item| match item {
            Item::ToolCall { id, .. } => Some(id.clone()),
            _ => None,
        });
        ids.collect()
    };
    let entries: HashSet<&str> = before.iter().map(|entry| entry.id.as_str()).collect();
    let (taken, own) = (calls(before), calls(&delta));
    let renamed: HashMap<String, String> =
        own.intersection(&taken).map(|id| (id.clone(), CallId::mint(now).as_str().to_owned())).collect();
    for entry in &mut delta {
        if entries.contains(entry.id.as_str()) {
            entry.id = EntryId::mint(now);
        }
        for item in &mut entry.content {
            if let Item::ToolCall { id, .. } | Item::ToolResult { id, .. } = item
                && let Some(new) = renamed.get(id)
            {
                id.clone_from(new);
            }
        }
    }
    delta
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::history::validate;

    #[test]
    fn two_answers_with_the_same_ids_can_stand_in_one_transcript() {
        let now = Timestamp::from_millis(1);
        let call = Item::ToolCall { id: "c".into(), name: "n".into(), arguments: json!({}), signature: None };
        let result = Item::result("c", "n", "x", false);
        let answer = vec![Entry::assistant("m", vec![call], now), Entry::tool(vec![result], now)];
        let again = rename_taken_ids(answer.clone(), &answer, now);
        let whole: Vec<Entry> = answer.iter().cloned().chain(again).collect();
        assert_eq!(validate(&whole), Ok(()));
        assert_eq!(rename_taken_ids(answer.clone(), &[], now), answer);
    }
}
