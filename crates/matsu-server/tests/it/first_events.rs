//! The event without data at the beginning of a stream: as it is for clients that know it, with a name for others.

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use matsu_core::access::Role;
use serde_json::{Value, json};

use crate::harness::{Server, request};

/// A message to `/mcp`; the session that the reply names, and all of its events.
async fn post(server: &Server, token: &str, headers: &[(&str, &str)], body: &Value) -> (String, String) {
    let mut sent: Request<Body> = request("POST", "/mcp", Some(token), Some(body));
    sent.headers_mut().insert(header::ACCEPT, "application/json, text/event-stream".parse().unwrap());
    for (name, value) in headers {
        sent.headers_mut().insert(header::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
    }
    let response = server.stream(sent).await;
    let session = response.headers().get("mcp-session-id").map_or("", |id| id.to_str().unwrap()).to_owned();
    let events = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (session, String::from_utf8(events.to_vec()).unwrap())
}

async fn events_of_a_list(version: &str, names_its_version: bool) -> String {
    let server = Server::new().await;
    let token = server.token(Role::Admin, None).await;
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let (session, _) = post(&server, &token, &[], &begin).await;
    assert_ne!(session, "", "a session");
    let mut headers = vec![("mcp-session-id", session.as_str())];
    if names_its_version {
        headers.push(("mcp-protocol-version", version));
    }
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    post(&server, &token, &headers, &ready).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let (_, events) = post(&server, &token, &headers, &list).await;
    assert!(events.contains("\"tools\""), "{version}: {events:.200}");
    events
}

#[tokio::test(start_paused = true)]
async fn the_first_event_of_a_stream_has_a_name_for_clients_that_do_not_know_it() {
    assert!(events_of_a_list("2025-11-25", true).await.starts_with("data: \n"));
    for (version, names_its_version) in [("2025-06-18", true), ("2025-06-18", false)] {
        let events = events_of_a_list(version, names_its_version).await;
        assert!(events.starts_with("event: begin\ndata: \nid: "), "{version}: {events:.200}");
    }
}
