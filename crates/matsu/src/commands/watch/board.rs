//! What the full screen shows, and what a key means: no terminal and no daemon in here.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::client::field;

/// What a person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    Quit,
    /// A command of this program about a task.
    Run(Vec<String>),
    Cancel(String),
}

/// A key that has a meaning here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Up(usize),
    Down(usize),
    First,
    Last,
    Enter,
    Letter(char),
    Escape,
}

#[derive(Debug, Default)]
pub struct Board {
    tasks: BTreeMap<String, Value>,
    /// The task under the bar stays the same when the order changes.
    selected: Option<String>,
    /// Only what is unfinished or unread.
    pub is_short: bool,
    /// The task that is cancelled if the next key says so.
    pub confirms: Option<String>,
    /// What happened last, or what is wrong.
    pub message: Option<String>,
}

impl Board {
    /// An empty one, without what was read.
    pub fn short() -> Self {
        Self { is_short: true, ..Self::default() }
    }

    /// Everything that there is: what is not in the list is gone.
    pub fn replace(&mut self, tasks: Vec<Value>) {
        self.tasks = tasks.into_iter().map(|task| (field(&task, "task_id"), task)).collect();
    }

    /// A task has changed. What is older than what is shown came late.
    pub fn put(&mut self, task: Value) {
        let id = field(&task, "task_id");
        let is_newer = self.tasks.get(&id).is_none_or(|known| known["revision"].as_i64() <= task["revision"].as_i64());
        if is_newer {
            self.tasks.insert(id, task);
        }
    }

    /// In the order in which a person needs them: questions, what is under way, what is unread, the rest; newest first.
    pub fn shown(&self) -> Vec<&Value> {
        let mut shown: Vec<&Value> = self.tasks.values().filter(|task| task["kind"] != "wait").collect();
        shown.retain(|task| !self.is_short || rank(task) < READ);
        shown.sort_by_key(|task| (rank(task), std::cmp::Reverse(field(task, "created_at"))));
        shown
    }

    /// Where the bar is: on its task, or on the first one if that is gone.
    pub fn at(&self) -> Option<usize> {
        let shown = self.shown();
        let at = shown.iter().position(|task| self.selected.as_deref() == task["task_id"].as_str());
        at.or((!shown.is_empty()).then_some(0))
    }

    pub fn count(&self, what: fn(&Value) -> bool) -> usize {
        self.tasks.values().filter(|task| task["kind"] != "wait" && what(task)).count()
    }

    fn task(&self) -> Option<String> {
        self.at().and_then(|at| self.shown().get(at).map(|task| field(task, "task_id")))
    }

    pub fn press(&mut self, key: Key) -> Wish {
        if let Some(task) = self.confirms.take() {
            return if key == Key::Letter('y') { Wish::Cancel(task) } else { Wish::Nothing };
        }
        self.message = None;
        let (at, last) = (self.at().unwrap_or(0), self.shown().len().saturating_sub(1));
        match key {
            Key::Up(by) => self.select(at.saturating_sub(by)),
            Key::Down(by) => self.select(at.saturating_add(by).min(last)),
            Key::First => self.select(0),
            Key::Last => self.select(last),
            Key::Letter('t') => self.is_short = !self.is_short,
            Key::Letter('q') | Key::Escape => return Wish::Quit,
            Key::Letter('c') => self.confirms = self.task(),
            Key::Enter => return self.run(&["status"]),
            Key::Letter('f') => return self.run(&["logs", "--follow"]),
            Key::Letter('a') => return self.run(&["answer"]),
            Key::Letter('r') => return self.run(&["review"]),
            Key::Letter(_) => {}
        }
        Wish::Nothing
    }

    fn select(&mut self, at: usize) {
        self.selected = self.shown().get(at).map(|task| field(task, "task_id"));
    }

    fn run(&self, words: &[&str]) -> Wish {
        let Some(task) = self.task() else { return Wish::Nothing };
        Wish::Run(words.iter().map(|&word| word.to_owned()).chain([task]).collect())
    }
}

pub fn is_open(task: &Value) -> bool {
    task["finished_at"].is_null()
}

pub fn is_asking(task: &Value) -> bool {
    task["status"] == "input_required"
}

pub fn is_unread(task: &Value) -> bool {
    !is_open(task) && task["unread"] == true
}

fn rank(task: &Value) -> u8 {
    match task {
        task if is_asking(task) => 0,
        task if is_open(task) => 1,
        task if is_unread(task) => 2,
        _ => READ,
    }
}

const READ: u8 = 3;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(id: &str, status: &str, unread: bool, revision: i64) -> Value {
        let is_over = ["completed", "failed"].contains(&status);
        json!({ "task_id": id, "kind": "agent", "status": status, "unread": unread, "revision": revision,
            "created_at": id, "finished_at": is_over.then_some("2026-01-01T00:00:00Z") })
    }

    fn board() -> Board {
        let mut board = Board::default();
        board.replace(vec![
            task("1", "completed", false, 4),
            task("2", "running", false, 2),
            task("3", "completed", true, 4),
            task("4", "input_required", false, 3),
        ]);
        board
    }

    fn ids(board: &Board) -> Vec<String> {
        board.shown().iter().map(|task| field(task, "task_id")).collect()
    }

    #[test]
    fn questions_come_first_and_the_bar_stays_on_its_task() {
        let mut board = board();
        assert_eq!(ids(&board), ["4", "2", "3", "1"]);
        board.press(Key::Down(1));
        assert_eq!(board.press(Key::Enter), Wish::Run(vec!["status".to_owned(), "2".to_owned()]));
        board.put(task("2", "completed", true, 5));
        assert_eq!((ids(&board), board.at()), (["4", "3", "2", "1"].map(str::to_owned).to_vec(), Some(2)));
        board.put(task("2", "running", false, 3));
        assert_eq!(board.at(), Some(2), "what came late changes nothing");
        board.press(Key::Letter('t'));
        assert_eq!(ids(&board), ["4", "3", "2"], "what was read is left out");
        board.press(Key::Last);
        board.press(Key::Down(9));
        assert_eq!(board.press(Key::Letter('f')), Wish::Run(["logs", "--follow", "2"].map(str::to_owned).to_vec()));
    }

    #[test]
    fn only_the_very_next_key_cancels() {
        let mut board = board();
        assert_eq!(board.press(Key::Letter('c')), Wish::Nothing);
        assert_eq!(board.press(Key::Escape), Wish::Nothing, "another key takes it back, and ends nothing else");
        assert_eq!(board.press(Key::Letter('y')), Wish::Nothing);
        board.press(Key::Letter('c'));
        assert_eq!(board.press(Key::Letter('y')), Wish::Cancel("4".to_owned()));
        assert_eq!(board.press(Key::Escape), Wish::Quit);
    }

    #[test]
    fn without_tasks_no_key_does_harm() {
        let mut board = Board::default();
        for key in [Key::Up(1), Key::Down(5), Key::Last, Key::Enter, Key::Letter('c'), Key::Letter('y')] {
            assert_eq!(board.press(key), Wish::Nothing, "{key:?}");
        }
    }
}
