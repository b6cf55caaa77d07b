//! A daemon, a person who uses REST, and agents that use MCP.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::{Daemon, Home, postgres_store, until};
use crate::http::{Http, headers_for, modern};
use crate::stdio::Client;

/// How long something that takes a moment may take on a busy machine.
const SOON: Duration = Duration::from_secs(30);

pub struct Stage {
    pub home: Home,
    pub daemon: Daemon,
}

/// A program that waits for its messages itself, or one that never calls.
fn waiter(name: &str) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/sessions/waiting_agent.py");
    format!(
        "name = \"{name}\"\ncommand = \"python3\"\nargs = [{script:?}, {name:?}]\nprompt = \"stdin\"\noutput = \"text\"\n\
         delivery = \"wait\"\n[connect_back]\nenv = {{ MATSU = \"{{matsu}}\", DATA = \"{{data_dir}}\" }}\n"
    )
}

/// The answer of a tool: both halves, and how long it took.
#[derive(Clone, Debug)]
pub struct ToolAnswer {
    pub body: Value,
    pub text: String,
    pub is_error: bool,
    pub took: Duration,
}

impl Stage {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// With settings from the environment. The scripted agents are known: their message is their script.
    pub fn with(settings: &[(&str, &str)]) -> Self {
        Self::at(Home::new(), settings)
    }

    /// The same on a new schema of PostgreSQL.
    pub fn on_postgres(settings: &[(&str, &str)]) -> Self {
        let mut home = Home::new();
        let url = postgres_store(&home);
        home.set("MATSU_STORE_URL", &url);
        Self::at(home, settings)
    }

    fn at(home: Home, settings: &[(&str, &str)]) -> Self {
        let definitions = home.path(".config/matsu/agents");
        matsu_testkit::fake_agents::write(&definitions).unwrap();
        for name in ["waiter", "mute"] {
            std::fs::write(definitions.join(format!("{name}.toml")), waiter(name)).unwrap();
        }
        let daemon = home.serve_with(settings);
        Self { home, daemon }
    }

    /// Another daemon in the same home, after the first one has died.
    pub fn restarted(self) -> Self {
        let Self { home, daemon } = self;
        drop(daemon);
        let daemon = home.serve();
        Self { home, daemon }
    }

    pub fn http(&self) -> &Http {
        self.daemon.http()
    }

    /// A person's request; status and body.
    pub fn rest(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let (host, key) = (self.http().address.to_string(), format!("Bearer {}", self.http().token));
        let headers = [("Host", host.as_str()), ("Authorization", &key), ("Content-Type", "application/json")];
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let reply = self.http().send(method, &format!("/api/v1{path}"), &headers, text.as_bytes());
        let body = if reply.body.trim().is_empty() { Value::Null } else { reply.json() };
        (reply.status, body)
    }

    #[track_caller]
    pub fn good(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, body) = self.rest(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {body}");
        body
    }

    pub fn get(&self, path: &str) -> Value {
        self.good("GET", path, &Value::Null)
    }

    /// Makes an agent; its passkey.
    pub fn agent(&self, id: &str) -> String {
        text(&self.good("POST", "/agents", &json!({ "id": id, "name": id }))["passkey"])
    }

    /// Makes an agent that is started by a definition, and a chat with it.
    pub fn started(&self, id: &str, definition: &str) -> String {
        self.good("POST", "/agents", &json!({ "id": id, "name": id, "definition": definition }));
        self.open_chat(id)
    }

    pub fn open_chat(&self, agent: &str) -> String {
        text(&self.good("POST", "/chats", &json!({ "agent_id": agent, "project_id": "default" }))["chat_id"])
    }

    /// A person writes a message; its number.
    pub fn say(&self, chat: &str, content: &str) -> i64 {
        self.good("POST", &format!("/chats/{chat}/messages"), &json!({ "content": content }))["seq"].as_i64().unwrap()
    }

    /// The messages so far: sender and content.
    pub fn said(&self, chat: &str) -> Vec<(String, String)> {
        let items = self.get(&format!("/chats/{chat}/messages?after=0&limit=200"))["items"].clone();
        let said = |message: &Value| (text(&message["sender"]), text(&message["content"]));
        items.as_array().unwrap().iter().map(said).collect()
    }

    /// The messages of one side so far.
    pub fn words_of(&self, chat: &str, sender: &str) -> Vec<String> {
        self.said(chat).into_iter().filter(|(who, _)| who == sender).map(|(_, content)| content).collect()
    }

    /// Waits until one side has written this many messages.
    #[track_caller]
    pub fn hears(&self, chat: &str, sender: &str, messages: usize) -> Vec<String> {
        until(&format!("{messages} messages of {sender}: {:?}", self.said(chat)), SOON, || {
            Some(self.words_of(chat, sender)).filter(|said| said.len() >= messages)
        })
    }

    pub fn chat_state(&self, chat: &str) -> String {
        text(&self.chat(chat)["agent_state"])
    }

    #[track_caller]
    pub fn reaches_state(&self, chat: &str, state: &str) {
        until(&format!("the agent is {state}"), SOON, || (self.chat_state(chat) == state).then_some(()));
    }

    pub fn chat(&self, chat: &str) -> Value {
        self.get(&format!("/chats/{chat}"))
    }

    /// A task for an agent that connects by itself.
    pub fn task(&self, agent: &str) -> String {
        let wish = json!({ "kind": "agent", "agent_id": agent, "message": "Count to three." });
        text(&self.good("POST", "/tasks", &wish)["task_id"])
    }

