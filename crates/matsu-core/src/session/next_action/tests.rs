//! Every branch of the decision, as a table.

use super::*;
use crate::chat::ChatKind;
use crate::id::{AgentId, ChatId, ProjectId, SessionId};
use crate::principal::Principal;
use crate::task::{JobCounts, TaskKind};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const IDLE: Duration = Duration::from_secs(600);

fn session(purpose: Purpose) -> Session {
    Session {
        id: SessionId::from_text("sess_1"),
        owner: Principal::local_user(),
        agent_id: AgentId::from_text("worker"),
        project_id: ProjectId::from_text("default"),
        purpose,
        task_id: None,
        chat_id: None,
        job_id: None,
        run_id: None,
        mode: None,
        grants: None,
        state: SessionState::Active,
        end_reason: None,
        created_at: NOW,
        last_seen_at: NOW,
        expires_at: NOW.plus(Duration::from_secs(3_600)),
        ended_at: None,
        seq: 1,
    }
}

fn task(status: TaskStatus) -> Task {
    Task {
        id: TaskId::from_text("task_1"),
        kind: TaskKind::Agent,
        owner: Principal::local_user(),
        project_id: Some("default".to_owned()),
        title: String::new(),
        status,
        status_message: None,
        held_by: None,
        revision: 1,
        finished_revision: 0,
        attention_revision: 0,
        config_json: "{}".to_owned(),
        assignee: Some("worker".to_owned()),
        parent_id: None,
        depth: 0,
        counts: JobCounts::default(),
        stop: None,
        created_at: NOW,
        updated_at: NOW,
        finished_at: None,
        first_read_at: None,
        reviews: Vec::new(),
        is_awaited: false,
        seq: 1,
    }
}

fn chat() -> Chat {
    Chat {
        id: ChatId::from_text("chat_1"),
        kind: ChatKind::Agent(AgentId::from_text("worker")),
        project_id: ProjectId::from_text("default"),
        state: ChatState::Open,
        last_seq: 0,
        acked_seq: 0,
        handed_seq: 0,
        last_person_seq: 0,
        last_reply_seq: 0,
        connecting_since: None,
        last_message_at: NOW,
        created_at: NOW,
        ended_at: None,
        seq: 1,
    }
}

fn in_chat() -> SessionView {
    SessionView {
        session: session(Purpose::Chat),
        unread: Unread::default(),
        task: None,
        chat: Some(chat()),
        pending: 0,
        task_waiting: None,
    }
}

fn in_task(status: TaskStatus) -> SessionView {
    SessionView { session: session(Purpose::Task), task: Some(task(status)), chat: None, ..in_chat() }
}

#[test]
fn every_branch_of_a_task_session() {
    use TaskStatus::{Blocked, Cancelled, Completed, Failed, InputRequired, Paused, Queued, Running};
    let table = [
        (Queued, NextAction::Work),
        (Running, NextAction::Work),
        (InputRequired, NextAction::Work),
        (Paused, NextAction::Wait),
        (Blocked, NextAction::Wait),
        (Completed, NextAction::End(EndReason::TaskCompleted)),
        (Failed, NextAction::End(EndReason::TaskFailed)),
        (Cancelled, NextAction::End(EndReason::TaskCancelled)),
    ];
    for (status, action) in table {
        assert_eq!(next_action(&in_task(status), NOW, IDLE), action, "{status}");
    }
    let mut reassigned = in_task(Running);
    reassigned.task.as_mut().unwrap().assignee = Some("other".to_owned());
    assert_eq!(next_action(&reassigned, NOW, IDLE), NextAction::End(EndReason::Reassigned));
    let gone = SessionView { task: None, ..in_task(Running) };
    assert_eq!(next_action(&gone, NOW, IDLE), NextAction::End(EndReason::TaskCompleted));
}

#[test]
fn every_branch_of_a_chat_session() {
    assert_eq!(next_action(&in_chat(), NOW, IDLE), NextAction::Wait);
    assert_eq!(next_action(&SessionView { pending: 1, ..in_chat() }, NOW, IDLE), NextAction::Respond);
    let late = NOW.plus(IDLE);
    assert_eq!(next_action(&in_chat(), late, IDLE), NextAction::End(EndReason::Idle));
    // A person who has just written still gets an answer.
    assert_eq!(next_action(&SessionView { pending: 1, ..in_chat() }, late, IDLE), NextAction::Respond);
    let mut closed = in_chat();
    closed.chat.as_mut().unwrap().state = ChatState::Ended;
    assert_eq!(next_action(&closed, NOW, IDLE), NextAction::End(EndReason::ClosedByPerson));
}

#[test]
fn an_interrupt_comes_first_and_an_end_before_work() {
    let unread = Unread { interrupts: 1, ..Unread::default() };
    assert_eq!(
        next_action(&SessionView { unread, ..in_task(TaskStatus::Blocked) }, NOW, IDLE),
        NextAction::Interrupted
    );
    let mut ending = SessionView { unread, pending: 3, ..in_chat() };
    ending.session.state = SessionState::Ending;
    ending.session.end_reason = Some(EndReason::ClosedByPerson);
    assert_eq!(next_action(&ending, NOW, IDLE), NextAction::End(EndReason::ClosedByPerson));
    let notices = Unread { others: 2, ..Unread::default() };
    assert_eq!(next_action(&SessionView { unread: notices, ..in_chat() }, NOW, IDLE), NextAction::Wait);
}

#[test]
fn a_session_ends_at_its_expiry() {
    let mut view = in_chat();
    view.session.expires_at = NOW;
    assert_eq!(next_action(&view, NOW, IDLE), NextAction::End(EndReason::Expired));
    assert_eq!(next_turn_at(&in_chat(), IDLE), NOW.plus(IDLE));
    assert_eq!(next_turn_at(&in_task(TaskStatus::Running), IDLE), NOW.plus(Duration::from_secs(3_600)));
}
