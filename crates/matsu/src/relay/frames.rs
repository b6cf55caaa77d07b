//! What a relay must remember of the frames that pass: which requests are open, and the client's handshake.
//!
//! When the daemon ends, a request that can be sent twice without harm is sent again to the next one: a read, a wait, or
//! the start of a run, which carries a key so that the daemon finds the run it has started already.

use std::collections::HashMap;

use matsu_core::clock::Clock;
use matsu_core::limits::FRAME_BYTES_MAX;
use matsu_runtime::tool::{RelayedTool, Repeat};
use matsu_runtime::tools::RELAYED;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The id of a handshake that the relay repeats; its answer is not for the client.
const OWN_ID: &str = "matsu-relay-handshake";

/// Where the key of a call is, in its `_meta`. A client's own key is left as it is.
const CALL_KEY: &str = "matsu/call";
const CLIENTS_KEY: &str = "claudecode/toolUseId";

/// A request is sent this often at most: one that ends every daemon must not be sent for ever.
const SENT_MAX: u8 = 200;

const REPEATABLE_METHODS: &[&str] =
    &["ping", "server/discover", "tasks/get", "tasks/list", "tasks/result", "tools/list"];
/// What a tool's own file says about a repeated call.
fn relayed(tool: &str) -> Option<&'static RelayedTool> {
    RELAYED.iter().find(|known| known.name == tool)
}

/// A request without an answer.
struct Open {
    id: Value,
    /// Kept if it can be sent again.
    line: Option<Vec<u8>>,
    /// The argument that says how many seconds it waits.
    wait: Option<&'static str>,
    since: Instant,
    sent: u8,
}

impl Open {
    /// As the next daemon gets it after so many seconds: it waits for the rest of its time only.
    fn line_again(&self, waited: u64) -> Option<Vec<u8>> {
        let line = self.line.as_ref()?;
        let Some(wait) = self.wait.filter(|_| waited > 0) else { return Some(line.clone()) };
        let Ok(mut frame) = serde_json::from_slice::<Value>(line) else { return Some(line.clone()) };
        let Some(seconds) = frame["params"]["arguments"][wait].as_u64() else { return Some(line.clone()) };
        frame["params"]["arguments"][wait] = json!(seconds.saturating_sub(waited));
        Some(frame.to_string().into_bytes())
    }
}

/// Why a request gets no answer of a daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The daemon that was to answer it ended, or its answer could not be read.
    DuringCall,
    /// A person has ended the daemon with `matsu shutdown`.
    ShutDown,
    /// None was there when it came, nor for a while after.
    NoDaemon,
}

impl Lost {
    fn message(self) -> &'static str {
        match self {
            Self::DuringCall => {
                "the Matsu daemon ended during this call, so the call has no result. Tasks are stored: call \
                 get_task_status without arguments to see how yours stand, then call again."
            }
            Self::ShutDown => {
                "the Matsu daemon was shut down with `matsu shutdown`, so this call has no result, and this client does \
                 not start it again. Tasks are stored. Ask the person to run `matsu serve` or to restart this client, \
                 then call again."
            }
            Self::NoDaemon => {
                "no Matsu daemon answered, so this call has no result. Tasks are stored. Call again in a while."
            }
        }
    }
}

/// What becomes of the open requests when the daemon has ended.
#[derive(Default)]
pub struct Afterwards {
    /// Sent to the next daemon, if they are still open then: their ids.
    pub again: Vec<String>,
    /// Sent to the client.
    pub answers: Vec<String>,
}

#[derive(Default)]
pub struct Frames {
    /// Makes the keys of calls different from those of other relays.
    name: String,
    calls: u64,
    /// Open requests, by their id as it was written.
    open: HashMap<String, Open>,
    /// A legacy client's `initialize`; modern clients have none.
    initialize: Option<Value>,
    initialized: bool,
}

impl Frames {
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Takes a frame of the client and returns it as the daemon should get it.
    pub fn received_from_client(&mut self, line: Vec<u8>) -> Vec<u8> {
        let Ok(head) = serde_json::from_slice::<Head>(&line) else { return line };
        let tool = head.params.and_then(|params| params.name).filter(|_| head.method.as_deref() == Some("tools/call"));
        let known = tool.as_deref().and_then(relayed);
        let needs_key = known.is_some_and(|tool| tool.repeat == Repeat::WithKey);
        let line = if needs_key { self.with_key(line) } else { line };
        self.note(head.method.as_deref(), head.id, known, &line);
        line
    }

