//! A result counts as read when its client has taken the reply, not when the reply was sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::{Home, until};
use crate::http::{Http, headers_for, tool_call};
use crate::stdio::Client;

const SOON: Duration = Duration::from_secs(15);

/// Longer than a relay needs to notice that its client has taken a reply.
const A_WHILE: Duration = Duration::from_millis(1_500);

/// A client that takes from its stream only what it asks for here.
struct Slow {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<Box<dyn Read>>,
}

impl Slow {
    fn start(home: &Home, over: &str) -> Self {
        let mut command = home.command(&["mcp", "--tools", "all", "--test-jobs"]);
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let (mut child, output): (Child, Box<dyn Read>) = if over == "a pipe" {
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let output = child.stdout.take().unwrap();
            (child, Box::new(output))
        } else {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (command.stdout(Stdio::from(OwnedFd::from(theirs))).spawn().unwrap(), Box::new(ours))
        };
        let input = child.stdin.take();
        let mut client = Self { child, input, output: BufReader::new(output) };
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        client.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        assert_eq!(client.take()["id"], 0);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, frame: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{frame}").unwrap();
    }

    fn asks_for(&mut self, task: &str) {
        let params = json!({ "name": "get_task_status", "arguments": { "task_id": task } });
        self.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    }

    fn take(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_unread(http: &Http, task: &str) -> bool {
    let task = http.rest("GET", &format!("/tasks/{task}"), &Value::Null).json();
    assert_eq!(task["status"], "completed", "{task}");
    task["unread"] == true
}

/// A task that has ended, looked at without reading its result.
fn ended(http: &Http) -> String {
    let task = http.submit(1);
    let status = || http.rest("GET", &format!("/tasks/{task}"), &Value::Null).json()["status"].clone();
    until("it has ended", SOON, || (status() == "completed").then_some(()));
    task
}

#[test]
fn a_reply_that_a_client_has_not_taken_leaves_its_result_unread() {
    for over in ["a pipe", "a socket"] {
        let home = Home::new();
        let mut stopped = Slow::start(&home, over);
        let (_, http) = home.relayed();
        let task = ended(&http);
        stopped.asks_for(&task);
        std::thread::sleep(A_WHILE);
        assert!(is_unread(&http, &task), "over {over} it was only sent");
        drop(stopped);
        // The next client hears of it, and has it when it has taken the reply.
        let mut next = Client::legacy(&home, &[]);
        let said = next.call("cancel_task", &json!({ "task_id": "task_nope" }));
        assert!(said["news"].as_str().is_some_and(|news| news.starts_with("1 of your tasks")), "{over}: {said}");
        assert!(is_unread(&http, &task), "{over}");
        assert_eq!(next.call("get_task_status", &json!({ "task_id": task }))["status"], "completed");
        until("it is read", SOON, || (!is_unread(&http, &task)).then_some(()));
    }
}

#[test]
fn a_client_that_goes_on_after_a_stop_has_read_its_result() {
    let home = Home::new();
    let mut stopped = Slow::start(&home, "a pipe");
    let (_, http) = home.relayed();
    let task = ended(&http);
    stopped.asks_for(&task);
    std::thread::sleep(A_WHILE);
    assert!(is_unread(&http, &task));
    assert_eq!(stopped.take()["id"], 1);
    until("it is read", SOON, || (!is_unread(&http, &task)).then_some(()));
}

#[test]
fn a_client_that_leaves_with_its_last_reply_has_read_it() {
    let home = Home::new();
    let mut client = Slow::start(&home, "a pipe");
    let (_, http) = home.relayed();
    let task = ended(&http);
    client.asks_for(&task);
    assert_eq!(client.take()["id"], 1);
    drop(client.input.take());
    until("it is read", SOON, || (!is_unread(&http, &task)).then_some(()));
}

#[test]
fn an_acknowledgement_ends_the_news_of_its_sender_only() {
    let home = Home::new();
    let mut client = Client::legacy(&home, &[]);
    let (_, http) = home.relayed();
    let task = ended(&http);
    let unfinished = http.submit(600_000);
    let params = json!({ "task_ids": [unfinished, "task_nope", 7] });
    client.line(&json!({ "jsonrpc": "2.0", "method": "notifications/matsu/received", "params": params }).to_string());
    client.line(&json!({ "jsonrpc": "2.0", "method": "notifications/matsu/received", "params": 7 }).to_string());
    assert_eq!(client.call("get_task_status", &json!({}))["total"], 2);
    assert!(is_unread(&http, &task));
}

/// As [`Http::call`], but the answer is left in the connection.
fn asks_and_does_not_read(http: &Http, task: &str) -> TcpStream {
    let body = tool_call("get_task_status", &json!({ "task_id": task }));
    let mut stream = TcpStream::connect(http.address).unwrap();
    let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n", http.address, http.token);
    head.push_str("Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n");
    for (name, value) in headers_for(&body) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = body.to_string();
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream
}

#[test]
fn an_answer_over_http_that_was_never_read_leaves_its_result_unread() {
    let home = Home::new();
    let daemon = home.serve();
    let http = daemon.http();
    let task = ended(http);
    let stream = asks_and_does_not_read(http, &task);
    let mut first = [0; 1];
    stream.peek(&mut first).unwrap();
    std::thread::sleep(A_WHILE);
    drop(stream);
    until("it is unread", SOON, || is_unread(http, &task).then_some(()));
    assert_eq!(http.status_of(&task), "completed");
    assert!(!is_unread(http, &task), "this answer was read");
}

#[test]
fn after_a_list_the_results_of_several_tasks_can_be_read() {
    let home = Home::new();
    let mut client = Client::legacy(&home, &[]);
    let (_, http) = home.relayed();
    let tasks = [ended(&http), ended(&http)];
    let running = http.submit(600_000);
    // Its start is a change too.
    let status = || http.rest("GET", &format!("/tasks/{running}"), &Value::Null).json()["status"].clone();
    until("it runs", SOON, || (status() == "running").then_some(()));
    assert_eq!(client.call("get_task_status", &json!({}))["total"], 3);
    let ids = json!({ "task_ids": [tasks[0], tasks[1], running], "timeout": 20 });
    let said = client.call("get_task_status", &ids);
    let full = said["tasks"].as_array().unwrap().iter().filter(|task| task["result"].is_string()).count();
    assert_eq!((full, said["changed"].as_array().unwrap().len()), (2, 2), "{said}");
    assert_eq!(said["returned_because"], "changed", "{said}");
    until("both are read", SOON, || tasks.iter().all(|task| !is_unread(&http, task)).then_some(()));
}

/// A request in a session of a client before 2026-07-28.
fn in_session(http: &Http, session: Option<&str>, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(http.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n", http.address, http.token);
    head.push_str("Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n");
    if let Some(session) = session {
        head.push_str(&format!("Mcp-Session-Id: {session}\r\nMcp-Protocol-Version: 2025-11-25\r\n"));
    }
    let body = body.to_string();
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream
}

/// The handshake of a client before 2026-07-28; the name of its session.
fn begun_session(http: &Http) -> String {
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let mut lines = BufReader::new(in_session(http, None, &hello)).lines().map_while(Result::ok);
    let session = lines.find_map(|line| line.strip_prefix("mcp-session-id: ").map(str::to_owned)).unwrap();
    assert!(lines.any(|line| line.contains("serverInfo")));
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    BufReader::new(in_session(http, Some(&session), &initialized)).read_line(&mut String::new()).unwrap();
    session
}

/// A wait for the end of a task whose stream has begun.
fn waiting(http: &Http, session: &str, id: u64, task: &str) -> BufReader<TcpStream> {
    let arguments = json!({ "task_id": task, "timeout": 20, "wait_for": "all" });
    let params = json!({ "name": "get_task_status", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    let mut reader = BufReader::new(in_session(http, Some(session), &call));
    reader.read_line(&mut String::new()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    reader
}

#[test]
fn a_session_over_http_that_hangs_up_while_it_waits_has_read_nothing() {
    let home = Home::new();
    let daemon = home.serve();
    let http = daemon.http();
    let session = begun_session(http);
    for comes_back in [false, true] {
        let task = http.submit(1_500);
        drop(waiting(http, &session, 1, &task));
        if comes_back {
            let mut lines = waiting(http, &session, 2, &task).lines().map_while(Result::ok);
            assert!(lines.any(|line| line.contains("slept_ms")));
        }
        let status = || http.rest("GET", &format!("/tasks/{task}"), &Value::Null).json()["status"].clone();
        until("it has ended", SOON, || (status() == "completed").then_some(()));
        std::thread::sleep(A_WHILE);
        assert_eq!(is_unread(http, &task), !comes_back, "the first answer reached no client");
    }
}

/// The stream of a wait again, over another connection, behind the event with this id.
fn resumed(http: &Http, session: &str, last_event: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(http.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let host = format!("Host: {}\r\nAuthorization: Bearer {}", http.address, http.token);
    let place = format!("Mcp-Session-Id: {session}\r\nLast-Event-ID: {last_event}");
    let accepts = "Mcp-Protocol-Version: 2025-11-25\r\nAccept: text/event-stream";
    write!(stream, "GET /mcp HTTP/1.1\r\n{host}\r\n{place}\r\n{accepts}\r\n\r\n").unwrap();
    BufReader::new(stream)
}

#[test]
fn an_answer_that_is_fetched_over_a_second_connection_is_read() {
    let home = Home::new();
    let daemon = home.serve();
    let http = daemon.http();
    let session = begun_session(http);
    // Whether the client comes back before the work ends, and whether it then reads.
    for (id, comes_early, reads) in [(1, true, true), (2, true, false), (3, false, true), (4, false, false)] {
        let task = http.submit(1_500);
        let mut first = waiting(http, &session, id, &task);
        let mut line = String::new();
        let event = loop {
            line.clear();
            assert!(first.read_line(&mut line).unwrap() > 0, "no event");
            if let Some(event) = line.strip_prefix("id: ") {
                break event.trim().to_owned();
            }
        };
        drop(first);
        let status = || http.rest("GET", &format!("/tasks/{task}"), &Value::Null).json()["status"].clone();
        let ended = || until("it has ended", SOON, || (status() == "completed").then_some(()));
        if !comes_early {
            ended();
        }
        let second = resumed(http, &session, &event);
        if reads {
            assert!(second.lines().map_while(Result::ok).any(|line| line.contains("slept_ms")), "no answer");
        } else {
            ended();
            std::thread::sleep(A_WHILE);
            drop(second);
        }
        std::thread::sleep(A_WHILE);
        assert_eq!(is_unread(http, &task), !reads, "comes early: {comes_early}");
    }
}
