//! The server as a client sees it: a few lines of HTTP over a fresh connection each, and the shape of test tasks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use matsu_testkit::until::until;

/// An answer as it came.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// One server and the token that opens it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    pub address: SocketAddr,
    pub token: String,
}

/// Longer than any wait that the server may hold.
const ANSWER_MAX: Duration = Duration::from_secs(70);

impl Api {
    /// One request; `Err` if no whole answer came back.
    pub fn send(&self, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<Reply> {
        let auth = format!("Authorization: Bearer {}", self.token);
        let body = body.map(Value::to_string).unwrap_or_default();
        self.send_raw(method, path, &[&auth], body.as_bytes())
    }

    /// A request with exactly these headers besides what HTTP needs.
    pub fn send_raw(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> std::io::Result<Reply> {
        let mut stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(5))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        exchange(&mut stream, &self.address.to_string(), method, path, headers, body)
    }

    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let reply = self.send(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        assert!((200..300).contains(&reply.status), "{method} {path}: {reply:?}");
        if reply.body.is_empty() { Value::Null } else { reply.json() }
    }

    pub fn get(&self, path: &str) -> Value {
        self.call("GET", path, None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.call("POST", path, Some(body))
    }

    pub fn patch(&self, path: &str, body: &Value) -> Value {
        self.call("PATCH", path, Some(body))
    }

    /// A task of these jobs; its id.
    pub fn submit(&self, jobs: Vec<Value>) -> String {
        let made = self.post("/test/tasks", &json!({ "jobs": jobs }));
        made["task"]["task_id"].as_str().unwrap().to_owned()
    }

    pub fn task(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/tasks/{id}"))
    }

    pub fn jobs_of(&self, id: &str) -> Vec<Value> {
        self.get(&format!("/api/v1/tasks/{id}/jobs?limit=200"))["items"].as_array().unwrap().clone()
    }

    /// Every row of a list, over all its pages.
    pub fn all(&self, list: &str) -> Vec<Value> {
        let mut rows = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.get(&format!("/api/v1/{list}?limit=200{after}"));
            rows.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_i64() {
                Some(next) => after = format!("&after={next}"),
                None => return rows,
            }
        }
    }

    /// The task at its end. Waits as clients do.
    pub fn ended(&self, id: &str, within: Duration) -> Value {
        let began = Instant::now();
        let mut since = 0;
        loop {
            let left = within.checked_sub(began.elapsed()).unwrap_or_else(|| {
                panic!("{id} has not ended within {within:?}: {:#} {:#?}", self.task(id), self.jobs_of(id))
            });
            let seconds = left.as_secs().clamp(1, 50);
            let path = format!("/test/wait?task={id}&since={since}&timeout={seconds}&wait_for=any");
            let reply = self.get(&path);
            let task = &reply["task"];
            if matches!(task["status"].as_str(), Some("completed" | "failed" | "cancelled")) {
                return task.clone();
            }
            since = reply["next"]["since"].as_i64().unwrap();
        }
    }

    /// Waits until a job of the task is in this state.
    pub fn job_becomes(&self, id: &str, state: &str, within: Duration) {
        until(&format!("a job of {id} is {state}"), within, || {
            self.task(id)["jobs"][state].as_i64().filter(|jobs| *jobs > 0)
        });
    }
}

/// A request to the daemon's socket with the token of its data directory.
pub fn over_socket(socket: &Path, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<Reply> {
    let token = std::fs::read_to_string(socket.with_file_name("token")).unwrap_or_default();
    let bearer = format!("Authorization: Bearer {}", token.trim());
    over_socket_with(socket, method, path, &[&bearer], body)
}

/// The same with these headers and no others.
pub fn over_socket_with(
    socket: &Path,
    method: &str,
    path: &str,
    headers: &[&str],
    body: Option<&Value>,
) -> std::io::Result<Reply> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    exchange(&mut stream, "localhost", method, path, headers, body.as_bytes())
}

fn exchange(
    stream: &mut (impl Read + Write),
    host: &str,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> std::io::Result<Reply> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|header| header.to_lowercase().starts_with("host:")) {
        head.push_str(&format!("Host: {host}\r\n"));
    }
    if !body.is_empty() {
        head.push_str("Content-Type: application/json\r\n");
    }
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    // A server that refuses a body need not read it: its answer counts, not our broken write.
    let written = stream.write_all(body);
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let Some(reply) = parse(&answer) else {
        written?;
        read?;
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "no whole answer"));
    };
    Ok(reply)
}

/// `None` if it is not whole.
fn parse(answer: &[u8]) -> Option<Reply> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    if body.len() < length.unwrap_or(0_usize) {
        return None;
    }
    Some(Reply { status, head: head.to_owned(), body: body.to_owned() })
}

/// A job that sleeps this long, in the roomy slot of agents.
pub fn sleep(ms: u64) -> Value {
    sleep_with(json!({ "ms": ms }))
}

pub fn sleep_with(input: Value) -> Value {
    json!({ "kind": "sleep", "slot": "agent_cli", "input": input })
}

pub fn noop() -> Value {
    json!({ "kind": "noop", "slot": "agent_cli" })
}
