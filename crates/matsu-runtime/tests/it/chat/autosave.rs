//! What has arrived is kept, whatever happens to the listener.

use std::time::Duration;

use matsu_core::history::Entry;
use matsu_core::ports::store::ReadChatContent;
use matsu_core::ports::tool_source::ToolAnswer;
use matsu_runtime::models::agentic_loop::{Event, LoopOptions};
use matsu_testkit::fake_model::{FakeModel, Turn};
use matsu_testkit::fake_tools::FakeTools;
use serde_json::json;

use super::{line, open_chat, open_chats, open_chats_on, plain, spoken};
use crate::faulty_store::{FaultyStore, Plan};
use crate::fixtures::{me, memory};

#[tokio::test(start_paused = true)]
async fn a_crash_in_mid_answer_loses_nothing_that_was_saved_and_it_is_offered_back() {
    let pieces: Vec<String> = (0..60).map(|n| format!("{n} ")).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let turns = [Turn::calls("look", json!({})), Turn::says(&pieces).pausing(Duration::from_millis(500))];
    let model = FakeModel::new("m", turns).shared();
    let open_chats = open_chats(&[&model]).await;
    let open_chat = open_chat(&open_chats).await;
    let posted = open_chat.post("@m count").await.unwrap();
    let tools = FakeTools::new().answering("look", |_| ToolAnswer::good("seen")).shared();
    let options = LoopOptions { tools: Some(tools), ..plain(&open_chats) };
    // The process dies: nothing runs on, and nothing is cleaned up.
    let mut deaf = |_: &str, _: &Event| {};
    let crash = open_chats.clock.within(Duration::from_secs(11), open_chat.answer(&posted, options, &mut deaf));
    assert!(crash.await.is_none());
    let again = open_chats.enter(&me(), open_chat.id()).await.unwrap();
    let said = spoken(&again).await;
    assert_eq!((said[0].clone(), said[2].clone()), (line("user", "@m count"), line("tool", "")));
    let (kept, mark) = said[3].1.split_once('\n').expect("a line about the rest");
    assert_eq!(mark, "[cut off here: the server ended before the answer was complete]");
    let count = kept.split_whitespace().count();
    assert!((16..=21).contains(&count), "at most the last two seconds are lost, kept {count} of 21");
    assert!(
        open_chats
            .store
            .run(ReadChatContent { id: open_chat.id().clone(), after_seq: 0 })
            .await
            .unwrap()
            .drafts
            .is_empty()
    );
    assert_eq!(spoken(&open_chats.enter(&me(), open_chat.id()).await.unwrap()).await, said, "offered back once");
}

#[tokio::test(start_paused = true)]
async fn at_most_one_save_in_two_seconds_and_a_failing_one_is_said_once() {
    let (inner, clock) = memory().await;
    let store = FaultyStore::new(inner);
    let pieces = ["x"; 100];
    let model = FakeModel::new("m", [Turn::says(&pieces).pausing(Duration::from_millis(100))]).shared();
    let open_chats = open_chats_on(store.clone(), clock, &[&model]);
    let open_chat = open_chat(&open_chats).await;
    let posted = open_chat.post("@m go").await.unwrap();
    let before = store.calls();
    let mut notices = 0;
    let mut tell = |_: &str, event: &Event| notices += usize::from(matches!(event, Event::Notice(_)));
    open_chat.answer(&posted, plain(&open_chats), &mut tell).await.unwrap();
    let calls = store.calls() - before;
    assert!((5..=12).contains(&calls), "ten seconds of talk made {calls} calls of the store");
    let stored: Vec<Entry> = open_chat.entries().await.unwrap();
    assert_eq!((stored[1].spoken(), notices), ("x".repeat(100), 0));
}

#[tokio::test(start_paused = true)]
async fn a_save_that_fails_is_said_once_and_the_answer_goes_on() {
    let (inner, clock) = memory().await;
    let store = FaultyStore::new(inner);
    let model = FakeModel::new("m", [Turn::says(&["x"; 100]).pausing(Duration::from_millis(100))]).shared();
    let open_chats = open_chats_on(store.clone(), clock, &[&model]);
    let open_chat = open_chat(&open_chats).await;
    let posted = open_chat.post("@m go").await.unwrap();
    let mut notices = Vec::new();
    let mut tell = |_: &str, event: &Event| match event {
        Event::Text(_) => store.set(Plan::Down),
        Event::Notice(words) => notices.push(words.clone()),
        _ => {}
    };
    let answered = open_chat.answer(&posted, plain(&open_chats), &mut tell).await.unwrap();
    assert_eq!((answered[0].result.final_text.len(), notices.len()), (100, 1), "{notices:?}");
    assert!(answered[0].unsaved.is_some(), "and that the answer is not stored is said too");
}
