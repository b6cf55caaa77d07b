//! The table of the wait: what is seen, what was sent, what is waited for, what comes of it.

use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::principal::Principal;
use matsu_core::task::{JobCounts, TaskStatus};

use super::*;

/// A running task at revision 10, whose last finished job is revision 6 and last question revision 3.
fn running() -> Task {
    Task {
        id: TaskId::from_text("task_a"),
        kind: TaskKind::Research,
        owner: Principal::local_user(),
        project_id: None,
        title: String::new(),
        status: TaskStatus::Running,
        status_message: None,
        held_by: None,
        revision: 10,
        finished_revision: 6,
        attention_revision: 3,
        config_json: "{}".to_owned(),
        assignee: None,
        parent_id: None,
        depth: 0,
        counts: JobCounts { running: 1, completed: 2, ..JobCounts::default() },
        stop: None,
        created_at: Timestamp::default(),
        updated_at: Timestamp::default(),
        finished_at: None,
        first_read_at: None,
        reviews: Vec::new(),
        is_awaited: false,
        seq: 1,
    }
}

fn idle() -> Task {
    Task { counts: JobCounts { completed: 3, ..JobCounts::default() }, ..running() }
}

fn ended() -> Task {
    Task { status: TaskStatus::Completed, ..idle() }
}

const CHANGED: Decision = Decision::Answer(ReturnedBecause::Changed);
const TERMINAL: Decision = Decision::Answer(ReturnedBecause::Terminal);
const IDLE: Decision = Decision::Answer(ReturnedBecause::Idle);

#[test]
fn one_task() {
    use Decision::{Collect, Sleep};
    use WaitFor::{All, Any, Finished};
    let paused = || Task { status: TaskStatus::Paused, ..running() };
    let wait = || Task { kind: TaskKind::Wait, counts: JobCounts::default(), ..running() };
    let table = [
        ("a finished job is collected", running(), 5, Finished, Collect),
        ("a finished job that was delivered is no news", running(), 6, Finished, Sleep),
        ("progress is no finished job", running(), 9, Finished, Sleep),
        ("progress is anything", running(), 9, Any, CHANGED),
        ("nothing new at all", running(), 10, Any, Sleep),
        ("all waits through finished jobs", running(), 5, All, Sleep),
        ("a question ends a wait for all", running(), 2, All, CHANGED),
        ("a question is not collected", running(), 2, Finished, CHANGED),
        ("a question that was delivered is no news", running(), 3, All, Sleep),
        ("never delivered", running(), 0, Finished, CHANGED),
        ("never delivered, all", running(), 0, All, CHANGED),
        ("a pause is worth a turn", paused(), 5, Finished, Collect),
        ("a pause that was delivered", paused(), 10, Finished, Sleep),
        ("nothing left", idle(), 10, Finished, IDLE),
        ("nothing left, all", idle(), 10, All, IDLE),
        ("nothing left, never delivered", idle(), 0, Any, IDLE),
        ("ended and delivered", ended(), 10, Finished, TERMINAL),
        ("ended, all", ended(), 4, All, TERMINAL),
        ("a wait without jobs is not idle", wait(), 10, Any, Sleep),
    ];
    for (what, task, since, wait_for, decision) in table {
        assert_eq!(decide(&[(&task, since)], wait_for), decision, "{what}");
    }
}

#[test]
fn several_tasks() {
    use Decision::{Collect, Sleep};
    use WaitFor::{All, Any, Finished};
    let table = [
        ("an end that was delivered does not answer for the others", ended(), 10, running(), 10, Finished, Sleep),
        ("an end that is news answers at once", ended(), 5, running(), 10, Finished, CHANGED),
        ("all of them", ended(), 5, running(), 10, All, Sleep),
        ("all of them, idle", ended(), 5, idle(), 10, All, IDLE),
        ("all of them, ended", ended(), 10, ended(), 10, Finished, TERMINAL),
        ("one to collect", running(), 10, running(), 5, Finished, Collect),
        ("one to collect and a question", running(), 5, running(), 2, Finished, CHANGED),
        ("any of them", running(), 10, running(), 9, Any, CHANGED),
    ];
    for (what, one, one_since, other, other_since, wait_for, decision) in table {
        assert_eq!(decide(&[(&one, one_since), (&other, other_since)], wait_for), decision, "{what}");
    }
}

#[test]
fn a_caller_that_knows_nothing_waits_unless_something_needs_it() {
    let asked = || Task { status: TaskStatus::InputRequired, ..running() };
    let login = || Task { counts: JobCounts { awaiting_auth: 1, ..JobCounts::default() }, ..running() };
    let read = || Task { first_read_at: Some(Timestamp::default()), ..ended() };
    for (what, task, from) in [
        ("work under way is waited for", running(), 10),
        ("a question is answered at once", asked(), 0),
        ("a login is shown at once", login(), 0),
        ("an unread end is shown at once", ended(), 0),
        ("an end that was read does not end a wait for others", read(), 10),
    ] {
        assert_eq!(start(&task), from, "{what}");
    }
}
