//! Notices to people: which events make one, what it says, the outbox that keeps it until it is sent, and the codes by
//! which a person answers a question from it.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::{JobId, NoticeId, TaskId};
use crate::principal::Principal;
use crate::task::{Task, TaskKind, TaskStatus};
use crate::words::words;

words! {
    /// What a person is notified of.
    pub enum NoticeEvent {
        /// A task has completed.
        Done = "done",
        /// A task has failed.
        Failed = "failed",
        /// A task has ended because its budget is used up.
        Budget = "budget",
        /// An agent is out of quota: the task has failed, or waits until the quota is back.
        Quota = "quota",
        /// A task asks a question.
        Asks = "asks",
    }
}

impl NoticeEvent {
    /// The events under which the store keeps it. Why a task has ended is found out when the notice is sent.
    #[must_use]
    pub fn kept_as(self) -> &'static [Self] {
        match self {
            Self::Done => &[Self::Done],
            Self::Failed => &[Self::Failed],
            Self::Budget => &[Self::Done, Self::Failed],
            Self::Quota => &[Self::Failed, Self::Quota],
            Self::Asks => &[Self::Asks],
        }
    }

    /// The event that a change of status is. A task that another one started reports to its parent, and a cancelled one
    /// was ended by a person.
    #[must_use]
    pub fn of_end(before: TaskStatus, task: &Task) -> Option<Self> {
        if before == task.status || task.kind == TaskKind::Wait || task.parent_id.is_some() {
            return None;
        }
        match task.status {
            // Research goes from finished to completed without anything new to report.
            TaskStatus::Completed if before == TaskStatus::Finished => None,
            TaskStatus::Completed | TaskStatus::Finished => Some(Self::Done),
            TaskStatus::Failed => Some(Self::Failed),
            _ => None,
        }
    }
}

words! {
    /// How much of a task a notice carries.
    pub enum NoticeContent {
        /// That something happened.
        None = "none",
        /// The title of the task too.
        Title = "title",
        /// The question, the error or the beginning of the result too.
        Full = "full",
    }
}

/// Which events of whose tasks a channel gets, and how much of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeRules {
    pub owner: Principal,
    pub events: Vec<NoticeEvent>,
    /// Only tasks with a run of one of these; empty: all tasks.
    pub agents: Vec<String>,
    /// Only tasks of these projects; empty: all tasks.
    pub projects: Vec<String>,
    /// Only ends of tasks that took at least this many seconds.
    pub min_seconds: u64,
    /// Also ends that an agent or a person has read already.
    pub include_read: bool,
    pub content: NoticeContent,
}

impl NoticeRules {
    /// Whether the channel gets this event of this task. With a cause, it is enough that it wants one of the two.
    #[must_use]
    pub fn allow(&self, event: NoticeEvent, cause: Option<NoticeEvent>, task: &Task) -> bool {
        let is_listed =
            |listed: &[String], of: &[String]| listed.is_empty() || of.iter().any(|one| listed.contains(one));
        let end = task.finished_at.unwrap_or(task.updated_at);
        let is_end = matches!(event, NoticeEvent::Done | NoticeEvent::Failed);
        // What could not start took no time, and is reported all the same.
        let is_long = !is_end || task.is_unstarted() || end.since(task.created_at).as_secs() >= self.min_seconds;
        (self.events.contains(&event) || cause.is_some_and(|cause| self.events.contains(&cause)))
            && self.owner == task.owner
            && is_listed(&self.agents, &task.agents())
            && is_listed(&self.projects, task.project_id.as_slice())
            && is_long
    }
}

/// A channel as the store knows it, so that the transaction that ends a task can write its notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelRow {
    pub name: String,
    pub owner: Principal,
    pub events: Vec<NoticeEvent>,
    /// Where answers come back, if the store has none yet.
    pub reply_topic: String,
}

/// A stored notice that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeRow {
    pub id: NoticeId,
    pub channel: String,
    pub event: NoticeEvent,
    pub task_id: TaskId,
    /// Of a question: its job and its id.
    pub key: String,
    /// Times it was tried before.
    pub attempts: u32,
    /// The id of the message about several notices that it was tried with.
    pub bundle: Option<String>,
    pub created_at: Timestamp,
}

/// The key of the notice of a question.
#[must_use]
pub fn question_key(job: &JobId, question: &str) -> String {
    format!("{job}:{question}")
}

#[must_use]
pub fn quota_key(job: &JobId, back: Timestamp) -> String {
    format!("quota:{job}:{}", back.as_millis())
}

/// What came of trying to send notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeOutcome {
    Sent,
    /// The result was read or the question answered meanwhile, or the rules of the channel leave it out.
    NotNeeded,
    /// These are tried again then, and no other notice of the channel before.
    Later {
        error: String,
        due_at: Timestamp,
    },
    /// They are not tried again.
    GivenUp {
        error: String,
    },
}

