//! Who is called, and what they are shown.

use std::time::Duration;

use matsu_core::history::Entry;
use matsu_core::ports::provider::ProviderFault;
use matsu_runtime::chat::ChatError;
use matsu_testkit::fake_model::{FakeModel, Turn};

use super::{line, plain, room, rooms, say, spoken};

#[tokio::test(start_paused = true)]
async fn b01_a_mention_calls_one_model_and_a_note_waits_for_the_next() {
    let gemini = FakeModel::new("gemini", [Turn::says(&["G"])]).shared();
    let claude = FakeModel::new("claude", [Turn::says(&["C"])]).shared();
    let rooms = rooms(&[&gemini, &claude]).await;
    let room = room(&rooms).await;
    assert!(say(&room, "the sky is green", plain(&rooms)).await.is_empty());
    assert!(gemini.histories().is_empty() && claude.histories().is_empty());
    say(&room, "@claude which colour?", plain(&rooms)).await;
    assert_eq!((gemini.histories().len(), claude.histories().len()), (0, 1));
    let seen: Vec<String> = claude.histories()[0].iter().map(Entry::spoken).collect();
    assert_eq!(seen, ["the sky is green", "@claude which colour?"]);
    let said = [line("user", "the sky is green"), line("user", "@claude which colour?"), line("claude", "C")];
    assert_eq!(spoken(&room).await, said);
}

#[tokio::test(start_paused = true)]
async fn b02_mentions_are_whole_words_and_unknown_ones_are_reported() {
    let gemini = FakeModel::new("gemini", [Turn::says(&["G"])]).shared();
    let rooms = rooms(&[&gemini]).await;
    let room = room(&rooms).await;
    let error = room.post("@geminix hello").await.unwrap_err();
    assert!(matches!(error, ChatError::Unknown(_)) && error.to_string().contains("@geminix"), "{error}");
    assert!(spoken(&room).await.is_empty() && gemini.histories().is_empty());
    say(&room, "@GEMINI hello", plain(&rooms)).await;
    say(&room, "hello @gemini", plain(&rooms)).await;
    assert_eq!(gemini.histories().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn b03_all_see_the_same_answer_in_order_and_fail_alone() {
    let slow = FakeModel::new("gemini", [Turn::says(&["slow"]).pausing(Duration::from_secs(9))]).shared();
    let broken = FakeModel::new("chatgpt", [Turn::refused(ProviderFault::Auth)]).shared();
    let quick = FakeModel::new("claude", [Turn::says(&["quick"])]).shared();
    let rooms = rooms(&[&slow, &broken, &quick]).await;
    let room = room(&rooms).await;
    let began = rooms.clock.instant();
    let answered = say(&room, "@all hello", plain(&rooms)).await;
    assert!((rooms.clock.instant() - began) < Duration::from_secs(19), "they run at once");
    assert_eq!(slow.histories()[0], quick.histories()[0]);
    assert_eq!(slow.histories()[0], broken.histories()[0]);
    let said = [line("user", "@all hello"), line("gemini", "slow"), line("claude", "quick")];
    assert_eq!(spoken(&room).await, said);
    let failed: Vec<bool> = answered.iter().map(|answer| answer.result.error.is_some()).collect();
    assert_eq!(failed, [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_default_model_answers_what_names_nobody() {
    let claude = FakeModel::new("claude", [Turn::says(&["C"])]).shared();
    let mut rooms = rooms(&[&claude]).await;
    rooms.roster = rooms.roster.with_default(Some("claude".to_owned()));
    let room = room(&rooms).await;
    assert_eq!(say(&room, "hello", plain(&rooms)).await.len(), 1);
}
