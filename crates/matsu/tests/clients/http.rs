//! A few lines of HTTP, so that a test can send what no proper client would.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

pub const MODERN: &str = "2026-07-28";

#[derive(Clone, Debug)]
pub struct Http {
    pub address: SocketAddr,
    pub token: String,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub body: String,
}

impl Reply {
    /// The JSON of the body, or of the last event of a stream.
    #[track_caller]
    pub fn json(&self) -> Value {
        let mut events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let text = events.rfind(|data| data.contains("\"jsonrpc\"")).unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Http {
    /// One request with exactly these headers besides the length. The answer ends with the connection.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(70))).unwrap();
        let mut head = format!("{method} {path} HTTP/1.0\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses a body by its length may close the connection before the body has come.
        let _ = stream.write_all(body);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Reply { status, body: body.to_owned() }
    }

    /// A modern MCP request as a proper client sends it, with some headers replaced (an empty value removes one).
    pub fn mcp(&self, body: &Value, replaced: &[(&str, &str)]) -> Reply {
        self.mcp_raw(&headers_for(body), replaced, body.to_string().as_bytes())
    }

    /// A modern MCP request to another address of the same listener.
    pub fn mcp_at(&self, path: &str, body: &Value) -> Reply {
        self.raw_at(path, &headers_for(body), &[], body.to_string().as_bytes())
    }

    pub fn mcp_raw(&self, more: &[(String, String)], replaced: &[(&str, &str)], body: &[u8]) -> Reply {
        self.raw_at("/mcp", more, replaced, body)
    }

    fn raw_at(&self, path: &str, more: &[(String, String)], replaced: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut headers = vec![
            ("Host".to_owned(), self.address.to_string()),
            ("Authorization".to_owned(), format!("Bearer {}", self.token)),
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ];
        headers.extend_from_slice(more);
        for (name, value) in replaced {
            headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            if !value.is_empty() {
                headers.push(((*name).to_owned(), (*value).to_owned()));
            }
        }
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.send("POST", path, &headers, body)
    }

    /// Calls a tool; the result, or the protocol's error.
    pub fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.mcp(&tool_call(tool, arguments), &[]).json()
    }

    /// A request of REST; its answer as it came.
    pub fn rest(&self, method: &str, path: &str, body: &Value) -> Reply {
        let (host, key) = (self.address.to_string(), format!("Bearer {}", self.token));
        let headers = [("Host", host.as_str()), ("Authorization", &key), ("Content-Type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, &format!("/api/v1{path}"), &headers, body.as_bytes())
    }

    /// The answer of a tool, refusals too.
    pub fn says(&self, tool: &str, arguments: &Value) -> Value {
        let mut reply = self.mcp_at("/mcp?tools=research,agents", &tool_call(tool, arguments)).json();
        assert!(reply["result"].is_object(), "{tool}: {reply}");
        reply["result"]["structuredContent"].take()
    }

    /// A task that sleeps; its id.
    pub fn submit(&self, ms: u64) -> String {
        let body = json!({ "jobs": [{ "kind": "sleep", "input": { "ms": ms } }] }).to_string();
        let (host, key) = (self.address.to_string(), format!("Bearer {}", self.token));
        let headers = [("Host", host.as_str()), ("Authorization", &key), ("Content-Type", "application/json")];
        let made = self.send("POST", "/test/tasks", &headers, body.as_bytes()).json();
        made["task"]["task_id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    pub fn status_of(&self, task: &str) -> String {
        let reply = self.call("get_task_status", &json!({ "task_id": task }));
        reply["result"]["structuredContent"]["status"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }
}

/// What every modern request carries.
pub fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

pub fn tool_call(tool: &str, arguments: &Value) -> Value {
    modern("tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// What the headers must say about a body.
pub fn headers_for(body: &Value) -> Vec<(String, String)> {
    let mut headers = vec![
        ("MCP-Protocol-Version".to_owned(), MODERN.to_owned()),
        ("Mcp-Method".to_owned(), body["method"].as_str().unwrap_or_default().to_owned()),
    ];
    let params = &body["params"];
    if let Some(name) = params["name"].as_str().or_else(|| params["taskId"].as_str()) {
        headers.push(("Mcp-Name".to_owned(), name.to_owned()));
    }
    headers
}
