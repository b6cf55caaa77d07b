//! Which searches a reader has been shown at which revision, so that the next reply lists only what is new.
//!
//! A convenience: what is forgotten here (a restart, an old revision) is simply listed again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, TaskId};
use matsu_core::limits::{CURSOR_TASKS_MAX, DELIVERED_REVISIONS_MAX};
use matsu_core::research::search::SearchStatus;

#[derive(Default)]
pub struct DeliveredStatus {
    by_task: Mutex<HashMap<TaskId, VecDeque<Reply>>>,
}

#[derive(Clone)]
struct Reply {
    revision: i64,
    /// When that revision was made. A search that changed in the same millisecond may have changed afterwards.
    at: Timestamp,
    shown: Vec<(JobId, SearchStatus)>,
}

/// From where on searches are news.
#[derive(Clone, Debug, Default)]
pub struct Horizon {
    pub at: Option<Timestamp>,
    shown: Vec<(JobId, SearchStatus)>,
}

impl Horizon {
    pub fn is_news(&self, id: &JobId, status: SearchStatus) -> bool {
        !self.shown.iter().any(|(known, then)| known == id && *then == status)
    }
}

impl DeliveredStatus {
    /// Takes note of what a reply showed.
    pub fn note(&self, task: &TaskId, revision: i64, at: Timestamp, shown: Vec<(JobId, SearchStatus)>) {
        let mut by_task = self.lock();
        if by_task.len() >= CURSOR_TASKS_MAX && !by_task.contains_key(task) {
            by_task.clear();
        }
        let replies = by_task.entry(task.clone()).or_default();
        replies.retain(|reply| reply.revision != revision);
        if replies.len() >= DELIVERED_REVISIONS_MAX {
            replies.pop_front();
        }
        replies.push_back(Reply { revision, at, shown });
    }

    /// What a reader that knows this revision need not be shown again.
    pub fn since(&self, task: &TaskId, revision: i64) -> Horizon {
        let by_task = self.lock();
        let known = by_task.get(task).into_iter().flatten().filter(|reply| reply.revision <= revision);
        match known.max_by_key(|reply| reply.revision) {
            Some(reply) => Horizon { at: Some(reply.at), shown: reply.shown.clone() },
            None => Horizon::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, VecDeque<Reply>>> {
        self.by_task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_known_reply_sets_the_horizon() {
        let (delivered, task) = (DeliveredStatus::default(), TaskId::from_text("task_a"));
        let job = JobId::from_text("s_a");
        delivered.note(&task, 3, Timestamp::from_millis(30), vec![(job.clone(), SearchStatus::Running)]);
        delivered.note(&task, 7, Timestamp::from_millis(70), vec![]);
        assert_eq!(delivered.since(&task, 2).at, None);
        let horizon = delivered.since(&task, 6);
        assert_eq!(horizon.at, Some(Timestamp::from_millis(30)));
        assert!(!horizon.is_news(&job, SearchStatus::Running));
        assert!(horizon.is_news(&job, SearchStatus::Satisfied));
        assert_eq!(delivered.since(&task, 9).at, Some(Timestamp::from_millis(70)));
        assert_eq!(delivered.since(&TaskId::from_text("task_b"), 9).at, None);
    }
}
