//! A client on stdin and stdout that writes its frames by hand.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::Home;

const ANSWER_MAX: Duration = Duration::from_secs(30);

pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    frames: Receiver<Value>,
    last_id: u64,
    answer_max: Duration,
}

impl Client {
    /// `matsu mcp` as a client starts it.
    pub fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_with(home, args, &[])
    }

    /// As a child that was given something in its environment.
    pub fn start_with(home: &Home, args: &[&str], settings: &[(&str, &str)]) -> Self {
        let mut command = home.command(&[&["mcp", "--tools", "all", "--test-jobs"], args].concat());
        command.envs(settings.iter().copied());
        Self::of(command)
    }

    /// Any command that serves MCP.
    pub fn of(mut command: std::process::Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (sender, frames) = channel();
        // Ends with the child's output.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let frame = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        Self { child, input, frames, last_id: 0, answer_max: ANSWER_MAX }
    }

    /// With this much time for an answer: a wait that a relay sends to one daemon after another begins anew with each.
    pub fn patient(mut self, answer_max: Duration) -> Self {
        self.answer_max = answer_max;
        self
    }

    /// One that has made the handshake of clients before 2026-07-28.
    pub fn legacy(home: &Home, args: &[&str]) -> Self {
        Self::shaken(home.command(&[&["mcp", "--tools", "all", "--test-jobs"], args].concat()))
    }

    /// As [`Client::legacy`], for any command.
    pub fn shaken(command: std::process::Command) -> Self {
        let mut client = Self::of(command);
        client.shake_hands();
        client
    }

    pub fn shake_hands(&mut self) {
        let client = self;
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let id = client.request("initialize", &params);
        let answer = client.answer(id);
        assert_eq!(answer["result"]["serverInfo"]["name"], "matsu", "{answer}");
        client.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    pub fn line(&mut self, line: &str) {
        self.bytes(line.as_bytes());
    }

    pub fn bytes(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).and_then(|()| input.write_all(b"\n")).unwrap();
    }

    /// Sends a request and returns its id.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// The answer to this request; notifications and other answers before it are skipped.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let frame = self.next();
            if frame["id"] == id && frame.get("method").is_none() {
                return frame;
            }
        }
    }

    #[track_caller]
    pub fn next(&mut self) -> Value {
        self.frames.recv_timeout(self.answer_max).expect("a frame")
    }

    /// The structured half of a tool's answer.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let answer = self.answer(id);
        let said = &answer["result"]["structuredContent"];
        assert!(said.is_object(), "{answer}");
        said.clone()
    }

    /// As a client that crashes.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
