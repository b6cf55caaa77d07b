//! Chats: one open at a time, numbers that grow by one, delivery that can be acknowledged.

use std::time::Duration;

use matsu_core::chat::{ChatState, Sender};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::ChatId;
use matsu_core::ports::store::{
    AcknowledgeMessages, EndChat, GiveUpOnAgents, ListMessages, MessageFilter, ReadChat, ReadSession, TakeBackMessages,
    TakeMessages, Taken,
};
use matsu_core::session::{EndReason, SessionState};

use crate::harness::TestStore;

fn seqs(taken: &Taken) -> Vec<(i64, bool)> {
    taken.messages.iter().map(|taken| (taken.message.seq, taken.redelivered)).collect()
}

async fn take(t: &TestStore, session: &matsu_core::session::Session, after_seq: Option<i64>, to: &str) -> Taken {
    let request = TakeMessages {
        session_id: session.id.clone(),
        chat_id: session.chat_id.clone().unwrap(),
        after_seq,
        rows_max: 10,
        handed_to: to.to_owned(),
    };
    t.store.run(request).await.unwrap()
}

pub async fn an_agent_has_one_open_chat_in_a_project(t: TestStore) {
    t.new_agent("worker").await;
    let (first, second) = (t.open_chat("worker").await, t.open_chat("worker").await);
    assert_eq!((first.existed, second.existed), (false, true));
    assert_eq!(first.chat.id, second.chat.id);
    let ended = t.store.run(EndChat { id: first.chat.id.clone(), now: t.now() }).await.unwrap();
    assert_eq!(ended.state, ChatState::Ended);
    assert_eq!(
        t.store.run(EndChat { id: first.chat.id.clone(), now: t.now() }).await.unwrap(),
        ended,
        "ending twice changes nothing"
    );
    assert_ne!(t.open_chat("worker").await.chat.id, first.chat.id);
    let refused = t.try_message(&first.chat.id, "late").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ChatEnded);
    let missing = t.try_message(&ChatId::from_text("chat_nope"), "hello").await.unwrap_err();
    assert_eq!(missing.code(), ErrorCode::ResourceNotFound);
}

pub async fn numbers_grow_by_one_for_concurrent_writers(t: TestStore) {
    t.new_agent("worker").await;
    let chat = t.open_chat("worker").await.chat;
    let t = std::sync::Arc::new(t);
    let mut talking = tokio::task::JoinSet::new();
    for n in 0..20 {
        let (t, chat) = (std::sync::Arc::clone(&t), chat.id.clone());
        talking.spawn(async move { t.message(&chat, &format!("message {n}")).await.seq });
    }
    let mut given = talking.join_all().await;
    given.sort_unstable();
    assert_eq!(given, (1..=20).collect::<Vec<i64>>());
    let filter = |after_seq, before_seq| MessageFilter { chat_id: chat.id.clone(), after_seq, before_seq, rows_max: 5 };
    let seqs = |found: Vec<matsu_core::chat::Message>| found.iter().map(|message| message.seq).collect::<Vec<_>>();
    assert_eq!(seqs(t.store.run(ListMessages(filter(Some(7), None))).await.unwrap()), [8, 9, 10, 11, 12]);
    assert_eq!(seqs(t.store.run(ListMessages(filter(None, None))).await.unwrap()), [16, 17, 18, 19, 20]);
    assert_eq!(seqs(t.store.run(ListMessages(filter(None, Some(4)))).await.unwrap()), [1, 2, 3]);
}

pub async fn what_is_not_acknowledged_comes_again(t: TestStore) {
    t.new_agent("worker").await;
    let chat = t.open_chat("worker").await.chat;
    let session = t.begin("worker").await.unwrap();
    for n in 1..=12 {
        t.message(&chat.id, &format!("message {n}")).await;
    }
    let first = take(&t, &session, None, "a").await;
    assert_eq!(seqs(&first), (1..=10).map(|seq| (seq, false)).collect::<Vec<_>>());
    assert!(first.more);
    let again = take(&t, &session, None, "a").await;
    assert_eq!(seqs(&again), (1..=10).map(|seq| (seq, true)).collect::<Vec<_>>());
    let rest = take(&t, &session, Some(10), "a").await;
    assert_eq!((seqs(&rest), rest.more), (vec![(11, false), (12, false)], false));
    assert_eq!(seqs(&take(&t, &session, Some(12), "a").await), []);
    assert_eq!(seqs(&take(&t, &session, None, "a").await), [], "the mark outlives the call");
    assert_eq!(seqs(&take(&t, &session, Some(11), "a").await), [(12, true)], "a smaller number reads again");
    let beyond = t.store.run(AcknowledgeMessages { chat_id: chat.id.clone(), upto_seq: 13 }).await.unwrap_err();
    assert_eq!(beyond.code(), ErrorCode::InvalidParams);
    assert_eq!(t.store.run(ReadChat(chat.id.clone())).await.unwrap().acked_seq, 12);
}

