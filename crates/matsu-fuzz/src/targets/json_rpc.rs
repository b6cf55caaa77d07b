//! MCP frames as the server reads them from the socket and from stdin, and as a relay passes them on.

use matsu_server::mcp::lines::read_all;
use serde_json::Value;

use crate::input::{Chunks, at_once, choice};
use crate::relay_frames::{Frames, Lost};

pub fn run(data: &[u8]) {
    let (size, data) = choice(data);
    server(data, size);
    relay(data);
}

/// Every line is a message, is answered or asks for no answer; and the cut changes nothing.
fn server(data: &[u8], size: usize) {
    let own = data.to_vec();
    let Ok((messages, answers)) = at_once(read_all(Chunks::new(&own, own.len()))) else { panic!("a broken stream") };
    let Ok(cut) = at_once(read_all(Chunks::new(&own, size))) else { panic!("a broken stream") };
    assert_eq!(cut, (messages.clone(), answers.clone()), "the cut changes the frames");
    let lines = data.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
    let mut answered = 0;
    for answer in answers.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Ok(answer) = serde_json::from_slice::<Value>(answer) else { panic!("an answer that is no JSON") };
        assert!(answer["error"]["code"].is_i64() && answer["jsonrpc"] == "2.0", "{answer}");
        answered += 1;
    }
    assert!(messages.len() + answered <= lines, "more came out than went in");
}

/// Lines come in turn from the client and from the server.
fn relay(data: &[u8]) {
    let mut frames = Frames::default();
    for (nth, line) in data.split(|byte| *byte == b'\n').enumerate() {
        if nth % 3 == 2 {
            frames.received_from_daemon(line);
        } else {
            frames.received_from_client(line.to_vec());
        }
    }
    for line in frames.give_up(Lost::DuringCall).iter().chain(&frames.handshake()) {
        assert!(!line.contains('\n'), "a frame of several lines");
        let frame = serde_json::from_str::<Value>(line);
        assert!(frame.is_ok_and(|frame| frame.is_object()), "a frame that is no message: {line}");
    }
    assert!(frames.give_up(Lost::DuringCall).is_empty(), "answered twice");
}
