//! The event stream over the real wire: sent as it happens, resumed where it broke off, ended with its session.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::api::{Api, noop};
use crate::home::Home;

/// Longer than the pause between two pings.
const NEWS_MAX: Duration = Duration::from_secs(20);

pub struct Events {
    reader: BufReader<TcpStream>,
    pub last_id: Option<String>,
}

#[derive(Debug)]
pub struct Event {
    pub name: String,
    pub data: Value,
}

impl Events {
    pub fn open(api: &Api, path: &str, headers: &[&str]) -> Self {
        let mut stream = TcpStream::connect(api.address).unwrap();
        stream.set_read_timeout(Some(NEWS_MAX)).unwrap();
        let mut head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", api.address);
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        assert!(status.contains("200"), "{status}");
        Self { reader, last_id: None }
    }

    /// The next event; `None` when the stream has ended. Lines of the chunked encoding are neither field nor data.
    pub fn next(&mut self) -> Option<Event> {
        let (mut name, mut data) = (None, None);
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(rest) = line.strip_prefix("event: ") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("data: ") {
                data = Some(serde_json::from_str(rest).unwrap_or_else(|error| panic!("{error}: {rest}")));
            } else if let Some(rest) = line.strip_prefix("id: ") {
                self.last_id = Some(rest.trim().to_owned());
            }
            if line.trim().is_empty()
                && let (Some(name), Some(data)) = (name.take(), data.take())
            {
                return Some(Event { name, data });
            }
        }
    }

    pub fn until(&mut self, what: &str, mut is_it: impl FnMut(&Event) -> bool) -> Event {
        let mut pings = 0;
        loop {
            let event = self.next().unwrap_or_else(|| panic!("the stream ended before {what}"));
            if is_it(&event) {
                return event;
            }
            // A ping comes after long silence only.
            pings += i32::from(event.name == "ping");
            assert!(pings < 3, "no news of {what}");
        }
    }
}

fn bearer(api: &Api) -> String {
    format!("Authorization: Bearer {}", api.token)
}

fn is_end_of(task: &str) -> impl FnMut(&Event) -> bool {
    move |event| event.name == "task" && event.data["task_id"] == task && event.data["status"] == "completed"
}

#[test]
fn tells_what_happens_and_goes_on_where_it_broke_off() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let api = &daemon.api;
    let mut events = Events::open(api, "/api/v1/events", &[&bearer(api)]);
    let hello = events.next().unwrap();
    assert_eq!(hello.name, "hello");
    assert!(hello.data["stream_id"].as_str().unwrap().starts_with("stream_"), "{hello:?}");

    events.until("counts", |event| event.name == "counts" && event.data["slots"].is_array());

    let first = api.submit(vec![noop()]);
    let end = events.until("the end of the first task", is_end_of(&first));
    assert_eq!(end.data["topic"], format!("task/{first}"));
    assert!(end.data["revision"].as_i64().unwrap() > 1, "{end:?}");
    let cursor = events.last_id.clone().expect("events carry the cursor");
    drop(events);

    // Both happened while no stream was open.
    let second = api.submit(vec![noop()]);
    api.ended(&second, NEWS_MAX);
    let mut by_query = Events::open(api, &format!("/api/v1/events?cursor={cursor}"), &[&bearer(api)]);
    by_query.until("the end of the second task", is_end_of(&second));
    let last_event_id = format!("Last-Event-ID: {cursor}");
    let mut by_header = Events::open(api, "/api/v1/events", &[&bearer(api), &last_event_id]);
    let resent = by_header.until("the end of the second task", |event| {
        assert_ne!(event.data["task_id"], first, "sent twice");
        event.data["task_id"] == second && event.data["status"] == "completed"
    });
    assert_eq!(resent.name, "task");
}

#[test]
fn job_events_go_to_streams_that_follow_them() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let api = &daemon.api;
    let mut events = Events::open(api, "/api/v1/events", &[&bearer(api)]);
    let stream = events.next().unwrap().data["stream_id"].as_str().unwrap().to_owned();
    let reply = api.send("POST", &format!("/api/v1/events/{stream}/topics"), Some(&json!({ "topics": ["queue"] })));
    assert_eq!(reply.unwrap().status, 204);
    let task = api.submit(vec![noop(), noop()]);
    let mut done = std::collections::BTreeSet::new();
    events.until("the ends of both jobs", |event| {
        if event.name == "job" && event.data["task_id"] == task && event.data["state"] == "completed" {
            done.insert(event.data["id"].to_string());
        }
        done.len() == 2
    });
    for (path, topics, status) in [("nowhere", json!(["queue"]), 404), (stream.as_str(), json!(["everything"]), 400)] {
        let reply = api.send("POST", &format!("/api/v1/events/{path}/topics"), Some(&json!({ "topics": topics })));
        assert_eq!(reply.unwrap().status, status, "{path} {topics}");
    }
}

#[test]
fn a_cursor_that_is_none_is_refused_and_an_old_one_starts_afresh() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let api = &daemon.api;
    assert_eq!(api.send("GET", "/api/v1/events?cursor=yesterday", None).unwrap().status, 400);
    let mut events = Events::open(api, "/api/v1/events?cursor=0.0.0", &[&bearer(api)]);
    assert_eq!(events.next().unwrap().name, "hello");
    assert_eq!(events.next().unwrap().name, "reset");
}

#[test]
fn a_stream_ends_with_the_server() {
    let home = Home::sqlite();
    let mut daemon = home.serve();
    let mut events = Events::open(&daemon.api, "/api/v1/events", &[&bearer(&daemon.api)]);
    assert_eq!(events.next().unwrap().name, "hello");
    daemon.process.signal(Signal::TERM);
    let bye = events.until("goodbye", |event| event.name == "bye");
    assert_eq!(bye.data["reason"], "the server is shutting down");
    assert!(events.next().is_none());
    assert!(daemon.process.ends_within(NEWS_MAX).0.success());
}
