//! Several models that answer at once, in one chat and in many.

use std::time::Duration;

use futures_util::future::join_all;
use matsu_core::history::{Item, validate};
use matsu_core::ports::tool_source::ToolAnswer;
use matsu_core::transcript::ChatPlace;
use matsu_runtime::models::agentic_loop::{Event, LoopOptions};
use matsu_testkit::fake_model::{FakeModel, Turn};
use matsu_testkit::fake_tools::FakeTools;
use serde_json::json;

use super::{open_chat, open_chats, plain, say, spoken};
use crate::fixtures::me;

#[tokio::test(start_paused = true)]
async fn parallel_calls_of_one_tool_keep_their_results_over_a_save_and_load() {
    // Both models number their calls alike, as gateways do.
    let turn =
        || Turn::default().and_calls("call_0", "look", json!({"n": 1})).and_calls("call_1", "look", json!({"n": 2}));
    let one = FakeModel::new("one", [turn(), Turn::says(&["ok"])]).shared();
    let two = FakeModel::new("two", [turn(), Turn::says(&["ok"])]).shared();
    let open_chats = open_chats(&[&one, &two]).await;
    let open_chat = open_chat(&open_chats).await;
    let tools = FakeTools::new().answering("look", |arguments| ToolAnswer::good(arguments.to_string())).shared();
    say(&open_chat, "@all look", LoopOptions { tools: Some(tools), ..plain(&open_chats) }).await;
    let loaded = open_chats.enter(&me(), open_chat.id()).await.unwrap().entries().await.unwrap();
    assert_eq!((validate(&loaded), loaded == open_chat.entries().await.unwrap()), (Ok(()), true));
    let items: Vec<&Item> = loaded.iter().flat_map(|entry| &entry.content).collect();
    let mut pairs = 0;
    for item in &items {
        let Item::ToolCall { id, arguments, .. } = item else { continue };
        let result = items.iter().find_map(|other| match other {
            Item::ToolResult { id: of, content, .. } if of == id => Some(content.clone()),
            _ => None,
        });
        assert_eq!(result, Some(arguments.to_string()));
        pairs += 1;
    }
    assert_eq!(pairs, 4);
}

#[tokio::test(start_paused = true)]
async fn chats_do_not_delay_or_see_each_other() {
    let slow = FakeModel::new("slow", [Turn::says(&["s1", "s2"]).pausing(Duration::from_secs(5))]).shared();
    let quick = FakeModel::new("quick", [Turn::says(&["q"]).pausing(Duration::from_millis(10))]).shared();
    let open_chats = open_chats(&[&slow, &quick]).await;
    let owner = me();
    let chats = join_all((0..50).map(|_| open_chats.open(&owner, &[], ChatPlace::Page))).await;
    let answers = chats.iter().enumerate().map(|(n, open_chat)| {
        let (open_chat, open_chats) = (open_chat.as_ref().unwrap(), &open_chats);
        async move {
            let name = if n == 0 { "slow" } else { "quick" };
            let posted = open_chat.post(format!("@{name} secret {n}").as_str()).await.unwrap();
            let began = open_chats.clock.instant();
            let mut first = None;
            let mut tell = |_: &str, event: &Event| {
                if matches!(event, Event::Text(_)) && first.is_none() {
                    first = Some(open_chats.clock.instant() - began);
                }
            };
            open_chat.answer(&posted, plain(open_chats), &mut tell).await.unwrap();
            first.unwrap()
        }
    });
    let firsts = join_all(answers).await;
    assert_eq!(firsts[0], Duration::from_secs(5));
    assert!(firsts[1..].iter().all(|first| *first <= Duration::from_millis(50)), "{firsts:?}");
    for (n, open_chat) in chats.iter().enumerate() {
        let said = spoken(open_chat.as_ref().unwrap()).await;
        assert!(said.len() == 2 && said[0].1.ends_with(&format!("secret {n}")), "{said:?}");
    }
    assert!(quick.histories().iter().all(|history| history.len() == 1), "no model sees another chat");
}
