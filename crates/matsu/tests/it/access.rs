//! Rights: the socket asks for a token, roles and folders bound other users, and what a token had open ends with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use matsu_core::clock::Clock;
use matsu_core::id::TokenId;
use matsu_core::ports::store::ExtendToken;
use matsu_store::{OpenOptions, Synchronous};
use serde_json::{Value, json};

use crate::api::{Api, noop, over_socket, over_socket_with, sleep, until};
use crate::events::Events;
use crate::home::Home;
use crate::model_chats;

/// What a revoked token had open ends within this time.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// A token and the server it opens.
fn token(home: &Home, api: &Api, arguments: &[&str]) -> (Api, String) {
    let made = home.run_json(&[&["token", "new"], arguments].concat());
    (Api { token: text(&made["secret"]), ..api.clone() }, text(&made["token"]["id"]))
}

#[test]
fn the_socket_asks_for_a_token() {
    let home = Home::sqlite();
    let _daemon = home.serve();
    let socket = home.data("matsu.sock");
    for path in ["/healthz", "/control/info"] {
        assert_eq!(over_socket_with(&socket, "GET", path, &[], None).unwrap().status, 200, "{path}");
    }
    // Commands read the token from the data directory.
    assert_eq!(home.run(&["tasks"]).code, 0);
    // The last one ends the daemon.
    for (method, path) in [("GET", "/api/v1/tasks"), ("POST", "/control/login-code"), ("POST", "/control/hand-over")] {
        let body = (method == "POST").then(|| json!({ "version": "99.0.0" }));
        for headers in [&[][..], &["Authorization: Bearer wrong"][..]] {
            let refused = over_socket_with(&socket, method, path, headers, body.as_ref()).unwrap();
            assert_eq!((refused.status, refused.json()["error_code"].as_str()), (401, Some("UNAUTHORIZED")), "{path}");
        }
        let admitted = over_socket(&socket, method, path, body.as_ref()).unwrap();
        assert_eq!(admitted.status, 200, "{path}: {admitted:?}");
    }
}

