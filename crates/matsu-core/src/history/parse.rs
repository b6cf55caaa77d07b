//! A transcript from untrusted JSON: what does not fit is named by entry, item and reason.
//!
//! Content that is a bare string is taken as one text, the way older files have it.

use serde_json::{Map, Value};

use super::{Entry, HistoryFault, Item, Maker, Role, validate};
use crate::clock::Timestamp;
use crate::id::EntryId;

/// Reads and validates. Entries without an id or a time are given one.
///
/// # Errors
/// What is wrong, and where.
pub fn parse(value: &Value, now: Timestamp) -> Result<Vec<Entry>, HistoryFault> {
    let list = value.as_array().ok_or_else(|| HistoryFault::whole("a transcript is a list of entries"))?;
    let entries = list.iter().enumerate().map(|(at, value)| entry(at, value, now));
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    validate(&entries)?;
    Ok(entries)
}

fn entry(at: usize, value: &Value, now: Timestamp) -> Result<Entry, HistoryFault> {
    let fields = value.as_object().ok_or_else(|| HistoryFault::entry(at, "an entry is an object"))?;
    let role = match fields.get("role").and_then(Value::as_str) {
        None => return Err(HistoryFault::entry(at, "an entry must have a role")),
        Some(word) => Role::parse(word).ok_or_else(|| HistoryFault::entry(at, format!("unknown role {word:?}")))?,
    };
    let content = match fields.get("content") {
        Some(Value::String(text)) => vec![Item::text(text.as_str())],
        Some(Value::Array(list)) => {
            list.iter().enumerate().map(|(nth, value)| item(at, nth, value)).collect::<Result<_, _>>()?
        }
        None => return Err(HistoryFault::entry(at, "an entry must have content")),
        Some(_) => return Err(HistoryFault::entry(at, "content is a list of items, or a text")),
    };
    Ok(Entry {
        role,
        content,
        id: text(fields, "id").map_or_else(|| EntryId::mint(now), EntryId::from_text),
        at: time(at, fields)?.unwrap_or(now),
        model: text(fields, "model"),
        maker: fields.get("maker").and_then(|maker| serde_json::from_value::<Maker>(maker.clone()).ok()),
        cut_by: text(fields, "cut_by"),
    })
}

fn item(at: usize, nth: usize, value: &Value) -> Result<Item, HistoryFault> {
    let kind = value.get("type").and_then(Value::as_str);
    let Some(kind) = kind else { return Err(HistoryFault::item(at, nth, "an item must have a type")) };
    if !["text", "tool_call", "tool_result", "image", "thinking"].contains(&kind) {
        return Err(HistoryFault::item(at, nth, format!("unknown item type {kind:?}")));
    }
    serde_json::from_value(value.clone()).map_err(|error| HistoryFault::item(at, nth, format!("{kind}: {error}")))
}

fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn time(at: usize, fields: &Map<String, Value>) -> Result<Option<Timestamp>, HistoryFault> {
    match fields.get("at") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64() {
            Some(millis) => Ok(Some(Timestamp::from_millis(millis))),
            None => Err(HistoryFault::entry(at, "at is a time in milliseconds since 1970")),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::history::Image;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    #[test]
    fn what_was_written_is_read_back_the_same() {
        let call = Item::ToolCall {
            id: "c1".to_owned(),
            name: "look".to_owned(),
            arguments: json!({"q": "松"}),
            signature: Some("s".to_owned()),
        };
        let image = Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
        let result = Item::ToolResult {
            id: "c1".to_owned(),
            name: "look".to_owned(),
            content: "木".to_owned(),
            is_error: false,
            images: vec![image.clone()],
        };
        let maker = Maker { wire: "gemini".to_owned(), model: "g".to_owned() };
        let history = vec![
            Entry::system("be brief", NOW),
            Entry::new(Role::User, vec![Item::text("hello"), Item::Image(image)], NOW),
            Entry::assistant("gemini", vec![Item::text("hm"), call], NOW).made_by(maker),
            Entry::tool(vec![result], NOW),
        ];
        let written = serde_json::to_value(&history).unwrap();
        assert_eq!(parse(&written, Timestamp::from_millis(9)).unwrap(), history);
    }

    #[test]
    fn text_content_of_older_files_is_one_text_item() {
        let history = parse(&json!([{"role": "user", "content": "hi"}]), NOW).unwrap();
        assert_eq!((history[0].spoken().as_str(), history[0].at), ("hi", NOW));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let cases = [
            (json!({}), "list of entries"),
            (json!([1]), "entry 0: an entry is an object"),
            (json!([{"content": []}]), "must have a role"),
            (json!([{"role": "gemini", "content": []}]), "unknown role \"gemini\""),
            (json!([{"role": "user"}]), "must have content"),
            (json!([{"role": "user", "content": 3}]), "list of items"),
            (json!([{"role": "user", "content": [7]}]), "entry 0, item 0: an item must have a type"),
            (json!([{"role": "user", "content": [{"type": "video"}]}]), "unknown item type \"video\""),
            (json!([{"role": "user", "content": [{"type": "text"}]}]), "missing field `text`"),
            (json!([{"role": "user", "content": "x", "at": "noon"}]), "milliseconds"),
            (json!([{"role": "tool", "content": "plain"}]), "a tool entry cannot hold a text"),
            (json!([{"role": "tool", "content": [{"type": "tool_result", "name": "n", "content": ""}]}]), "`id`"),
        ];
        for (value, said) in cases {
            let fault = parse(&value, NOW).unwrap_err().to_string();
            assert!(fault.contains(said), "{value}: {fault}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let words =
            prop::sample::select(vec!["role", "content", "type", "id", "name", "arguments", "model", "at", "text"]);
        let values =
            prop::sample::select(vec!["user", "assistant", "tool", "system", "text", "tool_call", "tool_result"]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(|number| json!(number)),
            values.prop_map(|word| json!(word)),
            ".{0,4}".prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            let fields = prop::collection::vec((words.clone(), inner.clone()), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..5).prop_map(Value::Array),
                fields.prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_file_holds_is_a_valid_transcript_or_refused(value in any_json()) {
            if let Ok(history) = parse(&value, NOW) {
                prop_assert_eq!(validate(&history), Ok(()));
            }
        }
    }
}
