//! Matsu as a host of Matsu: a slow call becomes a native task of the server, and the host follows it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use matsu_adapters::mcp_host::{ChatServers, McpConfig, McpHost};
use matsu_core::clock::Clock;
use matsu_core::ports::tool_source::{ToolReply, ToolRequest, ToolSource};
use serde_json::{Value, json};

use crate::api::sleep;
use crate::home::Home;

fn host(home: &Home) -> McpHost {
    let args = json!(["mcp", "--tools", "all", "--data-dir", home.data_dir()]);
    let server = json!({ "mcpServers": { "matsu": { "command": env!("CARGO_BIN_EXE_matsu"), "args": args } } });
    let servers = McpConfig::parse(&server.to_string(), &|_| None).unwrap();
    let environment = vec![("HOME".to_owned(), home.path("").display().to_string())];
    McpHost::new(McpConfig { servers, environment }, vec![], Clock::system())
}

async fn call(servers: &ChatServers, arguments: Value) -> ToolReply {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    servers.call(ToolRequest { name: "get_task_status".to_owned(), arguments, alive: Arc::new(|| {}) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_call_goes_on_as_a_task_and_its_answer_comes_later() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let host = host(&home);
    let servers = host.for_chat("a");
    let offered = servers.offer().await;
    assert!(offered.tools.iter().any(|tool| &*tool.name == "get_task_status"), "{offered:?}");
    let task = daemon.api.submit(vec![sleep(5_000)]);
    let began = Instant::now();
    let answer =
        match call(&servers, json!({ "task_id": task, "timeout": 30, "since": 1, "wait_for": "finished" })).await {
            ToolReply::Later(answer) => answer,
            ToolReply::Now(answer) => panic!("a wait of five seconds is to go on as a task, got {answer:?}"),
        };
    assert!(began.elapsed() < Duration::from_millis(4_500), "the loop is free again after {:?}", began.elapsed());
    let answer = answer.await;
    assert!(!answer.is_error && answer.content.contains(&task), "{answer:?}");
    host.close_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn giving_up_a_task_cancels_it_at_its_server() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let host = host(&home);
    let servers = host.for_chat("a");
    servers.offer().await;
    let task = daemon.api.submit(vec![sleep(60_000)]);
    let reply = call(&servers, json!({ "task_id": task, "timeout": 50, "since": 1, "wait_for": "finished" })).await;
    assert!(matches!(reply, ToolReply::Later(_)));
    drop(reply);
    host.close_all().await;
    let waits = daemon.api.all("tasks");
    let wait = waits.iter().find(|task| task["kind"] == "wait").unwrap_or_else(|| panic!("{waits:?}"));
    assert_eq!(wait["status"], "cancelled", "{wait}");
}
