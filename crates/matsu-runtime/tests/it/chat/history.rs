//! What is stored, loaded, validated and left out.

use matsu_core::clock::Timestamp;
use matsu_core::history::{Entry, parse};
use matsu_core::ports::provider::ModelLimits;
use matsu_core::ports::store::{ListTranscripts, ReadTranscript};
use matsu_core::principal::Principal;
use matsu_runtime::models::chat::{ChatError, OpenChats, export};
use matsu_testkit::fake_model::{FakeModel, Turn};
use serde_json::json;

use super::{open_chat, open_chats, plain, say, spoken};
use crate::fixtures::me;

const NOW: Timestamp = Timestamp::from_millis(1);

#[test]
fn validation_rejects_everything_that_is_not_a_transcript() {
    let call = json!({"type": "tool_call", "id": "a", "name": "n", "arguments": {}});
    let result = json!({"type": "tool_result", "id": "b", "name": "n", "content": ""});
    let refused = [
        json!([{"role": "gemini", "content": []}]),
        json!([{"role": "user"}]),
        json!([{"role": "user", "content": [{"type": "smell"}]}]),
        json!([{"role": "tool", "content": [{"type": "text", "text": "x"}]}]),
        json!([{"role": "tool", "content": [{"type": "tool_result", "name": "n", "content": ""}]}]),
        json!([{"role": "assistant", "model": "m", "content": [call]}, {"role": "tool", "content": [result]}]),
    ];
    for history in refused {
        assert!(parse(&history, NOW).is_err(), "{history}");
    }
}

async fn two_named(open_chats: &OpenChats) {
    for name in ["plans", "ideas"] {
        let mut open_chat = open_chat(open_chats).await;
        say(&open_chat, &format!("note in {name}"), plain(open_chats)).await;
        open_chat.set_system_prompt(Some(format!("prompt of {name}"))).await.unwrap();
        open_chat.name(name, false).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_saved_is_loaded_and_a_failed_load_changes_nothing() {
    let model = FakeModel::new("m", [Turn::says(&["hi"])]).shared();
    let open_chats = open_chats(&[&model]).await;
    two_named(&open_chats).await;
    let listed = open_chats.store.run(ListTranscripts(me())).await.unwrap();
    let plans = listed.iter().find(|transcript| transcript.name.as_deref() == Some("plans")).unwrap();
    let loaded = open_chats.enter(&me(), &plans.chat.id).await.unwrap();
    assert_eq!(loaded.transcript.system_prompt.as_deref(), Some("prompt of plans"));
    assert_eq!(spoken(&loaded).await[0].1, "note in plans");

    let mut other = open_chat(&open_chats).await;
    let taken = other.name("plans", false).await.unwrap_err();
    assert!(matches!(taken, ChatError::Store(_)), "{taken}");
    assert_eq!(
        open_chats.store.run(ReadTranscript(plans.chat.id.clone())).await.unwrap().name.as_deref(),
        Some("plans")
    );
    other.name("../../etc/passwd", false).await.unwrap();
    assert!(other.name("a\nb", false).await.is_err());

    let other_user = Principal::from_text("token:other");
    assert!(open_chats.enter(&other_user, &plans.chat.id).await.is_err(), "a chat is its owner's");
    let exported = export::to_json(&loaded.transcript, &loaded.entries().await.unwrap());
    assert_eq!(parse(&exported["entries"], NOW).unwrap(), loaded.entries().await.unwrap());
    let old = parse(&json!([{"role": "user", "content": "written long ago"}]), NOW).unwrap();
    other.import(old).await.unwrap();
    assert_eq!(spoken(&other).await[0].1, "written long ago");
}

#[tokio::test(start_paused = true)]
async fn old_turns_are_left_out_of_what_is_sent_and_kept_in_what_is_stored() {
    let mut model = FakeModel::new("m", [Turn::says(&["answer"])]);
    model.limits = ModelLimits { context_tokens: 350, output_tokens: 100 };
    let model = model.shared();
    let open_chats = open_chats(&[&model]).await;
    let mut open_chat = open_chat(&open_chats).await;
    open_chat.set_system_prompt(Some("Be brief.".to_owned())).await.unwrap();
    for _ in 0..4 {
        say(&open_chat, &format!("@m {}", "word ".repeat(60)), plain(&open_chats)).await;
    }
    let sent: Vec<Entry> = model.histories().pop().unwrap();
    assert_eq!((sent.len(), sent[0].spoken().as_str()), (4, "Be brief."), "the prompt, one old turn, the question");
    assert_eq!(open_chat.entries().await.unwrap().len(), 8);
}
