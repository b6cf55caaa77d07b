//! How long a start and a wake-up take. What the machine does besides adds to both, so each round also measures a call
//! that does nothing; `make test-agents` holds the slowest of a hundred to the bar and that much. Beside other tests
//! the middle of all must keep it, and the slowest must not be out of sight. The figures themselves are a row of `make bench`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::{Bench, SOON, start};
use crate::stdio::Client;

/// A start without a wait, while the limit of runs is reached.
const START_MAX: Duration = Duration::from_millis(20);
/// From the moment a run's end is settled to the answer of a call over HTTP that waits for it.
const WAKE_MAX: Duration = Duration::from_millis(50);
/// How much longer the slowest may take beside other tests.
const CROWDED: u32 = 10;

/// Some of something, measured.
pub struct Figures {
    pub p50: Duration,
    pub p99: Duration,
    /// The same of a call that does nothing, made in between.
    idle_p99: Duration,
}

impl Figures {
    fn of(what: &str, took: impl Iterator<Item = (Duration, Duration)>) -> Self {
        let (mut took, mut idle): (Vec<Duration>, Vec<Duration>) = took.unzip();
        took.sort();
        idle.sort();
        let p99 = |sorted: &[Duration]| sorted[sorted.len() * 99 / 100];
        let figures = Self { p50: took[took.len() / 2], p99: p99(&took), idle_p99: p99(&idle) };
        let (Self { p50, p99, idle_p99 }, count) = (&figures, took.len());
        println!("{what}: p50 {p50:?}, p99 {p99:?} of {count}; a call that does nothing: p99 {idle_p99:?}");
        figures
    }

    /// Whether most keep the bar and none is out of sight, apart from what any call takes in this crowd.
    fn keep_in_a_crowd(&self, bar: Duration) -> bool {
        self.p50 <= bar + self.idle_p99 && self.p99 <= bar * CROWDED + self.idle_p99
    }

    /// Whether the slowest of a hundred keeps the bar, apart from what any call takes on this machine now.
    pub fn keep(&self, bar: Duration) -> bool {
        self.p99 <= bar + self.idle_p99
    }
}

/// A call that does nothing.
fn idle(client: &mut Client) -> Duration {
    let began = Instant::now();
    let id = client.request("ping", &json!({}));
    client.answer(id);
    began.elapsed()
}

/// 200 starts with all five places taken.
pub fn starts() -> (Figures, Duration) {
    let bench = Bench::new();
    let mut client = bench.client();
    for _ in 0..5 {
        start(&mut client, "sleep 600");
    }
    let took = (0..200).map(|_| {
        let began = Instant::now();
        start(&mut client, "echo x");
        (began.elapsed(), idle(&mut client))
    });
    (Figures::of("start", took), START_MAX)
}

/// 100 runs, each waited for over HTTP.
pub fn wake_ups() -> (Figures, Duration) {
    let bench = Bench::new();
    let mut client = bench.client();
    start(&mut client, "true");
    let (_, http) = bench.home.relayed();
    let store = rusqlite::Connection::open(bench.home.data_dir().join("matsu.db")).unwrap();
    store.busy_timeout(SOON).unwrap();
    let woken = (0..100).map(|_| {
        // Long enough for the call to be there first.
        let task = start(&mut client, "sleep 0.1");
        let wish = json!({ "task_id": task, "timeout": 30, "wait_for": "all", "since": 1 });
        let said = http.call("get_task_status", &wish);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert_eq!(said["result"]["structuredContent"]["status"], "completed", "{said}");
        let sql = "SELECT finished_at FROM tasks WHERE id = ?1";
        let ended: i64 = store.query_row(sql, [&task], |row| row.get(0)).unwrap();
        (now.saturating_sub(Duration::from_millis(u64::try_from(ended).unwrap())), idle(&mut client))
    });
    (Figures::of("wake-up", woken), WAKE_MAX)
}

#[test]
fn a_start_takes_milliseconds_although_all_places_are_taken() {
    let (figures, bar) = starts();
    assert!(figures.keep_in_a_crowd(bar));
}

#[test]
fn the_end_of_a_run_wakes_a_call_over_http_in_milliseconds() {
    let (figures, bar) = wake_ups();
    assert!(figures.keep_in_a_crowd(bar));
}
