//! What a relay must remember of the frames that pass: which requests are open, and how the client said hello.

use std::collections::HashMap;

use matsu_core::limits::FRAME_BYTES_MAX;
use serde_json::{Value, json};

/// The id of a handshake that the relay repeats; its answer is not for the client.
const OWN_ID: &str = "matsu-relay-handshake";

#[derive(Default)]
pub struct Frames {
    /// Open requests, by their id as it was written.
    open: HashMap<String, Value>,
    /// A legacy client's `initialize`; modern clients have none.
    initialize: Option<Value>,
    initialized: bool,
}

impl Frames {
    pub fn heard_from_client(&mut self, line: &[u8]) {
        let Ok(Head { id, method }) = serde_json::from_slice(line) else { return };
        match (method.as_deref(), id) {
            (Some(method), Some(id)) => {
                self.open.insert(id.to_string(), id);
                if method == "initialize" {
                    self.initialize = serde_json::from_slice(line).ok();
                }
            }
            (Some("notifications/initialized"), None) => self.initialized = true,
            // A request that the client has given up gets no answer.
            (Some("notifications/cancelled"), None) => {
                let Ok(frame) = serde_json::from_slice::<Value>(line) else { return };
                self.open.remove(&frame["params"]["requestId"].to_string());
            }
            _ => {}
        }
    }

    /// Whether a request has no answer yet.
    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the client shall see this.
    pub fn heard_from_daemon(&mut self, line: &[u8]) -> bool {
        let Ok(Head { id, method }) = serde_json::from_slice(line) else { return true };
        match id {
            Some(id) if method.is_none() => {
                self.open.remove(&id.to_string());
                id != OWN_ID
            }
            _ => true,
        }
    }

    /// Answers for all open requests: the daemon is gone, and trying again is right. Not for an open handshake, which
    /// clients do not try again: the next daemon answers it.
    pub fn give_up(&mut self) -> Vec<String> {
        let greeting = self.open_initialize();
        let mut answers: Vec<String> = self
            .open
            .extract_if(|id, _| greeting.as_ref() != Some(id))
            .map(|(_, id)| {
                let message = "the Matsu daemon ended during this call, so the call has no result. Tasks are stored: call \
                               get_task_status without arguments to see how yours stand, then call again.";
                let error = json!({ "code": -32603, "message": message, "data": { "retryable": true } });
                json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
            })
            .collect();
        answers.sort();
        answers
    }

    /// The id of a handshake that nobody has answered yet.
    fn open_initialize(&self) -> Option<String> {
        let id = self.initialize.as_ref()?["id"].to_string();
        self.open.contains_key(&id).then_some(id)
    }

    /// What a new daemon must hear from a legacy client before anything else.
    pub fn handshake(&self) -> Vec<String> {
        let Some(initialize) = &self.initialize else { return Vec::new() };
        let mut again = initialize.clone();
        if self.open_initialize().is_none() {
            again["id"] = json!(OWN_ID);
        }
        let mut lines = vec![again.to_string()];
        if self.initialized {
            lines.push(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        }
        lines
    }
}

/// The answer to a frame that was not read to its end. Its id is not known.
pub fn too_long() -> String {
    let message = format!("the message is too long: at most {FRAME_BYTES_MAX} bytes are accepted");
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": message } }).to_string()
}

/// The part of a frame that says whose it is. The rest is skipped over and copied nowhere.
#[derive(serde::Deserialize)]
struct Head {
    id: Option<Value>,
    method: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &[&str]) -> Frames {
        let mut frames = Frames::default();
        lines.iter().for_each(|line| frames.heard_from_client(line.as_bytes()));
        frames
    }

    #[test]
    fn open_requests_are_answered_once_and_closed_ones_never() {
        let mut frames = seen(&[
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":"b","method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#,
        ]);
        assert!(frames.heard_from_daemon(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        let answers = frames.give_up();
        assert_eq!(answers.len(), 1);
        let answer: Value = serde_json::from_str(&answers[0]).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["data"]["retryable"]), (&json!("b"), &json!(true)));
        assert_eq!(frames.give_up(), Vec::<String>::new());
    }

    #[test]
    fn a_legacy_handshake_is_repeated_and_its_answer_kept_back() {
        let mut frames = seen(&[
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"x":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        ]);
        assert!(frames.heard_from_daemon(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        let lines = frames.handshake();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("\"x\":1") && lines[0].contains(OWN_ID));
        assert!(!frames.heard_from_daemon(format!(r#"{{"jsonrpc":"2.0","id":"{OWN_ID}","result":{{}}}}"#).as_bytes()));
        assert!(frames.heard_from_daemon(br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#));
    }

    #[test]
    fn a_handshake_that_nobody_has_answered_is_the_next_daemons_to_answer() {
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
        let mut frames = seen(&[hello]);
        assert_eq!(frames.give_up(), Vec::<String>::new());
        let again: Value = serde_json::from_str(&frames.handshake()[0]).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(hello).unwrap());
        assert!(frames.heard_from_daemon(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#), "for the client");
        assert!(frames.handshake()[0].contains(OWN_ID));
    }

    #[test]
    fn a_modern_client_has_no_handshake() {
        assert_eq!(seen(&[r#"{"jsonrpc":"2.0","id":0,"method":"server/discover"}"#]).handshake(), Vec::<String>::new());
    }
}