/// A channel with notices that wait, or whose last message did not arrive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChannelState {
    pub channel: String,
    pub waiting: i64,
    /// Why the last message did not arrive; absent: it did, or there was none.
    pub last_error: Option<String>,
}

/// What one code answers. The code itself is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerCode {
    pub hash: String,
    pub channel: String,
    pub task_id: TaskId,
    pub job_id: JobId,
    pub question_id: String,
    pub option: String,
}

/// The store's answer to a code that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeUse {
    /// Its first use, which no other node has.
    First(AnswerCode),
    Repeated,
    /// No code of this channel, or one that is too old.
    Unknown,
}

/// A button of a message: the option it chooses, and the code it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Button {
    pub option: String,
    pub code: String,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoticeMessage {
    /// The same for every attempt, so that a receiver can drop repetitions.
    pub id: String,
    /// The event; of several notices in one message the most urgent.
    pub event: NoticeEvent,
    /// Absent in a message about several tasks.
    pub task_id: Option<String>,
    pub title: String,
    pub text: String,
    /// The page of the task, or of all tasks.
    pub link: Option<String>,
    pub at: Timestamp,
    #[serde(skip)]
    pub buttons: Vec<Button>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::JobCounts;

    fn task(status: TaskStatus) -> Task {
        Task {
            id: TaskId::from_text("task_1"),
            kind: TaskKind::Agent,
            owner: Principal::local_user(),
            project_id: Some("shop".to_owned()),
            title: "t".to_owned(),
            status,
            status_message: None,
            held_by: None,
            revision: 2,
            finished_revision: 2,
            attention_revision: 0,
            config_json: r#"{"agents":["claude"]}"#.to_owned(),
            assignee: None,
            parent_id: None,
            depth: 0,
            counts: JobCounts::default(),
            stop: None,
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
            finished_at: Some(Timestamp::from_millis(60_000)),
            first_read_at: None,
            reviews: Vec::new(),
            is_awaited: false,
            seq: 1,
        }
    }

    #[test]
    fn an_end_is_an_event_once_and_only_of_a_task_without_a_parent() {
        use TaskStatus::{Cancelled, Completed, Failed, Finished, Queued, Running};
        for (before, after, event) in [
            (Running, Completed, Some(NoticeEvent::Done)),
            (Running, Failed, Some(NoticeEvent::Failed)),
            (Queued, Finished, Some(NoticeEvent::Done)),
            (Finished, Completed, None),
            (Completed, Completed, None),
            (Running, Cancelled, None),
        ] {
            assert_eq!(NoticeEvent::of_end(before, &task(after)), event, "{before} {after}");
        }
        let child = Task { parent_id: Some(TaskId::from_text("task_0")), ..task(Completed) };
        assert_eq!(NoticeEvent::of_end(Running, &child), None);
        let wait = Task { kind: TaskKind::Wait, ..task(Completed) };
        assert_eq!(NoticeEvent::of_end(Running, &wait), None);
    }

    #[test]
    fn rules_choose_by_owner_event_agent_project_and_age() {
        let all = NoticeRules {
            owner: Principal::local_user(),
            events: NoticeEvent::ALL.to_vec(),
            agents: Vec::new(),
            projects: Vec::new(),
            min_seconds: 0,
            include_read: false,
            content: NoticeContent::Full,
        };
        let ended = task(TaskStatus::Completed);
        let allows = |rules: &NoticeRules| rules.allow(NoticeEvent::Done, None, &ended);
        let list = |word: &str| vec![word.to_owned()];
        assert!(allows(&all));
        assert!(allows(&NoticeRules {
            agents: list("claude"),
            projects: list("shop"),
            min_seconds: 60,
            ..all.clone()
        }));
        assert!(!allows(&NoticeRules { owner: Principal::user("ada"), ..all.clone() }));
        assert!(!allows(&NoticeRules { events: vec![NoticeEvent::Asks], ..all.clone() }));
        assert!(!allows(&NoticeRules { agents: list("codex"), ..all.clone() }));
        assert!(!allows(&NoticeRules { projects: list("blog"), ..all.clone() }));
        let slow = NoticeRules { min_seconds: 61, ..all.clone() };
        assert!(!allows(&slow) && slow.allow(NoticeEvent::Asks, None, &ended), "a question is never too early");
        let poor = NoticeRules { events: vec![NoticeEvent::Budget, NoticeEvent::Quota], ..all.clone() };
        assert!(!allows(&poor));
        assert!(poor.allow(NoticeEvent::Done, Some(NoticeEvent::Budget), &ended));
        assert!(poor.allow(NoticeEvent::Quota, None, &ended));
        let failures = NoticeRules { events: vec![NoticeEvent::Failed], ..all };
        assert!(
            failures.allow(NoticeEvent::Failed, Some(NoticeEvent::Quota), &ended),
            "a failure by quota is a failure"
        );
    }
}