#[test]
fn a_connection_that_says_it_is_a_runs_needs_the_key_of_that_run() {
    let home = Home::sqlite();
    let daemon = home.serve();
    for first in [r#"{"matsu_run":"run_00000000000000000000000000","key":"guess"}"#, r#"{"matsu_run":"","key":""}"#] {
        let mut stream = UnixStream::connect(home.data("matsu.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let request = format!(
            "{first}\nGET /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
            daemon.api.token
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "", "it is hung up on");
    }
}

/// A relay as it was before relays had tokens.
#[test]
fn a_relay_of_an_older_version_sees_the_tools_and_is_asked_to_restart() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let task = daemon.api.submit(vec![noop()]);
    let stream = UnixStream::connect(home.data("matsu.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut exchange = |frame: Value| -> Value {
        (&stream).write_all(format!("{frame}\n").as_bytes()).unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    let preamble = json!({ "version": "0.1.0", "instance": "old", "tools": "all", "hold": null, "roots": ["/"] });
    assert_eq!(exchange(preamble)["error"], Value::Null);
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let hello = exchange(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }));
    assert_eq!(hello["result"]["serverInfo"]["name"], "matsu", "{hello}");
    (&stream).write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").unwrap();
    let listed = exchange(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    assert!(listed["result"]["tools"].as_array().unwrap().len() > 10, "{listed}");
    for (id, name) in [(3, "get_task_status"), (4, "create_task")] {
        let arguments = if id == 3 { json!({ "task_id": task }) } else { json!({ "query": "pines" }) };
        let params = json!({ "name": name, "arguments": arguments });
        let said = exchange(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        assert_eq!(said["result"]["isError"], true, "{said}");
        assert!(said.to_string().contains("restart Matsu in your client"), "{said}");
        assert!(!said.to_string().contains(&task), "{said}");
    }
}

#[test]
fn a_role_says_what_a_token_allows() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let foreign = daemon.api.submit(vec![noop()]);
    home.run_json(&["user", "add", "alice"]);
    let (member, _) = token(&home, &daemon.api, &["hers", "--user", "alice"]);
    let (viewer, _) = token(&home, &daemon.api, &["her screen", "--user", "alice", "--role", "viewer"]);
    let (admin, _) = token(&home, &daemon.api, &["her admin", "--user", "alice", "--role", "admin"]);
    let (limited, _) = token(&home, &daemon.api, &["limited", "--tools", "research"]);
    let status = |api: &Api, method: &str, path: &str, body: Value| {
        api.send(method, path, Some(&body).filter(|body| !body.is_null())).unwrap().status
    };
    assert_eq!(member.get("/api/v1/session")["role"], "member");
    assert_eq!(status(&limited, "POST", "/api/v1/tokens", json!({ "name": "without the limit" })), 403);
    // A member has its own work, and that of no other user.
    let task = member.submit(vec![noop()]);
    assert_eq!(status(&member, "GET", &format!("/api/v1/tasks/{foreign}"), Value::Null), 404);
    assert_eq!(viewer.task(&task)["task_id"], task.as_str(), "a viewer reads what is its user's");
    // A viewer changes nothing, over no way.
    let cancel = json!({ "status": "cancelled" });
    assert_eq!(status(&viewer, "PATCH", &format!("/api/v1/tasks/{task}"), cancel), 403);
    let refused = viewer.post("/api/v1/tools/create_task", &json!({ "query": "pines" }));
    assert_eq!(refused["error_code"], "FORBIDDEN", "{refused}");
    assert!(text(&refused["error"]).contains("member or admin"), "{refused}");
    let offered = viewer.get("/api/v1/tools").to_string();
    assert!(offered.contains("get_task_status") && !offered.contains("cancel_task"), "{offered}");
    // An admin's rights are the installation's.
    for (path, body) in [("/api/v1/nodes", Value::Null), ("/api/v1/users", Value::Null), ("/metrics", Value::Null)] {
        assert_eq!(status(&admin, "GET", path, body.clone()), 200, "{path}");
        assert_eq!(status(&member, "GET", path, body), 403, "{path}");
    }
    assert_eq!(status(&member, "POST", "/api/v1/tokens", json!({ "name": "more" })), 403);
    // A token for some tools is for those, over REST too.
    let other = limited.post("/api/v1/tools/list_agents", &json!({}));
    assert_eq!(other["error_code"], "FORBIDDEN", "{other}");
    assert_eq!(limited.post("/api/v1/tools/create_task", &json!({ "query": "pines" }))["ok"], true);
    let listed = home.run(&["token", "list"]).good().out;
    assert!(listed.contains("alice") && listed.contains("viewer") && listed.contains("research"), "{listed}");
}

#[test]
fn a_member_works_only_in_folders_that_an_admin_gave() {
    let home = Home::sqlite();
    let (given, other) = (home.path("given"), home.path("other"));
    for folder in [&given, &other] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("note.md"), "# Pines\n\nThe stone pine grows slowly in the mountains.\n").unwrap();
    }
    std::os::unix::fs::symlink(&other, given.join("way-out")).unwrap();
    let agents = home.path("agents");
    std::fs::create_dir_all(&agents).unwrap();
    let definition = "name = \"sh\"\ncommand = \"/bin/sh\"\nargs = [\"-s\"]\nprompt = \"stdin\"\noutput = \"text\"\n[modes.read-only]\n";
    std::fs::write(agents.join("sh.toml"), definition).unwrap();
    // What the configuration allows is the local owner's.
    let config = format!("[agents]\nroots = \"{}\"\n", other.display());
    std::fs::write(home.path("config.toml"), config).unwrap();
    let file = home.path("config.toml").display().to_string();
    let daemon = home.serve_with(&["--config", &file]);
    home.run_json(&["user", "add", "alice"]);
    let (alice, _) = token(&home, &daemon.api, &["hers", "--user", "alice"]);
    let start = |directory: Option<&std::path::Path>| {
        let mut wish = json!({ "cli_name": "sh", "message": "pwd", "run_async": true });
        if let Some(directory) = directory {
            wish["working_directory"] = json!(directory);
        }
        alice.post("/api/v1/tools/use_agent", &wish)
    };
    let refused = start(None);
    assert_eq!(refused["error_code"], "FORBIDDEN", "{refused}");
    assert!(text(&refused["error"]).contains("matsu user add"), "{refused}");
    let search = |folder: &std::path::Path| {
        let wish = json!({ "kind": "research", "query": "pines", "folders": [folder] });
        alice.send("POST", "/api/v1/tasks", Some(&wish)).unwrap().status
    };
    assert_eq!(search(&given), 403);
    home.run_json(&["user", "add", "alice", "--root", given.to_str().unwrap()]);
    assert_eq!(start(None)["ok"], true, "in the folder that was given");
    for outside in [&other, &given.join("way-out"), &home.path("."), &given.join("..")] {
        let refused = start(Some(outside.as_path()));
        assert_eq!(refused["error_code"], "FORBIDDEN", "{}: {refused}", outside.display());
        assert_eq!(search(outside), 403, "{}", outside.display());
    }
    assert_eq!(search(&given), 201);
    let ended = start(Some(given.as_path()));
    let ended = alice.ended(&text(&ended["task_id"]), Duration::from_secs(30));
    assert_eq!(ended["status"], "completed", "{ended}");
}

