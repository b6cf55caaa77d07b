//! A steady load of tasks from several clients at once, and the book in which each of them notes the answers it got.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::Dice;
use crate::api::Api;

const CLIENTS: usize = 3;
/// Tasks that a client has unfinished at most, about: what is asked for must not outgrow what can be done.
const AHEAD_MAX: usize = 400;

/// Where the server is at the moment, if it is anywhere.
#[derive(Clone, Default)]
pub struct Endpoint(Arc<Mutex<Option<Api>>>);

impl Endpoint {
    pub fn open(&self, api: &Api) {
        *self.0.lock().unwrap() = Some(api.clone());
    }

    pub fn close(&self) {
        *self.0.lock().unwrap() = None;
    }

    fn api(&self) -> Option<Api> {
        self.0.lock().unwrap().clone()
    }
}

/// A task that the server has confirmed.
pub struct Ticket {
    pub task: String,
    pub jobs: usize,
    pub cancel: Cancel,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    Never,
    /// Asked for, but no answer came.
    Unknown,
    /// The server confirmed that it is, or will be, cancelled.
    Promised,
}

#[derive(Default)]
pub struct Book {
    pub tickets: Vec<Ticket>,
    /// Requests that got no answer, or "not now".
    pub unanswered: usize,
    /// Requests whose repetition found the task of the unanswered one.
    pub found_again: usize,
    /// Unanswered requests that were not repeated: their task may or may not be there.
    pub abandoned: usize,
}

impl Book {
    fn add(&mut self, other: Self) {
        self.tickets.extend(other.tickets);
        self.unanswered += other.unanswered;
        self.found_again += other.found_again;
        self.abandoned += other.abandoned;
    }
}

pub struct Load {
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Book>>,
}

impl Load {
    pub fn start(endpoint: &Endpoint, dice: &mut Dice) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let clients = (0..CLIENTS).map(|nth| {
            let client = Client { nth, endpoint: endpoint.clone(), dice: dice.another(), book: Book::default() };
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || client.work_until(&is_over))
        });
        Self { clients: clients.collect(), is_over }
    }

    /// Every request that is under way is brought to its end; the daemon must be there.
    pub fn stop(self) -> Book {
        self.is_over.store(true, Ordering::SeqCst);
        let mut book = Book::default();
        for client in self.clients {
            book.add(client.join().expect("a client does not break"));
        }
        book
    }
}

struct Client {
    nth: usize,
    endpoint: Endpoint,
    dice: Dice,
    book: Book,
}

impl Client {
    fn work_until(mut self, is_over: &AtomicBool) -> Book {
        let mut count = 0;
        while !is_over.load(Ordering::SeqCst) {
            if self.is_far_ahead() {
                std::thread::sleep(Duration::from_millis(200));
                continue;
            }
            count += 1;
            let key = format!("{}-{count}", self.nth);
            if let Some(ticket) = self.submit(&key) {
                self.book.tickets.push(ticket);
            }
            std::thread::sleep(Duration::from_millis(self.dice.below(30)));
        }
        self.book
    }

    /// Whether the last task that must be finished by now is not.
    fn is_far_ahead(&mut self) -> bool {
        let Some(nth) = self.book.tickets.len().checked_sub(AHEAD_MAX) else { return false };
        let path = format!("/api/v1/tasks/{}", self.book.tickets[nth].task);
        self.ask("GET", &path, None).is_none_or(|task| task["finished_at"].is_null())
    }

    /// Asks until it is answered, or gives up after an answer that did not come.
    fn submit(&mut self, key: &str) -> Option<Ticket> {
        let jobs: Vec<Value> = (0..=self.dice.below(3)).map(|_| self.job()).collect();
        let body = json!({ "jobs": jobs, "idempotency_key": key });
        loop {
            match self.ask("POST", "/test/tasks", Some(&body)) {
                Some(made) => {
                    self.book.found_again += usize::from(made["existed"] == true);
                    let task = made["task"]["task_id"].as_str().unwrap().to_owned();
                    let cancel = if self.dice.once_in(8) { self.cancel(&task) } else { Cancel::Never };
                    return Some(Ticket { task, jobs: jobs.len(), cancel });
                }
                None if self.dice.once_in(10) => {
                    self.book.abandoned += 1;
                    return None;
                }
                None => {}
            }
        }
    }

    fn job(&mut self) -> Value {
        let slot = ["agent_cli", "cpu", "network_client"][self.dice.below(3) as usize];
        let ms = self.dice.below(80);
        let input = match self.dice.below(6) {
            0 => return json!({ "kind": "noop", "slot": slot }),
            1 => json!({ "ms": ms, "fail": "once", "fail_attempts": 1 }),
            2 => json!({ "ms": ms, "progress_every_ms": 10 }),
            3 => json!({ "ms": ms, "ignore_stop": true }),
            _ => json!({ "ms": ms }),
        };
        json!({ "kind": "sleep", "slot": slot, "input": input })
    }

    fn cancel(&mut self, task: &str) -> Cancel {
        std::thread::sleep(Duration::from_millis(self.dice.below(40)));
        let mode = if self.dice.once_in(2) { "graceful" } else { "immediate" };
        match self.ask("PATCH", &format!("/api/v1/tasks/{task}"), Some(&json!({ "status": "cancelled", "mode": mode })))
        {
            Some(report) if report["was_terminal"] == true => Cancel::Never,
            Some(_) => Cancel::Promised,
            None => Cancel::Unknown,
        }
    }

    /// `None`: no answer, or "not now". Waits for a server first.
    fn ask(&mut self, method: &str, path: &str, body: Option<&Value>) -> Option<Value> {
        let api = loop {
            match self.endpoint.api() {
                Some(api) => break api,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        match api.send(method, path, body) {
            Ok(reply) if reply.status == 200 => Some(reply.json()),
            Ok(reply) if reply.status == 503 => self.no_answer(),
            Ok(reply) => panic!("{method} {path}: {reply:?}"),
            Err(_) => self.no_answer(),
        }
    }

    fn no_answer(&mut self) -> Option<Value> {
        self.book.unanswered += 1;
        std::thread::sleep(Duration::from_millis(20));
        None
    }
}
