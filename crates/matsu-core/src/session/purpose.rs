//! What an agent that authenticates is there for. Facts decide, no record of intent.

use crate::clock::Timestamp;
use crate::id::{ChatId, SessionId, TaskId};

/// Something an agent could take up, and the live session that has it already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate<T> {
    pub what: T,
    pub held: Option<(SessionId, Timestamp)>,
}

/// What a new session is opened for, and the session it takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    Task { id: TaskId, takes_over: Option<SessionId> },
    Chat { id: ChatId, takes_over: Option<SessionId> },
}

/// A task nobody works on comes first, then a chat nobody listens to. If both are taken, the agent has lost one of its
/// processes and the session least recently seen is the one that died. `None`: there is nothing to do.
#[must_use]
pub fn choose_opening(task: Option<&Candidate<TaskId>>, chat: Option<&Candidate<ChatId>>) -> Option<Opening> {
    let take_task = |found: &Candidate<TaskId>| Opening::Task {
        id: found.what.clone(),
        takes_over: found.held.as_ref().map(|(id, _)| id.clone()),
    };
    let take_chat = |found: &Candidate<ChatId>| Opening::Chat {
        id: found.what.clone(),
        takes_over: found.held.as_ref().map(|(id, _)| id.clone()),
    };
    match (task, chat) {
        (Some(task), _) if task.held.is_none() => Some(take_task(task)),
        (_, Some(chat)) if chat.held.is_none() => Some(take_chat(chat)),
        (Some(task), Some(chat)) => {
            let seen = |held: &Option<(SessionId, Timestamp)>| held.as_ref().map(|(_, at)| *at);
            if seen(&chat.held) < seen(&task.held) { Some(take_chat(chat)) } else { Some(take_task(task)) }
        }
        (Some(task), None) => Some(take_task(task)),
        (None, Some(chat)) => Some(take_chat(chat)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(at: i64) -> Option<(SessionId, Timestamp)> {
        Some((SessionId::from_text(format!("sess_{at}")), Timestamp::from_millis(at)))
    }

    fn chosen(
        task: Option<Option<(SessionId, Timestamp)>>,
        chat: Option<Option<(SessionId, Timestamp)>>,
    ) -> &'static str {
        let task = task.map(|held| Candidate { what: TaskId::from_text("t"), held });
        let chat = chat.map(|held| Candidate { what: ChatId::from_text("c"), held });
        match choose_opening(task.as_ref(), chat.as_ref()) {
            None => "nothing",
            Some(Opening::Task { takes_over: None, .. }) => "task",
            Some(Opening::Task { .. }) => "task taken over",
            Some(Opening::Chat { takes_over: None, .. }) => "chat",
            Some(Opening::Chat { .. }) => "chat taken over",
        }
    }

    #[test]
    fn a_task_comes_first_and_a_live_session_is_left_alone() {
        assert_eq!(chosen(None, None), "nothing");
        assert_eq!(chosen(Some(None), None), "task");
        assert_eq!(chosen(Some(None), Some(None)), "task");
        assert_eq!(chosen(Some(held(1)), Some(None)), "chat");
        assert_eq!(chosen(None, Some(None)), "chat");
        assert_eq!(chosen(Some(None), Some(held(1))), "task");
    }

    #[test]
    fn of_two_live_sessions_the_one_least_recently_seen_is_taken_over() {
        assert_eq!(chosen(Some(held(1)), None), "task taken over");
        assert_eq!(chosen(None, Some(held(1))), "chat taken over");
        assert_eq!(chosen(Some(held(1)), Some(held(2))), "task taken over");
        assert_eq!(chosen(Some(held(2)), Some(held(1))), "chat taken over");
    }
}