pub async fn speaking_acknowledges_what_came_over_the_same_connection(t: TestStore) {
    t.new_agent("worker").await;
    let chat = t.open_chat("worker").await.chat;
    let session = t.begin("worker").await.unwrap();
    let first = t.message(&chat.id, "one").await;
    let acked = async || t.store.run(ReadChat(chat.id.clone())).await.unwrap().acked_seq;
    take(&t, &session, None, "lost").await;
    t.say(&session, "hello?", None, "another").await.unwrap();
    assert_eq!(acked().await, 0, "what went out over a connection that closed may never have arrived");
    take(&t, &session, None, "lost").await;
    t.store.run(TakeBackMessages { session: session.id.clone(), handed_to: "lost".to_owned() }).await.unwrap();
    t.say(&session, "still there", None, "lost").await.unwrap();
    assert_eq!(acked().await, 0, "a call that was cancelled delivered nothing");
    take(&t, &session, None, "a").await;
    t.message(&chat.id, "two, after the look").await;
    t.say(&session, "an answer", None, "a").await.unwrap();
    assert_eq!(acked().await, first.seq, "what came later is not hidden");
    let third = t.message(&chat.id, "three").await;
    t.say(&session, "to the third", Some(&third.id), "elsewhere").await.unwrap();
    assert_eq!(acked().await, third.seq);
}

pub async fn a_reply_is_awaited_until_a_message_replies(t: TestStore) {
    t.new_agent("worker").await;
    let chat = t.open_chat("worker").await.chat;
    let session = t.begin("worker").await.unwrap();
    let awaits = async || t.store.run(ReadChat(chat.id.clone())).await.unwrap().awaits_reply();
    assert!(!awaits().await);
    t.message(&chat.id, "hello").await;
    assert!(awaits().await);
    take(&t, &session, None, "a").await;
    assert!(awaits().await, "reading is not replying");
    t.say(&session, "hello", None, "a").await.unwrap();
    assert!(!awaits().await);
}

pub async fn an_agent_that_does_not_come_leaves_one_line(t: TestStore) {
    t.new_agent("worker").await;
    let chat = t.open_chat("worker").await.chat;
    assert_eq!(chat.connecting_since, Some(t.now()));
    let later = t.pass(Duration::from_secs(10));
    let updated = t
        .store
        .run(GiveUpOnAgents { called_before: t.now(), line: "no agent connected".to_owned(), now: later })
        .await
        .unwrap();
    assert_eq!(updated, [chat.id.clone()]);
    assert_eq!(
        t.store
            .run(GiveUpOnAgents { called_before: later, line: "no agent connected".to_owned(), now: later })
            .await
            .unwrap(),
        [],
        "said once"
    );
    t.message(&chat.id, "try again").await;
    let called = t.store.run(ReadChat(chat.id.clone())).await.unwrap();
    assert_eq!(called.connecting_since, Some(later), "a message calls again");
    t.begin("worker").await.unwrap();
    assert_eq!(t.store.run(ReadChat(chat.id.clone())).await.unwrap().connecting_since, None);
    let filter = MessageFilter { chat_id: chat.id.clone(), after_seq: Some(0), before_seq: None, rows_max: 10 };
    let senders: Vec<Sender> =
        t.store.run(ListMessages(filter)).await.unwrap().iter().map(|said| said.sender).collect();
    assert_eq!(senders, [Sender::System, Sender::Person]);
}

pub async fn ending_a_chat_tells_its_session(t: TestStore) {
    t.new_agent("worker").await;
    let chat = t.open_chat("worker").await.chat;
    let session = t.begin("worker").await.unwrap();
    t.store.run(EndChat { id: chat.id.clone(), now: t.now() }).await.unwrap();
    let updated = t.store.run(ReadSession(session.id.clone())).await.unwrap();
    assert_eq!((updated.state, updated.end_reason), (SessionState::Ending, Some(EndReason::ClosedByPerson)));
    let refused = t.say(&session, "one more thing", None, "a").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ChatEnded);
    assert_eq!(seqs(&take(&t, &session, None, "a").await), []);
}
