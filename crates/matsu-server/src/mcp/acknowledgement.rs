//! A result counts as read when the client has taken the reply that shows it, not when the reply was sent: a client that
//! is stopped or killed may never take it. The daemon names the results in the metadata of the reply, and the relay,
//! which sees its client take the bytes, sends the names back.
//!
//! Nothing of it is kept in the daemon, so a reply of a daemon that has ended is acknowledged to the next one.

use matsu_core::id::TaskId;
use matsu_runtime::chats::sessions::Delivery;
use memchr::memmem;
use rmcp::model::MetaObject;
use serde::Deserialize;
use serde_json::{Value, json};

/// The metadata of a reply that names the results in it.
const RESULTS: &str = "matsu/results";

/// What a relay sends.
pub(super) const METHOD: &str = "notifications/matsu/received";

/// Names in one acknowledgement. Those behind are ignored, and their results count as unread.
const IDS_MAX: usize = 100;

/// The metadata of a reply that is to be acknowledged.
pub(super) fn wish(delivery: &Delivery) -> Option<MetaObject> {
    let ids = delivery.unacknowledged();
    let Value::Object(fields) = json!({ RESULTS: ids }) else { return None };
    (!ids.is_empty()).then_some(MetaObject(fields))
}

/// The ids that an acknowledgement names.
pub(super) fn named(params: Option<&Value>) -> Vec<TaskId> {
    let ids = params.and_then(|params| params["task_ids"].as_array()).into_iter().flatten();
    ids.filter_map(Value::as_str).take(IDS_MAX).map(TaskId::from_text).collect()
}

#[derive(Deserialize)]
struct Reply {
    result: Outcome,
}

#[derive(Deserialize)]
struct Outcome {
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "matsu/results")]
    results: Vec<String>,
}

/// The results that a reply asks to have acknowledged. Most replies name none, and are not parsed to find that out.
#[must_use]
pub fn carried_by(reply: &[u8]) -> Vec<String> {
    if memmem::find(reply, RESULTS.as_bytes()).is_none() {
        return Vec::new();
    }
    serde_json::from_slice::<Reply>(reply).map(|reply| reply.result.meta.results).unwrap_or_default()
}

/// What is sent to the daemon when the client has taken these.
#[must_use]
pub fn frame(task_ids: &[String]) -> String {
    json!({ "jsonrpc": "2.0", "method": METHOD, "params": { "task_ids": task_ids } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_reply_come_back() {
        let reply = json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [], "_meta": { RESULTS: ["task_1"] } } });
        let ids = carried_by(reply.to_string().as_bytes());
        let back: Value = serde_json::from_str(&frame(&ids)).unwrap();
        assert_eq!(named(back.get("params")), [TaskId::from_text("task_1")]);
    }

    #[test]
    fn what_names_nothing_acknowledges_nothing() {
        for reply in ["", "{}", r#"{"result":7}"#, r#"{"result":{"_meta":{}}}"#, r#"{"id":1,"error":{"code":1}}"#] {
            assert_eq!(carried_by(reply.as_bytes()), Vec::<String>::new(), "{reply}");
        }
        for params in [json!(null), json!({ "task_ids": 7 }), json!({ "task_ids": [7, {}] })] {
            assert_eq!(named(Some(&params)), [], "{params}");
        }
    }
}
