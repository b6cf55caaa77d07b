//! Sessions on paused time: what a running service sweeps, ends and gives up without being asked.

use std::time::Duration;

use matsu_core::chat::Sender;
use matsu_core::clock::Clock;
use matsu_core::id::{AgentId, ProjectId};
use matsu_core::limits::SWEEP_EVERY;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    AcknowledgeGiven, Give, ListMessages, ListNotifications, Marking, MessageFilter, ReadSession, Steer,
};
use matsu_core::session::{EndReason, Session, SessionState};
use matsu_core::task::{Task, TaskStatus};
use matsu_runtime::Runtime;
use matsu_runtime::agents::Agents;
use matsu_runtime::chats::Chats;
use matsu_runtime::chats::sessions::Sessions;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::worker::Service;

use crate::fixtures::{me, memory, runtime};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Days in one step, and then as long as a sweep takes to come.
async fn jump(clock: &Clock, span: Duration) {
    tokio::time::advance(span).await;
    clock.sleep(2 * SWEEP_EVERY).await;
}

async fn at_work(runtime: &Runtime) -> (Task, Session) {
    let (agent, project) = (AgentId::from_text("worker"), ProjectId::from_text("default"));
    let (_, passkey) =
        Chats::of(runtime).make_agent("worker", "Worker".to_owned(), None, None).await.expect("an agent");
    let task = Agents::of(runtime).assign_task(&me(), &agent, &project, "Count.".to_owned()).await.expect("a task");
    let begun = Sessions::of(runtime).authenticate(&me(), &agent, &passkey, &project).await.expect("a session");
    (task, begun.session)
}

#[tokio::test(start_paused = true)]
async fn old_notifications_are_removed_by_the_running_service() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let (task, session) = at_work(&runtime).await;
    Tasks::of(&runtime).steer(&me(), &task.id, Steer::Block, None).await.expect("blocked");
    let given = Give {
        session_id: session.id.clone(),
        marking: Marking::Given,
        ack_ids: Vec::new(),
        rows_max: 10,
        now: clock.now(),
    };
    assert_eq!(store.run(given).await.expect("given").len(), 1);
    store.run(AcknowledgeGiven { session: session.id.clone(), now: clock.now() }).await.expect("acknowledged");
    Tasks::of(&runtime).steer(&me(), &task.id, Steer::Resume, None).await.expect("resumed");
    let left = async || {
        store
            .run(ListNotifications { session: None, owner: None, page: PageRequest::default() })
            .await
            .expect("a list")
            .items
            .len()
    };
    assert_eq!(left().await, 2, "the order, read; that it no longer holds, unread");
    jump(&clock, 6 * DAY).await;
    assert_eq!(left().await, 2);
    jump(&clock, 2 * DAY).await;
    assert_eq!(left().await, 1, "unread past its time");
    jump(&clock, 23 * DAY).await;
    assert_eq!(left().await, 0, "read and past retention");
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_hour_without_a_call_ends_a_session_and_frees_its_task() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let (task, session) = at_work(&runtime).await;
    assert_eq!(Tasks::of(&runtime).read(&me(), &task.id).await.expect("a task").status, TaskStatus::Running);
    clock.sleep(Duration::from_secs(3_700)).await;
    let ended = store.run(ReadSession(session.id.clone())).await.expect("a session");
    assert_eq!((ended.state, ended.end_reason), (SessionState::Ended, Some(EndReason::Expired)));
    assert_eq!(Tasks::of(&runtime).read(&me(), &task.id).await.expect("a task").status, TaskStatus::Queued);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_unacknowledged_order_ends_the_session_in_time() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let (task, session) = at_work(&runtime).await;
    Tasks::of(&runtime).steer(&me(), &task.id, Steer::Pause, None).await.expect("paused");
    clock.sleep(Duration::from_secs(290)).await;
    assert_eq!(store.run(ReadSession(session.id.clone())).await.expect("a session").state, SessionState::Active);
    clock.sleep(Duration::from_secs(15)).await;
    let ended = store.run(ReadSession(session.id.clone())).await.expect("a session");
    assert_eq!(ended.end_reason, Some(EndReason::NotAcknowledged));
    assert_eq!(Tasks::of(&runtime).read(&me(), &task.id).await.expect("a task").status, TaskStatus::Paused);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_come_is_given_up_after_two_minutes() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    Chats::of(&runtime).make_agent("worker", "Worker".to_owned(), None, None).await.expect("an agent");
    let (agent, project) = (AgentId::from_text("worker"), ProjectId::from_text("default"));
    let chat = Chats::of(&runtime).open_chat(&agent, &project).await.expect("a chat").chat;
    let said = async || {
        let filter = MessageFilter { chat_id: chat.id.clone(), after_seq: Some(0), before_seq: None, rows_max: 10 };
        store.run(ListMessages(filter)).await.expect("messages")
    };
    clock.sleep(Duration::from_secs(115)).await;
    assert!(said().await.is_empty());
    clock.sleep(Duration::from_secs(3_600)).await;
    let lines = said().await;
    assert_eq!(lines.iter().map(|line| line.sender).collect::<Vec<_>>(), [Sender::System], "once");
    service.stop().await;
}
