//! Answers that came for running tasks, until their jobs have taken them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use matsu_core::id::TaskId;
use rmcp::model::{InputRequests, InputResponses};
use serde_json::Value;
use tokio::sync::Notify;

#[derive(Default)]
pub struct Answers {
    came: Mutex<HashMap<TaskId, BTreeMap<String, Value>>>,
    changed: Notify,
}

impl Answers {
    pub fn add(&self, task: &TaskId, answers: InputResponses) {
        self.lock().entry(task.clone()).or_default().extend(answers);
        self.changed.notify_waiters();
    }

    /// What of these is still open.
    pub fn open(&self, task: &TaskId, asked: &InputRequests) -> InputRequests {
        let came = self.lock();
        let is_open = |key: &String| came.get(task).is_none_or(|answers| !answers.contains_key(key));
        asked.iter().filter(|(key, _)| is_open(key)).map(|(key, request)| (key.clone(), request.clone())).collect()
    }

    /// Returns when nothing of these is open any more.
    pub async fn all(&self, task: &TaskId, asked: &InputRequests) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.open(task, asked).is_empty() {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TaskId, BTreeMap<String, Value>>> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