    fn with_key(&mut self, line: Vec<u8>) -> Vec<u8> {
        let Ok(mut frame) = serde_json::from_slice::<Value>(&line) else { return line };
        let meta = &mut frame["params"]["_meta"];
        if !(meta.is_null() || meta.is_object()) || meta.get(CLIENTS_KEY).is_some() {
            return line;
        }
        self.calls += 1;
        meta[CALL_KEY] = json!(format!("{}/{}", self.name, self.calls));
        frame.to_string().into_bytes()
    }

    fn note(&mut self, method: Option<&str>, id: Option<Value>, tool: Option<&RelayedTool>, line: &[u8]) {
        match (method, id) {
            (Some(method), Some(id)) => {
                let is_repeatable =
                    REPEATABLE_METHODS.contains(&method) || tool.is_some_and(|tool| tool.repeat != Repeat::Never);
                let kept = is_repeatable.then(|| line.to_vec());
                let wait = tool.and_then(|tool| tool.wait_argument);
                let since = Clock::system().instant();
                self.open.insert(id.to_string(), Open { id, line: kept, wait, since, sent: 1 });
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

    /// Whether the client should see this.
    pub fn received_from_daemon(&mut self, line: &[u8]) -> bool {
        let Ok(Head { id, method, .. }) = serde_json::from_slice(line) else { return true };
        match id {
            Some(id) if method.is_none() => {
                self.open.remove(&id.to_string());
                id != OWN_ID
            }
            _ => true,
        }
    }

    /// The daemon has ended: what can be sent again is, the rest is answered.
    pub fn daemon_ended(&mut self) -> Afterwards {
        let mut again = Vec::new();
        for (id, open) in &mut self.open {
            if open.line.is_some() && open.sent < SENT_MAX {
                open.sent += 1;
                again.push(id.clone());
            }
        }
        again.sort_unstable();
        let answers = self.answer_for(Lost::DuringCall, |id| !again.contains(id));
        Afterwards { again, answers }
    }

    /// A request as the next daemon gets it, if it has no answer yet.
    pub fn line_again(&self, id: &str) -> Option<Vec<u8>> {
        let open = self.open.get(id)?;
        open.line_again(Clock::system().instant().saturating_duration_since(open.since).as_secs())
    }

    /// Answers for all open requests: none of them will get another answer.
    pub fn give_up(&mut self, why: Lost) -> Vec<String> {
        self.answer_for(why, |_| true)
    }

    /// Not for an open handshake, which clients do not try again: the next daemon answers it.
    fn answer_for(&mut self, why: Lost, is_lost: impl Fn(&String) -> bool) -> Vec<String> {
        let greeting = self.open_initialize();
        let mut answers: Vec<String> = self
            .open
            .extract_if(|id, _| greeting.as_ref() != Some(id) && is_lost(id))
            .map(|(_, Open { id, .. })| {
                let error = json!({ "code": -32603, "message": why.message(), "data": { "retryable": true } });
                json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
            })
            .collect();
        answers.sort();
        answers
    }

    /// The id of a handshake without an answer.
    fn open_initialize(&self) -> Option<String> {
        let id = self.initialize.as_ref()?["id"].to_string();
        self.open.contains_key(&id).then_some(id)
    }

    /// What a new daemon must receive from a legacy client before anything else.
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
    params: Option<HeadParams>,
}

#[derive(serde::Deserialize)]
struct HeadParams {
    name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &[&str]) -> Frames {
        let mut frames = Frames::default();
        for line in lines {
            frames.received_from_client(line.as_bytes().to_vec());
        }
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
        assert!(frames.received_from_daemon(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        let answers = frames.give_up(Lost::DuringCall);
        assert_eq!(answers.len(), 1);
        let answer: Value = serde_json::from_str(&answers[0]).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["data"]["retryable"]), (&json!("b"), &json!(true)));
        assert_eq!(frames.give_up(Lost::DuringCall), Vec::<String>::new());
    }

    #[test]
    fn reads_waits_and_starts_are_sent_again_and_the_rest_is_answered() {
        let call = |id: u32, tool: &str| {
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": {} } })
                .to_string()
        };
        let lines = [call(1, "get_task_status"), call(2, "queue_searches"), call(3, "use_agent")];
        let mut frames = Frames::named("relay-1");
        let sent: Vec<Vec<u8>> =
            lines.iter().map(|line| frames.received_from_client(line.clone().into_bytes())).collect();
        assert_eq!(sent[0], lines[0].as_bytes(), "a frame is passed on as it is");
        let start: Value = serde_json::from_slice(&sent[2]).unwrap();
        assert_eq!(start["params"]["_meta"][CALL_KEY], "relay-1/1");
        for _ in 1..SENT_MAX {
            let after = frames.daemon_ended();
            let again: Vec<Vec<u8>> = after.again.iter().filter_map(|id| frames.line_again(id)).collect();
            assert_eq!(again, [sent[0].clone(), sent[2].clone()], "the same frames, with the same key");
            assert!(after.answers.iter().all(|answer| answer.contains("\"id\":2")));
        }
        let after = frames.daemon_ended();
        assert!(after.again.is_empty() && after.answers.len() == 2, "a request that ends every daemon is given up");
    }

    #[test]
    fn a_wait_that_is_sent_again_waits_for_the_rest_of_its_time() {
        let call = |id: u32, tool: &str, arguments: Value| {
            let params = json!({ "name": tool, "arguments": arguments });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
        };
        let mut frames = seen(&[
            &call(1, "get_task_status", json!({ "task_id": "task_1", "timeout": 20 })),
            &call(2, "get_status", json!({ "task_id": "task_1", "wait": 5 })),
            &call(3, "use_agent", json!({ "cli_name": "claude", "message": "x", "timeout": 600 })),
        ]);
        assert_eq!(frames.daemon_ended().again, ["1", "2", "3"]);
        let arguments = |id: &str| {
            let line: Value = serde_json::from_slice(&frames.open[id].line_again(8).unwrap()).unwrap();
            line["params"]["arguments"].clone()
        };
        assert_eq!(arguments("1"), json!({ "task_id": "task_1", "timeout": 12 }));
        assert_eq!(arguments("2")["wait"], 0);
        assert_eq!(arguments("3")["timeout"], 600, "how long a run may take is no wait");
    }

    #[test]
    fn the_key_of_a_client_is_kept() {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "use_agent", "_meta": { CLIENTS_KEY: "toolu_1" } } });
        let line = line.to_string().into_bytes();
        assert_eq!(Frames::named("relay-1").received_from_client(line.clone()), line);
        let odd = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"use_agent","_meta":7}}"#.to_vec();
        assert_eq!(Frames::named("relay-1").received_from_client(odd.clone()), odd);
    }

    #[test]
    fn a_legacy_handshake_is_repeated_and_its_answer_kept_back() {
        let mut frames = seen(&[
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"x":1}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        ]);
        assert!(frames.received_from_daemon(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        let lines = frames.handshake();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("\"x\":1") && lines[0].contains(OWN_ID));
        assert!(
            !frames.received_from_daemon(format!(r#"{{"jsonrpc":"2.0","id":"{OWN_ID}","result":{{}}}}"#).as_bytes())
        );
        assert!(frames.received_from_daemon(br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#));
    }

    #[test]
    fn an_unanswered_handshake_is_the_next_daemons_to_answer() {
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
        let mut frames = seen(&[hello]);
        assert_eq!(frames.give_up(Lost::DuringCall), Vec::<String>::new());
        let again: Value = serde_json::from_str(&frames.handshake()[0]).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(hello).unwrap());
        assert!(frames.received_from_daemon(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#), "for the client");
        assert!(frames.handshake()[0].contains(OWN_ID));
    }

    #[test]
    fn a_modern_client_has_no_handshake() {
        assert_eq!(seen(&[r#"{"jsonrpc":"2.0","id":0,"method":"server/discover"}"#]).handshake(), Vec::<String>::new());
    }
}
