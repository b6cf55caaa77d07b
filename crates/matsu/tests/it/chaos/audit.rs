//! After the faults: what the store holds against the answers that the clients got.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::load::{Book, Cancel};
use crate::api::{Api, until};
use crate::stores;

/// What was counted. All of `lost` to `permits_held` must be zero.
#[derive(Debug, Default)]
pub struct Audit {
    pub tasks: usize,
    pub jobs: usize,
    pub completed: usize,
    pub cancelled: usize,
    /// Jobs that were begun more than once for another reason than their own failure.
    pub begun_again: usize,
    pub settled_after_s: u64,

    /// Acknowledged, but not there, or not with all its jobs.
    pub lost: usize,
    /// Unfinished although no session works on it.
    pub stuck: usize,
    /// Tasks that ended more than once, or whose counts do not match their jobs.
    pub doubled: usize,
    /// Jobs that failed; none of them may.
    pub failed: usize,
    /// Promised to be cancelled, and were not; or cancelled without having been asked.
    pub disobeyed: usize,
    /// More tasks than were asked for.
    pub invented: usize,
    pub permits_held: usize,
}

const STATES: [&str; 7] = ["queued", "running", "awaiting_auth", "awaiting_input", "completed", "failed", "cancelled"];

impl Audit {
    /// Waits until nothing is left to do, or until it is clear that something is stuck; then counts.
    pub fn of(api: &Api, store: &str, book: &Book, patience: Duration) -> Self {
        let began = Instant::now();
        let unfinished = "SELECT count(*) FROM jobs WHERE finished_at IS NULL";
        until("the work is done, or stuck", patience + Duration::from_secs(30), || {
            let is_done = stores::ask(store, unfinished) == ["0"];
            (is_done || began.elapsed() > patience).then_some(())
        });
        let mut audit = Self { settled_after_s: began.elapsed().as_secs(), ..Self::default() };
        let tasks = api.all("tasks");
        let mut jobs: HashMap<String, Vec<Value>> = HashMap::new();
        for job in api.all("jobs") {
            audit.count_job(&job);
            jobs.entry(job["task_id"].as_str().unwrap().to_owned()).or_default().push(job);
        }
        for task in &tasks {
            let jobs = jobs.get(task["task_id"].as_str().unwrap()).map_or(&[][..], Vec::as_slice);
            audit.count_task(task, jobs);
        }
        audit.compare(&tasks, &jobs, book);
        audit.doubled += stores::ask(store, ENDED_TWICE).len();
        let held = stores::ask(store, "SELECT count(*) FROM permits WHERE job_id IS NOT NULL");
        audit.permits_held = held[0].parse().unwrap();
        audit
    }

    fn count_job(&mut self, job: &Value) {
        self.jobs += 1;
        match job["state"].as_str().unwrap() {
            "completed" => self.completed += 1,
            "cancelled" => self.cancelled += 1,
            "failed" => {
                self.failed += 1;
                println!("failed: {job}");
            }
            _ => {
                self.stuck += 1;
                println!("stuck: {job}");
            }
        }
        let own = 1 + job["failures"].as_i64().unwrap();
        self.begun_again += usize::from(job["attempt"].as_i64().unwrap() > own);
    }

    /// The counts that a task keeps of its jobs are true.
    fn count_task(&mut self, task: &Value, jobs: &[Value]) {
        self.tasks += 1;
        self.stuck += usize::from(task["finished_at"].is_null());
        let is_true = STATES.iter().all(|state| {
            task["jobs"][*state].as_u64() == Some(jobs.iter().filter(|job| job["state"] == *state).count() as u64)
        });
        if !is_true {
            self.doubled += 1;
            println!("wrong counts: {task} {jobs:?}");
        }
    }

    fn compare(&mut self, tasks: &[Value], jobs: &HashMap<String, Vec<Value>>, book: &Book) {
        let by_id: HashMap<&str, &Value> = tasks.iter().map(|task| (task["task_id"].as_str().unwrap(), task)).collect();
        for ticket in &book.tickets {
            let task = by_id.get(ticket.task.as_str());
            let Some(task) = task.filter(|_| jobs.get(&ticket.task).map(Vec::len) == Some(ticket.jobs)) else {
                self.lost += 1;
                println!("lost: {}", ticket.task);
                continue;
            };
            let is_cancelled = task["status"] == "cancelled";
            let obeyed = match ticket.cancel {
                Cancel::Never => !is_cancelled,
                Cancel::Unknown => true,
                Cancel::Promised => is_cancelled,
            };
            if !obeyed {
                self.disobeyed += 1;
                println!("disobeyed: {task}");
            }
        }
        self.invented = tasks.len().saturating_sub(book.tickets.len() + book.abandoned);
    }

    #[track_caller]
    pub fn assert_clean(&self, book: &Book) {
        println!(
            "  answered: {} tasks acknowledged, {} requests unanswered, {} found again, {} abandoned",
            book.tickets.len(),
            book.unanswered,
            book.found_again,
            book.abandoned
        );
        println!("  found, settled after {} s: {self:?}", self.settled_after_s);
        let wrong =
            [self.lost, self.stuck, self.doubled, self.failed, self.disobeyed, self.invented, self.permits_held];
        assert_eq!(wrong, [0; 7], "lost, stuck, doubled, failed, disobeyed, invented, permits held");
        assert!(book.tickets.len() > 50, "there was some load");
    }
}

/// Tasks of one job that were not stopped end once in the record of changes.
const ENDED_TWICE: &str = "SELECT t.id FROM tasks t JOIN changes c ON c.topic = 'task/' || t.id \
    WHERE c.kind IN ('job_finished', 'task_status') AND t.stop_mode IS NULL \
    AND (SELECT count(*) FROM jobs j WHERE j.task_id = t.id) = 1 GROUP BY t.id HAVING count(*) <> 1";
