//! Which models are called, and what they are shown.

use std::time::Duration;

use matsu_core::history::Entry;
use matsu_core::ports::provider::ProviderFault;
use matsu_runtime::models::chat::ChatError;
use matsu_testkit::fake_model::{FakeModel, Turn};

use super::{line, open_chat, open_chats, plain, say, spoken};

#[tokio::test(start_paused = true)]
async fn a_mention_calls_one_model_and_a_note_waits_for_the_next() {
    let gemini = FakeModel::new("gemini", [Turn::says(&["G"])]).shared();
    let claude = FakeModel::new("claude", [Turn::says(&["C"])]).shared();
    let open_chats = open_chats(&[&gemini, &claude]).await;
    let open_chat = open_chat(&open_chats).await;
    assert!(say(&open_chat, "the sky is green", plain(&open_chats)).await.is_empty());
    assert!(gemini.histories().is_empty() && claude.histories().is_empty());
    say(&open_chat, "@claude which colour?", plain(&open_chats)).await;
    assert_eq!((gemini.histories().len(), claude.histories().len()), (0, 1));
    let seen: Vec<String> = claude.histories()[0].iter().map(Entry::spoken).collect();
    assert_eq!(seen, ["the sky is green", "@claude which colour?"]);
    let said = [line("user", "the sky is green"), line("user", "@claude which colour?"), line("claude", "C")];
    assert_eq!(spoken(&open_chat).await, said);
}

#[tokio::test(start_paused = true)]
async fn mentions_are_whole_words_and_unknown_ones_are_reported() {
    let gemini = FakeModel::new("gemini", [Turn::says(&["G"])]).shared();
    let open_chats = open_chats(&[&gemini]).await;
    let open_chat = open_chat(&open_chats).await;
    let error = open_chat.post("@geminix hello").await.unwrap_err();
    assert!(matches!(error, ChatError::Unknown(_)) && error.to_string().contains("@geminix"), "{error}");
    assert!(spoken(&open_chat).await.is_empty() && gemini.histories().is_empty());
    say(&open_chat, "@GEMINI hello", plain(&open_chats)).await;
    say(&open_chat, "hello @gemini", plain(&open_chats)).await;
    assert_eq!(gemini.histories().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn all_see_the_same_answer_in_order_and_fail_alone() {
    let slow = FakeModel::new("gemini", [Turn::says(&["slow"]).pausing(Duration::from_secs(9))]).shared();
    let broken = FakeModel::new("chatgpt", [Turn::refused(ProviderFault::Auth)]).shared();
    let quick = FakeModel::new("claude", [Turn::says(&["quick"])]).shared();
    let open_chats = open_chats(&[&slow, &broken, &quick]).await;
    let open_chat = open_chat(&open_chats).await;
    let began = open_chats.clock.instant();
    let answered = say(&open_chat, "@all hello", plain(&open_chats)).await;
    assert!((open_chats.clock.instant() - began) < Duration::from_secs(19), "they run at once");
    assert_eq!(slow.histories()[0], quick.histories()[0]);
    assert_eq!(slow.histories()[0], broken.histories()[0]);
    let said = [line("user", "@all hello"), line("gemini", "slow"), line("claude", "quick")];
    assert_eq!(spoken(&open_chat).await, said);
    let failed: Vec<bool> = answered.iter().map(|answer| answer.result.error.is_some()).collect();
    assert_eq!(failed, [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_default_model_answers_a_line_without_a_mention() {
    let claude = FakeModel::new("claude", [Turn::says(&["C"])]).shared();
    let mut open_chats = open_chats(&[&claude]).await;
    open_chats.roster = open_chats.roster.with_default(Some("claude".to_owned()));
    let open_chat = open_chat(&open_chats).await;
    assert_eq!(say(&open_chat, "hello", plain(&open_chats)).await.len(), 1);
}
