//! Images in chats with models: from a person and from a tool of an MCP server, to models that take them and to models
//! that do not.

use matsu_testkit::model_server::{Asked, ModelServer, Reply};
use serde_json::{Value, json};

use super::{hears, messages, open, serve};
use crate::home::{Daemon, Home};

/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// An MCP server whose one tool shows a picture.
const CAMERA: &str = r#"
import json, sys

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method = request["method"]
    if method == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "camera", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "photograph", "inputSchema": {"type": "object"},
                             "annotations": {"readOnlyHint": True}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "Taken."},
                              {"type": "image", "mimeType": "image/png", "data": "PNG"},
                              {"type": "image", "mimeType": "image/png", "data": "bm8gaW1hZ2U="}]}
    else:
        error = {"code": -32601, "message": "unknown"}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

/// A model that takes a picture, and then says that it has.
fn photographer() -> ModelServer {
    // In some formats the picture stands in a message of its own, after the results.
    let author = |asked: &Asked| {
        let has_taken = asked.messages.iter().any(|message| message.contains("Taken."));
        if has_taken { Reply::text("I have it.") } else { Reply::tool("photograph", json!({})) }
    };
    ModelServer::with(Box::new(author)).unwrap()
}

fn home(wire: &str, server: &ModelServer, images: &str) -> Home {
    let home = Home::sqlite();
    let path = if wire.starts_with("openai") { "/v1" } else { "" };
    let config =
        format!("[providers.m]\nwire = \"{wire}\"\nmodel = \"m-1\"\nbase_url = \"{}{path}\"\n{images}\n", server.url());
    std::fs::write(home.path("config.toml"), config).unwrap();
    let program = home.path("camera.py");
    std::fs::write(&program, CAMERA.replace("PNG", PNG)).unwrap();
    std::fs::create_dir_all(home.data_dir()).unwrap();
    let servers = json!({ "mcpServers": { "camera": { "command": "python3", "args": [program] } } });
    std::fs::write(home.data("mcp.json"), servers.to_string()).unwrap();
    home
}

/// What the vendor was sent with the tool's answer.
fn last_body(server: &ModelServer) -> Value {
    server.requests().last().unwrap().body.clone()
}

fn show(daemon: &Daemon, chat: &str) {
    let line = json!({ "content": "@m compare these", "images": [PNG] });
    daemon.api.post(&format!("/api/v1/chats/{chat}/messages"), &line);
    hears(daemon, chat, "completed", "I have it.");
}

#[test]
fn a_model_that_takes_images_gets_those_of_the_line_and_of_the_tool() {
    for wire in ["openai_chat", "openai", "anthropic", "gemini", "ollama"] {
        let server = photographer();
        let home = home(wire, &server, "images = true");
        let daemon = serve(&home);
        let chat = open(&daemon, &["m"]);
        show(&daemon, &chat);
        let sent = last_body(&server).to_string();
        assert_eq!(sent.matches(PNG).count(), 2, "{wire}: {sent}");
        assert!(sent.contains("not shown: its bytes are not a PNG"), "{wire}: {sent}");
        // The page shows both, and can read both.
        let messages = messages(&daemon, &chat);
        let (line, call) = (&messages[0], &messages[1]["tools"][0]);
        assert_eq!(line["images"], json!([{ "media_type": "image/png", "bytes": 70 }]), "{wire}");
        assert_eq!(call["images"], line["images"], "{wire}");
        for of in [&line["id"], &call["id"]] {
            let path = format!("/api/v1/chats/{chat}/images/{}", of.as_str().unwrap());
            let items = json!([{ "media_type": "image/png", "data": PNG }]);
            assert_eq!(daemon.api.get(&path)["items"], items, "{wire}");
        }
    }
}

#[test]
fn a_model_that_takes_none_gets_words_in_their_place() {
    let server = photographer();
    let home = home("openai_chat", &server, "");
    let daemon = serve(&home);
    let chat = open(&daemon, &["m"]);
    show(&daemon, &chat);
    let sent = last_body(&server).to_string();
    assert!(!sent.contains(PNG) && !sent.contains("image_url"), "{sent}");
    assert_eq!(sent.matches("that you cannot see: images are not sent to this model").count(), 2, "{sent}");
    let stream = daemon.api.get(&format!("/api/v1/chats/{chat}/export?format=markdown"));
    assert!(stream["markdown"].as_str().unwrap().contains("(an image: image/png, 1 kB)"), "{stream}");
}

#[test]
fn what_is_no_image_or_too_much_is_refused_and_nothing_is_stored() {
    let server = photographer();
    let home = home("anthropic", &server, "images = true");
    let daemon = serve(&home);
    let chat = open(&daemon, &["m"]);
    let path = format!("/api/v1/chats/{chat}/messages");
    let large = format!("{}{}", &PNG[..16], "A".repeat(3_800_000));
    for (images, said) in [
        (json!(["aGVsbG8="]), "image 1 cannot be sent: its bytes are not a PNG"),
        (json!([PNG, "%"]), "image 2 cannot be sent: its data is not Base64"),
        (json!([large]), "make it smaller"),
        (json!([PNG, PNG, PNG, PNG, PNG, PNG, PNG, PNG, PNG]), "8"),
    ] {
        let refused = daemon.api.send("POST", &path, Some(&json!({ "content": "@m look", "images": images }))).unwrap();
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert!(refused.body.contains(said), "{said}: {}", refused.body);
    }
    assert!(messages(&daemon, &chat).is_empty() && server.asked().is_empty());
}
