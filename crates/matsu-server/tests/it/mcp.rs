//! MCP over a pipe in memory: the same lines as over the socket.

use std::sync::atomic::{AtomicUsize, Ordering};

use matsu_core::access::Role;
use matsu_server::auth::TokenWish;
use matsu_server::mcp::socket::{Preamble, converse};
use matsu_server::peer::Peer;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use crate::harness::Server;

pub struct Client {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    next_id: i64,
    greeting: Value,
}

impl Client {
    async fn new(server: &Server, token: Option<String>, tools: &str) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let preamble = Preamble {
            version: server.app.version().to_owned(),
            instance: "test".to_owned(),
            tools: tools.to_owned(),
            hold: None,
            roots: Vec::new(),
            cwd: None,
            project: None,
            session_token: None,
            token,
            acknowledges: false,
        };
        let (reader, writer) = tokio::io::split(far);
        let (app, preamble) = (server.app.clone(), serde_json::to_string(&preamble).unwrap());
        tokio::spawn(async move { converse(app, Peer::default(), &preamble, reader, writer).await });
        let (reader, writer) = tokio::io::split(near);
        let mut client = Self { reader: BufReader::new(reader), writer, next_id: 0, greeting: Value::Null };
        client.greeting = client.line().await;
        client
    }

    pub async fn line(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    pub async fn write(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.expect("a pipe");
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        loop {
            let line = self.line().await;
            if line["id"] == id {
                return line;
            }
        }
    }

    async fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let reply = self.ask("initialize", params).await;
        assert_eq!(reply["result"]["serverInfo"]["name"], "matsu", "{reply}");
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert!(reply["error"].is_null(), "{tool}: {reply}");
        reply["result"].clone()
    }
}

/// A client that presents a token of the local owner.
pub async fn connected(server: &Server, role: Role) -> Client {
    static CLIENTS: AtomicUsize = AtomicUsize::new(0);
    let name = format!("mcp-{}", CLIENTS.fetch_add(1, Ordering::Relaxed));
    let wish = TokenWish { role, ..TokenWish::of_owner(name) };
    let token = server.app.tokens().make(wish).await.expect("a token is made").1;
    let mut client = Client::new(server, Some(token), "all").await;
    assert!(client.greeting["error"].is_null(), "{}", client.greeting);
    client.initialize().await;
    client
}

#[tokio::test(start_paused = true)]
async fn the_list_has_every_tool_with_schemas_title_and_hints() {
    let server = Server::new().await;
    let mut client = connected(&server, Role::Admin).await;
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), matsu_runtime::tools::TOOLS.len(), "{listed}");
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["title"].is_string() || tool["annotations"]["title"].is_string(), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        for hint in ["readOnlyHint", "destructiveHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{name}: {hint}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_the_same_in_text_and_structure() {
    let server = Server::new().await;
    let mut client = connected(&server, Role::Admin).await;
    let result = client.call("get_task_status", json!({})).await;
    assert_eq!(result["structuredContent"]["ok"], true, "{result}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
}

#[tokio::test(start_paused = true)]
async fn an_argument_that_does_not_fit_is_refused_with_its_name() {
    let server = Server::new().await;
    let mut client = connected(&server, Role::Admin).await;
    let result = client.call("get_task_status", json!({ "task_id": 7 })).await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["structuredContent"]["error_code"], "INVALID_PARAMS", "{result}");
    assert_eq!(result["structuredContent"]["details"]["param_name"], "task_id", "{result}");
}

#[tokio::test(start_paused = true)]
async fn a_viewer_calls_only_what_reads() {
    let server = Server::new().await;
    let mut client = connected(&server, Role::Viewer).await;
    let wish = json!({ "name": "create_task", "arguments": { "query": "what is a lease?" } });
    let reply = client.ask("tools/call", wish).await;
    let why = reply["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("create_task is not offered on this connection"), "{reply}");
    let listed = client.call("get_task_status", json!({})).await;
    assert_eq!(listed["structuredContent"]["total"], 0, "{listed}");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_known_is_refused_in_the_greeting() {
    let server = Server::new().await;
    let client = Client::new(&server, Some("matsu_unknown".to_owned()), "all").await;
    assert!(client.greeting["error"].as_str().unwrap().contains("token"), "{}", client.greeting);
}
