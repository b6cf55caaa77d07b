//! What the session of a run has not received yet, asked over the daemon's socket as the run itself.
//!
//! Orders to stop are repeated until the agent acts on them; messages of a person are passed on once, and stay in the
//! chat.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use matsu_core::clock::Clock;
use matsu_core::id::NodeId;
use matsu_server::mcp::bounded_lines::{BoundedLines, Line};
use matsu_server::mcp::socket::{Greeting, Preamble};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use crate::compose::VERSION;

const PROTOCOL: &str = "2026-07-28";

/// What the model is given after its tool call. `None`: nothing.
pub async fn after_tool(socket: &Path) -> Result<Option<Value>> {
    let reply = call(socket, json!({ "mark_as_read": true })).await?;
    let notifications = reply["notifications"].as_array().cloned().unwrap_or_default();
    let is_order = |notification: &&Value| notification["type"] == "interrupt";
    let (orders, words): (Vec<&Value>, Vec<&Value>) = notifications.iter().partition(is_order);
    if !words.is_empty() {
        let ids: Vec<&Value> = words.iter().map(|notification| &notification["id"]).collect();
        call(socket, json!({ "mark_as_read": false, "ack_ids": ids })).await?;
    }
    Ok(match (orders.is_empty(), words.is_empty()) {
        (true, true) => None,
        (true, false) => {
            let context = json!({ "hookEventName": "PostToolUse", "additionalContext": text_of(&words) });
            Some(json!({ "hookSpecificOutput": context }))
        }
        (false, _) => Some(json!({ "decision": "block", "reason": text_of(&[orders, words].concat()) })),
    })
}

/// One line for each: what a person wants, and what to do now.
fn text_of(notifications: &[&Value]) -> String {
    let line = |notification: &&Value| {
        let field = |name: &str| notification[name].as_str().unwrap_or_default().to_owned();
        format!("Matsu: {} {}", field("message"), field("instruction"))
    };
    notifications.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// One call of `get_notifications` with the token of the environment.
async fn call(socket: &Path, arguments: Value) -> Result<Value> {
    let (reader, mut writer) = UnixStream::connect(socket).await?.into_split();
    let preamble = Preamble {
        version: VERSION.to_owned(),
        instance: NodeId::mint(Clock::system().now()).to_string(),
        tools: "sessions".to_owned(),
        hold: None,
        roots: Vec::new(),
        cwd: None,
        project: None,
        session_token: crate::config::session_token(),
        token: None,
        acknowledges: false,
    };
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": PROTOCOL,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "matsu-hook", "version": VERSION },
    });
    let params = json!({ "name": "get_notifications", "arguments": arguments, "_meta": meta });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let mut lines = BoundedLines::new(reader);
    writer.write_all(format!("{}\n", serde_json::to_string(&preamble)?).as_bytes()).await?;
    let greeting: Greeting = serde_json::from_value(next(&mut lines).await?)?;
    if let Some(error) = greeting.error {
        bail!(error);
    }
    writer.write_all(format!("{request}\n").as_bytes()).await?;
    loop {
        let answer = next(&mut lines).await?;
        if answer["id"] == 1 {
            return Ok(answer["result"]["structuredContent"].clone());
        }
    }
}

async fn next(lines: &mut BoundedLines<tokio::net::unix::OwnedReadHalf>) -> Result<Value> {
    match lines.next().await? {
        Line::Whole(line) => serde_json::from_slice(&line).context("the daemon's answer cannot be read"),
        Line::TooLong | Line::End => bail!("the daemon closed the connection"),
    }
}
