//! Ids of calls: unique in the whole transcript, and of letters that every vendor takes.

use std::collections::HashSet;

use matsu_core::clock::Timestamp;
use matsu_core::history::{Entry, Item};
use matsu_core::id::CallId;

/// Longer ones are refused by one vendor or another.
const ID_CHARS_MAX: usize = 64;

/// Gives a new id to each call that has none, one that was used before, or one that not all vendors take.
pub fn settle(items: &mut [Item], history: &[Entry], now: Timestamp) {
    let mut taken: HashSet<String> = history.iter().flat_map(|entry| &entry.content).filter_map(call_id).collect();
    for item in items {
        if let Item::ToolCall { id, .. } = item {
            if !is_legal(id) || taken.contains(id) {
                *id = CallId::mint(now).as_str().to_owned();
            }
            taken.insert(id.clone());
        }
    }
}

fn call_id(item: &Item) -> Option<String> {
    match item {
        Item::ToolCall { id, .. } => Some(id.clone()),
        _ => None,
    }
}

fn is_legal(id: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !id.is_empty() && id.len() <= ID_CHARS_MAX && id.bytes().all(legal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_used_or_odd_is_replaced() {
        let call = |id: &str| Item::ToolCall { id: id.into(), name: "n".into(), arguments: json!({}), signature: None };
        let now = Timestamp::from_millis(1);
        let history = [Entry::assistant("m", vec![call("used")], now)];
        let mut items = vec![call("good-1"), call(""), call("used"), call("functions.look:0"), call("good-1")];
        settle(&mut items, &history, now);
        let ids: Vec<String> = items.iter().filter_map(call_id).collect();
        assert_eq!(ids[0], "good-1");
        assert!(ids[1..].iter().all(|id| id.starts_with("call_")), "{ids:?}");
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 5);
    }
}
