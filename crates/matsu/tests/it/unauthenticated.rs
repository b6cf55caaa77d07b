//! What a client without a key can take of the server: little memory, little time, no place of a client with a key.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, Reply, noop, sleep, until};
use crate::events::Events;
use crate::home::{Home, START_MAX};

const MIB: u64 = 1024 * 1024;

fn rss(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

fn connect(api: &Api) -> TcpStream {
    let stream = TcpStream::connect_timeout(&api.address, Duration::from_secs(5)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// A request that never ends: as much of it as the server takes.
fn half_open(api: &Api, head: &str, more: usize) -> TcpStream {
    let mut stream = connect(api);
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let _ = stream.write_all(&vec![b'x'; more]);
    stream
}

fn login_head(api: &Api, bytes: usize) -> String {
    format!(
        "POST /api/v1/login HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n",
        api.address
    )
}

#[test]
fn two_hundred_half_open_requests_take_little_memory() {
    let home = Home::sqlite();
    let daemon = home.serve();
    daemon.api.submit(vec![noop()]);
    let (api, pid) = (&daemon.api, daemon.process.pid());
    let before = rss(pid);
    for (what, head, more) in [
        ("bodies of four mebibytes", login_head(api, 4 << 20), 1 << 20),
        ("bodies that just fit", login_head(api, 16 * 1024), 16 * 1024 - 1),
        ("heads", format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nX-Long: ", api.address), 1 << 20),
    ] {
        let held: Vec<TcpStream> = (0..200).map(|_| half_open(api, &head, more)).collect();
        // Everything that was sent before this answer has been looked at.
        api.get("/api/v1/tasks");
        let grown = rss(pid).saturating_sub(before);
        assert!(grown < 20 * MIB, "200 half-sent {what} took {} KiB", grown / 1024);
        println!("200 half-sent {what}: {} KiB", grown / 1024);
        drop(held);
    }
}

#[test]
fn a_body_without_a_key_is_small() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let long = json!({ "code": "x".repeat(16 * 1024) }).to_string();
    let reply = daemon.api.send_raw("POST", "/api/v1/login", &[], long.as_bytes()).unwrap();
    assert_eq!((reply.status, reply.json()["error_code"].as_str().unwrap()), (413, "LIMIT_EXCEEDED"));
    assert!(reply.json()["detail"].as_str().unwrap().contains("16384"), "{reply:?}");
    let short = json!({ "code": "x".repeat(15 * 1024) }).to_string();
    assert_eq!(daemon.api.send_raw("POST", "/api/v1/login", &[], short.as_bytes()).unwrap().status, 401);
}

/// How long a connection lasts on which a byte is sent now and then.
fn lasts(mut stream: impl Read + Write + Send + 'static, first: &str) -> Duration {
    let began = Instant::now();
    let _ = stream.write_all(first.as_bytes());
    loop {
        let mut answer = [0; 4096];
        match stream.read(&mut answer) {
            Ok(0) => return began.elapsed(),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                if stream.write_all(b"x").is_err() {
                    return began.elapsed();
                }
            }
            Err(_) => return began.elapsed(),
        }
        assert!(began.elapsed() < Duration::from_secs(40), "it is never closed");
    }
}

#[test]
fn an_unfinished_request_is_closed_in_time_and_a_long_wait_is_not() {
    let home = Home::sqlite().with_variable("MATSU_SERVER_REQUEST_MAX", "2");
    let daemon = home.serve();
    let api = daemon.api.clone();
    let host = format!("Host: {}\r\n", api.address);
    let auth = format!("Authorization: Bearer {}\r\n", api.token);
    let task = api.submit(vec![sleep(8_000)]);
    let waiting = thread::spawn({
        let (api, task) = (api.clone(), task.clone());
        move || api.ended(&task, Duration::from_secs(60))
    });
    let auth_line = auth.trim().to_owned();
    let mut events = Events::open(&api, "/api/v1/events", &[&auth_line]);
    assert_eq!(events.next().unwrap().name, "hello");

    let slow: Vec<(&str, String)> = vec![
        ("nothing at all", String::new()),
        ("half a head", format!("GET /healthz HTTP/1.1\r\n{host}X-Slow: ")),
        ("half a body without a key", login_head(&api, 1_000)),
        (
            "half a body with a key",
            format!(
                "POST /api/v1/tasks HTTP/1.1\r\n{host}{auth}Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n{{"
            ),
        ),
        (
            "half a body to MCP",
            format!(
                "POST /mcp HTTP/1.1\r\n{host}{auth}Content-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nContent-Length: 9999\r\n\r\n{{"
            ),
        ),
        ("an idle connection", format!("GET /healthz HTTP/1.1\r\n{host}\r\n")),
    ];
    let mut threads = Vec::new();
    for (what, first) in slow {
        let stream = connect(&api);
        // The idle one sends nothing more; the others drip.
        let pause = if what.contains("idle") || what.contains("nothing") { 30_000 } else { 100 };
        stream.set_read_timeout(Some(Duration::from_millis(pause))).unwrap();
        threads.push((what, thread::spawn(move || lasts(stream, &first))));
    }
    for (what, first) in
        [("a silent socket", ""), ("half a preamble", "{\"version\""), ("half a head on the socket", "GET /")]
    {
        let stream = UnixStream::connect(home.data("matsu.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        threads.push((what, thread::spawn(move || lasts(stream, first))));
    }
    for (what, thread) in threads {
        let lasted = thread.join().unwrap();
        assert!(lasted < Duration::from_secs(15), "{what} lasted {lasted:?}");
        println!("{what}: {lasted:?}");
    }
    assert_eq!(waiting.join().unwrap()["status"], "completed", "a wait may be long");
    events.until("the task's end on the stream that was open all the time", |event| {
        event.data.to_string().contains(&task)
    });
}

#[test]
fn unauthenticated_connections_take_no_place_of_clients_with_a_key() {
    let home = Home::sqlite().with_variable("MATSU_SERVER_UNAUTHENTICATED_MAX", "8");
    let daemon = home.serve();
    let api = &daemon.api;
    let connections: Vec<TcpStream> = (0..40).map(|_| connect(api)).collect();
    let task = api.submit(vec![sleep(3_000)]);
    let mut clients: Vec<TcpStream> = Vec::new();
    for _ in 0..100 {
        let mut client = connect(api);
        let path = format!("/test/wait?task={task}&timeout=50&wait_for=any&since=999999");
        let auth = format!("Host: {}\r\nAuthorization: Bearer {}", api.address, api.token);
        client.write_all(format!("GET {path} HTTP/1.1\r\n{auth}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        clients.push(client);
    }
    let answered = clients.into_iter().map(|mut client| {
        let mut answer = String::new();
        let _ = client.read_to_string(&mut answer);
        answer.starts_with("HTTP/1.1 200")
    });
    assert_eq!(answered.filter(|is_good| *is_good).count(), 100);
    // Of the unauthenticated connections only as many are left as the limit allows.
    let open = connections.into_iter().filter(|connection| {
        connection.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        !matches!((&*connection).read(&mut [0; 1]), Ok(0))
    });
    assert!(open.count() <= 8);
}

pub fn mcp(api: &Api, session: Option<&str>, message: &Value) -> Reply {
    let auth = format!("Authorization: Bearer {}", api.token);
    let session = session.map(|id| format!("Mcp-Session-Id: {id}"));
    let mut headers = vec![auth.as_str(), "Accept: application/json, text/event-stream"];
    headers.extend(session.as_deref());
    api.send_raw("POST", "/mcp", &headers, message.to_string().as_bytes()).unwrap()
}

pub fn begin(api: &Api) -> String {
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let reply = mcp(api, None, &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
    let mut lines = reply.head.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
    found.unwrap_or_else(|| panic!("{reply:?}")).1.to_owned()
}

#[test]
fn sessions_of_mcp_over_http_are_bounded() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let (api, pid) = (&daemon.api, daemon.process.pid());
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    let first = begin(api);
    assert_eq!(mcp(api, Some(&first), &ping).status, 200);
    let before = rss(pid);
    let last = (0..600).fold(String::new(), |_, _| begin(api));
    let grown = rss(pid).saturating_sub(before);
    println!("600 sessions begun: {} KiB", grown / 1024);
    assert!(grown < 40 * MIB, "{} KiB", grown / 1024);
    assert_eq!(mcp(api, Some(&first), &ping).status, 404, "the oldest idle one is over");
    assert_eq!(mcp(api, Some(&last), &ping).status, 200);
    assert_eq!(mcp(api, Some("made-up"), &ping).status, 404);
}

#[test]
fn a_session_of_mcp_over_http_is_its_principals_alone() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let api = &daemon.api;
    home.run(&["user", "add", "bob"]).good();
    let secret = home.run_json(&["token", "new", "bobs", "--user", "bob"])["secret"].as_str().unwrap().to_owned();
    let session = format!("Mcp-Session-Id: {}", begin(api));
    let accept = "Accept: application/json, text/event-stream";
    let ask = |token: &str, method: &str, body: &str| {
        let auth = format!("Authorization: Bearer {token}");
        api.send_raw(method, "/mcp", &[&auth, &session, accept], body.as_bytes()).unwrap().status
    };
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
    for (method, body) in [("POST", ping.as_str()), ("GET", ""), ("DELETE", "")] {
        assert_eq!(ask(&secret, method, body), 404, "{method}");
    }
    assert_eq!(ask(&api.token, "POST", &ping), 200, "it still lives");
    assert_eq!(ask(&api.token, "DELETE", ""), 204, "its own principal may end it");
    assert_eq!(ask(&api.token, "POST", &ping), 404);
}

#[test]
fn a_refusal_says_how_to_come_in_and_schemes_have_no_case() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let ask = |headers: &[&str]| daemon.api.send_raw("GET", "/api/v1/tasks", headers, b"").unwrap();
    let refused = ask(&[]);
    assert_eq!(refused.status, 401);
    assert!(refused.head.to_lowercase().contains("www-authenticate: bearer realm=\"matsu\""), "{refused:?}");
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(ask(&[&format!("Authorization: {scheme} {}", daemon.api.token)]).status, 200, "{scheme}");
    }
    for host in ["127.0.0.1:9710.evil.com", "[::1]evil", "user@127.0.0.1", "localhost."] {
        let (host, auth) = (format!("Host: {host}"), format!("Authorization: Bearer {}", daemon.api.token));
        assert_eq!(ask(&[&host, &auth]).status, 403, "{host}");
    }
    assert_eq!(daemon.api.send("POST", "/mcp/x", Some(&json!({}))).unwrap().status, 404, "/mcp has nothing below it");
}

#[test]
fn the_login_link_is_for_a_terminal_and_for_no_log() {
    let home = Home::sqlite();
    let daemon = home.serve();
    until("it has greeted", START_MAX, || daemon.process.printed().contains("look    matsu tasks").then_some(()));
    let said = daemon.process.printed();
    assert!(!said.contains("login#code") && said.contains("`matsu open`"), "{said}");
}