#[test]
fn an_expired_token_is_refused_and_stays_so() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let (short, id) = token(&home, &daemon.api, &["short", "--expires", "2s"]);
    assert_eq!(short.send("GET", "/api/v1/tasks", None).unwrap().status, 200);
    let mut events = Events::open(&short, "/api/v1/events", &[&format!("Authorization: Bearer {}", short.token)]);
    events.until("the end", |event| event.name == "bye");
    let refused = short.send("GET", "/api/v1/tasks", None).unwrap();
    assert_eq!(refused.status, 401, "{refused:?}");
    // The clock is set back, or its end is moved: it stays out.
    let now = Clock::system().now();
    with_store(&home, async |store| {
        store
            .run(ExtendToken { id: TokenId::from_text(&id), expires_at: now.plus(Duration::from_secs(3_600)) })
            .await
            .unwrap();
    });
    assert_eq!(short.send("GET", "/api/v1/tasks", None).unwrap().status, 401);
    let listed = home.run_json(&["token", "list"]);
    let listed = listed["items"].as_array().unwrap().iter().find(|token| token["id"] == *id).unwrap();
    assert!(listed["revoked_at"].is_string(), "{listed}");
    let never = home.run(&["token", "new", "never", "--expires", "soon"]);
    assert!(never.code != 0 && never.err.contains("30d"), "{never:?}");
}

#[test]
fn a_clock_that_jumps_past_the_end_of_a_token_and_back_ends_it_for_good() {
    let mut home = Home::sqlite();
    let daemon = home.serve();
    let (short, _) = token(&home, &daemon.api, &["short", "--expires", "1h"]);
    let (long, _) = token(&home, &daemon.api, &["long", "--expires", "30d"]);
    drop(daemon);
    for (wrong_by, of_short) in [("0", 200), ("-7200", 200), ("7200", 401), ("0", 401)] {
        home = home.with_variable("MATSU_TEST_CLOCK", wrong_by);
        let daemon = home.serve();
        for (token, expected) in [(&short.token, of_short), (&long.token, 200)] {
            let api = Api { token: token.clone(), ..daemon.api.clone() };
            let status = api.send("GET", "/api/v1/tasks", None).unwrap().status;
            assert_eq!(status, expected, "{wrong_by} s");
        }
    }
}

fn with_store(home: &Home, act: impl AsyncFnOnce(&dyn matsu_core::ports::store::Store)) {
    let url = format!("sqlite:{}", home.data("matsu.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = OpenOptions { synchronous: Synchronous::Full, clock: Clock::system() };
        let opened = matsu_store::open(&url, options).await.unwrap();
        act(&*opened.store).await;
    });
}

#[test]
fn what_a_revoked_token_had_open_ends() {
    let home = model_chats::home();
    let daemon = model_chats::serve(&home);
    home.run_json(&["user", "add", "alice"]);
    let (alice, id) = token(&home, &daemon.api, &["hers", "--user", "alice"]);
    let bearer = format!("Authorization: Bearer {}", alice.token);
    let task = alice.submit(vec![sleep(600_000)]);
    alice.job_becomes(&task, "running", Duration::from_secs(20));
    let chat = text(&alice.post("/api/v1/chats", &json!({ "models": ["echo"] }))["chat_id"]);
    alice.post(&format!("/api/v1/chats/{chat}/messages"), &json!({ "content": "@echo count" }));
    // A stream that is busy all the time: twenty seconds of words.
    let mut busy = Events::open(&alice, &format!("/api/v1/chats/{chat}/stream"), &[&bearer]);
    busy.until("words", |event| event.data.to_string().contains("2. "));
    let mut idle = Events::open(&alice, "/api/v1/events", &[&bearer]);
    idle.until("hello", |event| event.name == "hello");
    let revision = alice.task(&task)["revision"].as_i64().unwrap();
    let waiting = alice.clone();
    let held = std::thread::spawn(move || {
        let path = format!("/api/v1/tasks/{task}/wait?since={revision}&timeout=50");
        waiting.send("GET", &path, None).unwrap()
    });
    until("the wait is held", Duration::from_secs(10), || {
        (daemon.api.get("/api/v1/metrics/summary")["waiters"].as_i64()? > 0).then_some(())
    });
    home.run_json(&["token", "revoke", &id]);
    let began = Instant::now();
    let reply = held.join().unwrap();
    assert_eq!(reply.status, 401, "{reply:?}");
    for stream in [&mut busy, &mut idle] {
        stream.until("the end", |event| event.name == "bye");
    }
    assert!(began.elapsed() < ENDS_WITHIN, "{:?}", began.elapsed());
}

