//! What an agent that authenticates is there for. Facts decide, no record of intent.

use crate::id::{ChatId, SessionId, TaskId};

/// Something an agent could take up, and the live session that has it already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate<T> {
    pub what: T,
    pub held: Option<Held>,
}

/// A session that has not ended. Its process may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub by: SessionId,
    /// It waits in a call at this moment, so its process certainly lives.
    pub listens: bool,
}

/// What a new session is opened for, and the session it takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    Task { id: TaskId, takes_over: Option<SessionId> },
    Chat { id: ChatId, takes_over: Option<SessionId> },
}

/// A task without a session comes first, then a chat without one. If both have a session, the agent has lost one of its
/// processes. A chat whose session waits in a call has not lost its process, so it was the task's; else the chat is
/// taken over, which loses no work. `None`: there is nothing to do.
#[must_use]
pub fn choose_opening(task: Option<&Candidate<TaskId>>, chat: Option<&Candidate<ChatId>>) -> Option<Opening> {
    let by = |held: &Option<Held>| held.as_ref().map(|held| held.by.clone());
    let take_task = |found: &Candidate<TaskId>| Opening::Task { id: found.what.clone(), takes_over: by(&found.held) };
    let take_chat = |found: &Candidate<ChatId>| Opening::Chat { id: found.what.clone(), takes_over: by(&found.held) };
    match (task, chat) {
        (Some(task), _) if task.held.is_none() => Some(take_task(task)),
        (Some(task), Some(chat)) if chat.held.as_ref().is_some_and(|held| held.listens) => Some(take_task(task)),
        (_, Some(chat)) => Some(take_chat(chat)),
        (Some(task), None) => Some(take_task(task)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Option<Held> = None;

    fn held(listens: bool) -> Option<Held> {
        Some(Held { by: SessionId::from_text("sess_1"), listens })
    }

    fn chosen(task: Option<Option<Held>>, chat: Option<Option<Held>>) -> &'static str {
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
        assert_eq!(chosen(Some(FREE), None), "task");
        assert_eq!(chosen(Some(FREE), Some(FREE)), "task");
        assert_eq!(chosen(Some(held(false)), Some(FREE)), "chat");
        assert_eq!(chosen(None, Some(FREE)), "chat");
        assert_eq!(chosen(Some(FREE), Some(held(true))), "task");
    }

    #[test]
    fn of_two_live_sessions_the_task_is_taken_over_only_if_the_chat_certainly_lives() {
        assert_eq!(chosen(Some(held(false)), None), "task taken over");
        assert_eq!(chosen(None, Some(held(false))), "chat taken over");
        assert_eq!(chosen(Some(held(false)), Some(held(false))), "chat taken over");
        assert_eq!(chosen(Some(held(false)), Some(held(true))), "task taken over");
    }
}
