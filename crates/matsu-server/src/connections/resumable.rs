//! What the last answers over HTTP show: a client whose stream broke may come back to it over another connection.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use matsu_runtime::chats::sessions::Shown;

/// Answers of all sessions together. A client comes back within seconds or not at all.
const REMEMBERED_MAX: usize = 1024;

/// What the last answers show, by session and request.
#[derive(Default)]
pub struct Resumable {
    answers: Mutex<VecDeque<(String, String, Vec<Shown>)>>,
}

impl Resumable {
    pub fn remember(&self, session: &str, request: &str, shown: Vec<Shown>) {
        if shown.is_empty() {
            return;
        }
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= REMEMBERED_MAX {
            answers.pop_front();
        }
        answers.push_back((session.to_owned(), request.to_owned(), shown));
    }

    #[must_use]
    pub fn find(&self, session: &str, request: &str) -> Option<Vec<Shown>> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(of, id, _): &&(String, String, Vec<Shown>)| of == session && id == request;
        answers.iter().rev().find(is_it).map(|(_, _, shown)| shown.clone())
    }
}

#[cfg(test)]
mod tests {
    use matsu_core::id::TaskId;
    use matsu_core::principal::Principal;

    use super::*;

    #[test]
    fn an_answer_is_found_by_its_session_and_request() {
        let resumable = Resumable::default();
        let shown = |id: &str| vec![(Principal::local_user(), TaskId::from_text(id))];
        let (first, second) = ("task_01K7ZZZZZZZZZZZZZZZZZZZZZ1", "task_01K7ZZZZZZZZZZZZZZZZZZZZZ2");
        resumable.remember("a", "1", shown(first));
        resumable.remember("b", "1", shown(second));
        resumable.remember("a", "2", Vec::new());
        assert_eq!(resumable.find("a", "1"), Some(shown(first)));
        assert_eq!(resumable.find("b", "1"), Some(shown(second)));
        assert_eq!(resumable.find("a", "2"), None);
        for n in 2..=REMEMBERED_MAX {
            resumable.remember("a", &n.to_string(), shown(first));
        }
        assert_eq!(resumable.find("a", "1"), None);
    }
}