/// A call over `/mcp` that waits, as clients of both eras make it.
fn waits_over_mcp(api: &Api, session: Option<&str>, task: &str) -> std::thread::JoinHandle<crate::api::Reply> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({ "task_id": task, "timeout": 50, "wait_for": "all" });
    let mut params = json!({ "name": "get_task_status", "arguments": arguments });
    if session.is_none() {
        params["_meta"] = meta;
    }
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string();
    let mut headers = vec![
        format!("Authorization: Bearer {}", api.token),
        "Accept: application/json, text/event-stream".to_owned(),
        "Content-Type: application/json".to_owned(),
    ];
    match session {
        Some(id) => headers.push(format!("Mcp-Session-Id: {id}")),
        None => headers.extend(
            ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: get_task_status"]
                .map(str::to_owned),
        ),
    }
    let api = api.clone();
    std::thread::spawn(move || {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        api.send_raw("POST", "/mcp", &headers, body.as_bytes()).unwrap()
    })
}

#[test]
fn waits_over_mcp_end_with_their_token_and_with_their_user() {
    let home = Home::sqlite();
    let daemon = home.serve();
    for ends in ["token", "user"] {
        for is_legacy in [true, false] {
            home.run_json(&["user", "add", "alice"]);
            let (alice, id) = token(&home, &daemon.api, &["hers", "--user", "alice"]);
            let task = alice.submit(vec![sleep(600_000)]);
            alice.job_becomes(&task, "running", Duration::from_secs(20));
            let session = is_legacy.then(|| crate::unauthenticated::begin(&alice));
            let held = waits_over_mcp(&alice, session.as_deref(), &task);
            until("the wait is held", Duration::from_secs(10), || {
                (daemon.api.get("/api/v1/metrics/summary")["waiters"].as_i64()? > 0).then_some(())
            });
            match ends {
                "token" => home.run_json(&["token", "revoke", &id]),
                _ => home.run_json(&["user", "remove", "alice"]),
            };
            let began = Instant::now();
            let reply = held.join().unwrap();
            assert!(began.elapsed() < ENDS_WITHIN, "{ends}, legacy {is_legacy}: {:?}", began.elapsed());
            // No answer of the task, whatever the transport says instead.
            assert!(!reply.body.contains("\"status\":\"running\""), "{ends}, legacy {is_legacy}: {reply:?}");
            if let Some(session) = session {
                let ping = json!({ "jsonrpc": "2.0", "id": 8, "method": "ping" });
                assert_eq!(crate::unauthenticated::mcp(&alice, Some(&session), &ping).status, 401);
            }
            if ends == "token" {
                home.run_json(&["user", "remove", "alice"]);
            }
        }
    }
}

#[test]
fn a_user_that_is_removed_has_nothing_open_any_more() {
    let home = Home::sqlite();
    let daemon = home.serve();
    home.run_json(&["user", "add", "alice"]);
    let (alice, _) = token(&home, &daemon.api, &["hers", "--user", "alice"]);
    let bearer = format!("Authorization: Bearer {}", alice.token);
    let mut events = Events::open(&alice, "/api/v1/events", &[&bearer]);
    events.until("hello", |event| event.name == "hello");
    let removed = home.run_json(&["user", "remove", "alice"]);
    assert_eq!(removed["tokens"], 1, "{removed}");
    let began = Instant::now();
    events.until("the end", |event| event.name == "bye");
    assert!(began.elapsed() < ENDS_WITHIN, "{:?}", began.elapsed());
    assert_eq!(alice.send("GET", "/api/v1/tasks", None).unwrap().status, 401);
    let again = home.run(&["user", "remove", "alice"]);
    assert!(again.code != 0 && again.err.contains("alice"), "{again:?}");
}

#[test]
fn a_relay_ends_with_its_token_and_finds_the_next_one() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let stream = UnixStream::connect(home.data("matsu.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let (other, id) = token(&home, &daemon.api, &["relay"]);
    let preamble =
        json!({ "version": "0.1.0", "instance": "new", "tools": "core", "hold": null, "token": other.token });
    (&stream).write_all(format!("{preamble}\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let greeting: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(greeting["error"], Value::Null, "{greeting}");
    home.run_json(&["token", "revoke", &id]);
    let began = Instant::now();
    assert!(lines.next().is_none(), "it is hung up on");
    assert!(began.elapsed() < ENDS_WITHIN, "{:?}", began.elapsed());
}