    pub fn status(&self, task: &str) -> String {
        text(&self.get(&format!("/tasks/{task}"))["status"])
    }

    pub fn steer(&self, task: &str, status: &str) -> Value {
        self.good("PATCH", &format!("/tasks/{task}"), &json!({ "status": status }))
    }

    pub fn sessions(&self, state: &str) -> Vec<Value> {
        self.get(&format!("/sessions?state={state}"))["items"].as_array().unwrap().clone()
    }

    pub fn notifications(&self) -> Vec<Value> {
        self.get("/notifications")["items"].as_array().unwrap().clone()
    }

    /// An agent over HTTP that has authenticated.
    pub fn authenticated(&self, agent: &str, passkey: &str) -> Agent {
        let wire = Agent { http: self.http().clone(), token: None };
        let said = wire.call("authenticate", json!({ "agent_id": agent, "passkey": passkey, "project_id": "default" }));
        assert_eq!(said.body["ok"], true, "{said:?}");
        Agent { token: Some(text(&said.body["session_token"])), ..wire }
    }

    /// An agent in an open chat.
    pub fn chatting(&self, agent: &str) -> (String, Agent) {
        let passkey = self.agent(agent);
        let chat = self.open_chat(agent);
        (chat, self.authenticated(agent, &passkey))
    }

    /// An agent at work on a task.
    pub fn working(&self, agent: &str) -> (String, Agent) {
        let passkey = self.agent(agent);
        let task = self.task(agent);
        (task, self.authenticated(agent, &passkey))
    }

    /// How many waits the daemon holds open.
    pub fn waiters(&self) -> f64 {
        let (host, key) = (self.http().address.to_string(), format!("Bearer {}", self.http().token));
        let reply = self.http().send("GET", "/metrics", &[("Host", host.as_str()), ("Authorization", &key)], b"");
        let line = reply.body.lines().find(|line| line.starts_with("matsu_waiters "));
        line.and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0.0)
    }
}

/// An agent that uses modern MCP over HTTP.
#[derive(Clone)]
pub struct Agent {
    pub http: Http,
    pub token: Option<String>,
}

impl Agent {
    pub fn call(&self, tool: &str, mut arguments: Value) -> ToolAnswer {
        if let Some(token) = &self.token {
            arguments["session_token"] = json!(token);
        }
        let body = modern("tools/call", json!({ "name": tool, "arguments": arguments }));
        let began = Instant::now();
        let reply = self.http.send("POST", "/mcp?tools=all", &self.headers(&body), body.to_string().as_bytes());
        ToolAnswer::of(&reply.json(), began.elapsed())
    }

    /// Sends a request and disconnects without taking the answer.
    pub fn call_and_hang_up(&self, tool: &str, mut arguments: Value, after: Duration) {
        use std::io::Write;
        arguments["session_token"] = json!(self.token);
        let body = modern("tools/call", json!({ "name": tool, "arguments": arguments })).to_string();
        let mut head = format!("POST /mcp?tools=all HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in self.header_lines(&serde_json::from_str(&body).unwrap()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = std::net::TcpStream::connect(self.http.address).unwrap();
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        std::thread::sleep(after);
    }

    pub fn next(&self, arguments: Value) -> ToolAnswer {
        self.call("get_next_action", arguments)
    }

    fn header_lines(&self, body: &Value) -> Vec<(String, String)> {
        let mut lines = vec![
            ("Host".to_owned(), self.http.address.to_string()),
            ("Authorization".to_owned(), format!("Bearer {}", self.http.token)),
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ];
        lines.extend(headers_for(body));
        lines
    }

    fn headers(&self, body: &Value) -> Vec<(&'static str, &'static str)> {
        // Requests are few and live as long as the test.
        self.header_lines(body).into_iter().map(|(name, value)| (leak(name), leak(value))).collect()
    }
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

impl ToolAnswer {
    #[track_caller]
    pub fn of(answer: &Value, took: Duration) -> Self {
        let result = &answer["result"];
        assert!(result.is_object(), "{answer}");
        Self {
            body: result["structuredContent"].clone(),
            text: text(&result["content"][0]["text"]),
            is_error: result["isError"].as_bool().unwrap_or(false),
            took,
        }
    }

    pub fn action(&self) -> &str {
        self.body["action"].as_str().unwrap_or_default()
    }

    pub fn code(&self) -> &str {
        self.body["error_code"].as_str().unwrap_or_default()
    }

    pub fn seqs(&self) -> Vec<i64> {
        let messages = self.body["messages"].as_array().cloned().unwrap_or_default();
        messages.iter().map(|message| message["seq"].as_i64().unwrap()).collect()
    }

    pub fn is_notice(&self) -> bool {
        self.body["interrupted"] == true
    }
}

/// A client on stdio that calls as a session.
pub fn call_over_stdio(client: &mut Client, token: Option<&str>, tool: &str, mut arguments: Value) -> ToolAnswer {
    if let Some(token) = token {
        arguments["session_token"] = json!(token);
    }
    let began = Instant::now();
    let id = client.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
    ToolAnswer::of(&client.answer(id), began.elapsed())
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

#[track_caller]
pub fn assert_within(took: Duration, from: f64, to: f64) {
    let seconds = took.as_secs_f64();
    assert!((from..=to).contains(&seconds), "took {seconds} s, not {from} to {to} s");
}
