//! The last resort of news: the session of a parent that has ended is resumed with it. Only where `wait.wake` asks for
//! it, only for a session that its own hook reported, and never while a process of that client works in the project.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::{Clock, Timestamp};
use matsu_core::id::TaskId;
use matsu_core::ports::store::{UnreadResult, UnreadResults};
use matsu_core::principal::Principal;
use matsu_server::App;
use serde_json::json;

use crate::daemon::following::Following;
use crate::parents::{self, ParentSession};
use crate::paths::Paths;
use crate::process;

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// More in an hour are a circle, not news.
const WAKES_PER_HOUR_MAX: usize = 10;

/// A session that works longer on the news is ended.
const WORKS_MAX: Duration = Duration::from_secs(30 * 60);

const UNREAD_MAX: u32 = 100;
const NAMED_MAX: usize = 5;

/// Runs until it is dropped.
pub async fn run(app: App, following: Arc<Following>) {
    let clock = Clock::system();
    let paths = following.config().paths;
    let mut waker = Waker { woken: woken_before(&paths), first_seen: HashMap::new(), wakes: VecDeque::new() };
    loop {
        clock.sleep(LOOK_EVERY).await;
        // The setting may change at any time.
        let Some(after) = following.config().wake_after() else { continue };
        // A store that is away is asked again.
        let Ok(unread) = app.runtime().store().run(UnreadResults(Principal::local_user(), UNREAD_MAX)).await else {
            continue;
        };
        let now = clock.now();
        let due = waker.due(&unread, after, now);
        // One at a time: what another project waits for is looked at next.
        let first = due.into_iter().find_map(|(folder, tasks)| Some((sleeping(&paths, &folder)?, tasks)));
        let Some((parent, tasks)) = first else { continue };
        waker.note(&tasks, now);
        wake(&paths, &parent, &tasks).await;
    }
}

/// What was noticed so far.
struct Waker {
    /// A result wakes once, also after a restart.
    woken: HashSet<TaskId>,
    first_seen: HashMap<TaskId, Timestamp>,
    /// When, in the last hour.
    wakes: VecDeque<Timestamp>,
}

impl Waker {
    /// The results that have been unread long enough, by project.
    fn due(&mut self, unread: &[UnreadResult], after: Duration, now: Timestamp) -> BTreeMap<String, Vec<TaskId>> {
        self.first_seen.retain(|id, _| unread.iter().any(|one| one.task_id == *id));
        for one in unread {
            self.first_seen.entry(one.task_id.clone()).or_insert(now);
        }
        while self.wakes.front().is_some_and(|at| now.since(*at) >= Duration::from_secs(3_600)) {
            self.wakes.pop_front();
        }
        let mut due = BTreeMap::<String, Vec<TaskId>>::new();
        if self.wakes.len() >= WAKES_PER_HOUR_MAX {
            return due;
        }
        let is_due = |one: &&UnreadResult| {
            let seen = self.first_seen.get(&one.task_id);
            !self.woken.contains(&one.task_id) && seen.is_some_and(|at| now.since(*at) >= after)
        };
        for one in unread.iter().filter(is_due) {
            if let Some(folder) = &one.started_in {
                due.entry(folder.clone()).or_default().push(one.task_id.clone());
            }
        }
        due
    }

    fn note(&mut self, tasks: &[TaskId], now: Timestamp) {
        self.woken.extend(tasks.iter().cloned());
        self.wakes.push_back(now);
    }
}

/// The session of this project that was seen last, if its process has ended and no other works there.
fn sleeping(paths: &Paths, folder: &str) -> Option<ParentSession> {
    let known = parents::all(paths);
    let of_it: Vec<ParentSession> = known.into_iter().filter(|parent| parent.folder == folder).collect();
    if of_it.iter().any(ParentSession::lives) {
        return None;
    }
    let last = of_it.into_iter().next()?;
    (!parents::is_at_work(&last.client, folder)).then_some(last)
}

async fn wake(paths: &Paths, parent: &ParentSession, tasks: &[TaskId]) {
    let Some((program, arguments)) = parent.resuming() else { return };
    let named = tasks.iter().take(NAMED_MAX).map(TaskId::as_str).collect::<Vec<_>>().join(", ");
    let more = tasks.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let prompt = format!(
        "Matsu: work that you gave to Matsu has ended or asks a question, and you have not read it: {named}{more}. Read \
         it with get_task_status, then continue your work."
    );
    metrics::counter!("matsu_wakes_total", "client" => program).increment(1);
    tracing::info!(client = program, session = parent.session, tasks = named, "a session that has ended is resumed");
    let line = json!({ "at": Clock::system().now().to_string(), "client": program, "session": parent.session,
        "folder": parent.folder, "tasks": tasks.iter().map(TaskId::as_str).collect::<Vec<_>>() });
    if let Err(error) = process::append_line(&paths.wakes(), &line.to_string()) {
        tracing::warn!(error = format!("{error:#}"), "the record of a resumed session could not be written");
    }
    let ran = process::run_in(&parent.started_in, program, &arguments, &prompt, &paths.wakes_log(), WORKS_MAX).await;
    if let Err(error) = ran {
        tracing::warn!(client = program, error = format!("{error:#}"), "a session could not be resumed");
    }
}

/// What earlier daemons have woken for.
fn woken_before(paths: &Paths) -> HashSet<TaskId> {
    let text = std::fs::read_to_string(paths.wakes()).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let tasks = lines.flat_map(|line| line["tasks"].as_array().cloned().unwrap_or_default());
    tasks.filter_map(|task| task.as_str().map(TaskId::from_text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(id: &str, folder: Option<&str>) -> UnreadResult {
        UnreadResult { task_id: TaskId::from_text(id), revision: 1, started_in: folder.map(str::to_owned) }
    }

    #[test]
    fn a_result_wakes_once_after_a_while_and_only_its_own_project() {
        let mut waker = Waker { woken: HashSet::new(), first_seen: HashMap::new(), wakes: VecDeque::new() };
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let after = Duration::from_secs(60);
        let all = [unread("task_1", Some("/a")), unread("task_2", Some("/b")), unread("task_3", None)];
        assert!(waker.due(&all, after, at(0)).is_empty(), "its parent may still read it");
        let due = waker.due(&all, after, at(60));
        let shown: Vec<(&str, &str)> = due.iter().map(|(folder, tasks)| (folder.as_str(), tasks[0].as_str())).collect();
        assert_eq!(shown, [("/a", "task_1"), ("/b", "task_2")], "what was started nowhere wakes no session");
        waker.note(&due["/a"], at(60));
        assert_eq!(waker.due(&all, after, at(62)).keys().collect::<Vec<_>>(), ["/b"]);
        waker.note(&due["/b"], at(62));
        assert!(waker.due(&all, after, at(64)).is_empty());
        for n in 0..WAKES_PER_HOUR_MAX {
            waker.note(&[TaskId::from_text(format!("task_x{n}"))], at(70));
        }
        let more = [unread("task_9", Some("/a"))];
        waker.due(&more, after, at(100));
        assert!(waker.due(&more, after, at(200)).is_empty(), "no more in this hour");
        assert!(!waker.due(&more, after, at(3_700)).is_empty());
    }
}
