//! The loop's own behaviours, by number; each is tested more closely in `agentic_loop`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use matsu_core::clock::Clock;
use matsu_core::history::{Entry, Item, Role, validate};
use matsu_core::ports::provider::{Danger, ProviderFault};
use matsu_core::ports::tool_source::ToolAnswer;
use matsu_runtime::models::agentic_loop::{
    AgenticLoopResult, Event, LoopOptions, Spending, StopReason, execute_with_tools, execute_with_tools_blocking,
};
use matsu_testkit::fake_model::{FakeModel, Turn};
use matsu_testkit::fake_tools::FakeTools;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{open_chat, open_chats, plain, say, spoken};
use crate::agentic_loop::{kinds, options, question, results, run, timed, with_tools};

fn tools() -> Arc<FakeTools> {
    FakeTools::new()
        .answering("look", |arguments| ToolAnswer::good(arguments.to_string()))
        .answering("bad", |_| ToolAnswer::error("broken"))
        .with("hangs", Danger::ReadOnly, |_| std::future::pending())
        .shared()
}

/// Every way a loop can end, each with finished rounds before.
fn every_end() -> Vec<(StopReason, Vec<Turn>, LoopOptions)> {
    let round = || Turn::says(&["hm"]).and_calls("", "look", json!({"n": 0}));
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let with = || with_tools(tools());
    let short = || LoopOptions { time_max: Duration::from_secs(2), ..with() };
    let poor = LoopOptions { spending: Arc::new(Spending::bounded(Some(1), None)), ..with() };
    let many = (0..20).map(|n| Turn::calls("look", json!({ "n": n }))).collect();
    vec![
        (StopReason::EndTurn, vec![round(), Turn::says(&["ok"])], with()),
        (StopReason::MaxIterations, many, with()),
        (StopReason::Timeout, vec![round(), Turn::default().then_silent()], short()),
        (StopReason::Timeout, vec![round(), Turn::calls("hangs", json!({}))], short()),
        (StopReason::Cancelled, vec![round()], LoopOptions { cancel: cancelled, ..with() }),
        (StopReason::Budget, vec![round().using(5, 5)], poor),
        (StopReason::Error, vec![round(), Turn::says(&["half"]).failing(ProviderFault::Transport)], with()),
        (StopReason::Error, vec![round(), Turn::refused(ProviderFault::Auth)], with()),
        (StopReason::Error, vec![Turn::calls("look", json!({}))], with()),
    ]
}

#[tokio::test(start_paused = true)]
async fn the_callers_history_is_never_changed() {
    for (_, turns, options) in every_end() {
        let history = question();
        let before = history.clone();
        execute_with_tools(FakeModel::new("m", turns).shared(), &history, options).collect().await;
        assert_eq!(history, before);
    }
}

#[tokio::test(start_paused = true)]
async fn history_and_delta_are_valid_however_it_ends() {
    for (reason, turns, options) in every_end() {
        let result = run(FakeModel::new("m", turns).shared(), options).await;
        assert_eq!(result.stop_reason, reason, "{:?}", result.error);
        let given: Vec<_> = question().into_iter().map(|entry| entry.id).collect();
        assert!(result.history_delta.iter().all(|entry| !given.contains(&entry.id)), "only what is new");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_text_comes_before_the_stream_ends() {
    let model = FakeModel::new("m", [Turn::says(&["a", "b"]).pausing(Duration::from_secs(2))]).shared();
    let events = timed(model, options()).await;
    assert_eq!(events[0], (Duration::from_secs(2), Event::Text("a".to_owned())));
    assert!(events.last().unwrap().0 > Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn events_of_a_round_come_in_order_and_the_result_last_and_once() {
    let round = Turn::says(&["x"]).and_calls("", "look", json!({"n": 1})).and_calls("", "bad", json!({}));
    let model = FakeModel::new("m", [round, Turn::says(&["y"])]).shared();
    let mut stream = execute_with_tools(model, &question(), with_tools(tools()));
    let mut seen: Vec<&str> = Vec::new();
    let mut result: Option<Arc<AgenticLoopResult>> = None;
    while let Some(event) = stream.next().await {
        assert!(result.is_none(), "nothing comes after done");
        if let Event::Done(done) = event {
            result = Some(done);
        }
    }
    let result = result.unwrap();
    seen.extend(kinds(&result));
    assert_eq!(seen, ["text", "tool_call", "tool_call", "tool_result", "tool_result", "text"]);
}

#[tokio::test(start_paused = true)]
async fn every_call_has_an_id_of_its_own_and_its_result_carries_it() {
    let round = |n: u8| Turn::calls("look", json!({ "n": n })).and_calls("x", "look", json!({ "n": n + 1 }));
    let model = FakeModel::new("m", [round(0), round(2), Turn::says(&["ok"])]).shared();
    let result = run(model, with_tools(tools())).await;
    let mut ids = std::collections::HashSet::new();
    for item in result.history_delta.iter().flat_map(|entry| &entry.content) {
        if let Item::ToolCall { id, .. } = item {
            assert!(ids.insert(id.clone()), "{id} twice");
        }
    }
    assert_eq!(ids.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_is_an_error_result_and_the_model_is_called_again() {
    let model =
        FakeModel::new("m", [Turn::calls("bad", json!({})).and_calls("", "hangs", json!({})), Turn::says(&["ok"])])
            .shared();
    let result = run(Arc::clone(&model), with_tools(tools())).await;
    assert!(results(&result).iter().all(|(_, is_error)| *is_error));
    assert_eq!(model.histories().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn at_the_most_turns_it_is_said_and_the_next_request_is_valid() {
    let turns = (0..10).map(|n| Turn::calls("look", json!({ "n": n }))).chain([Turn::says(&["done"])]);
    let model = FakeModel::new("m", turns).shared();
    let open_chats = open_chats(&[&model]).await;
    let open_chat = open_chat(&open_chats).await;
    let with = || LoopOptions { tools: Some(tools()), ..plain(&open_chats) };
    let first = say(&open_chat, "@m look around", with()).await;
    assert!(first[0].result.error.as_ref().unwrap().message.contains("go on"));
    let second = say(&open_chat, "@m go on", with()).await;
    assert_eq!(second[0].result.final_text, "done");
    assert!(model.histories().iter().all(|history| validate(history).is_ok()));
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_is_cut_in_time_and_finished_rounds_are_kept() {
    let clock = Clock::system();
    let began = clock.instant();
    let turns = [Turn::calls("look", json!({})), Turn::default().then_silent()];
    let result = run(FakeModel::new("m", turns).shared(), with_tools(tools())).await;
    assert!(result.timed_out && clock.instant() - began <= Duration::from_secs(121));
    assert_eq!(result.history_delta.iter().map(|entry| entry.role).collect::<Vec<_>>(), [Role::Assistant, Role::Tool]);
}

#[tokio::test(start_paused = true)]
async fn without_its_tools_the_chat_goes_on_and_says_so() {
    let away = FakeTools::new().noting("the tools of files are away: cannot be started").shared();
    let model = FakeModel::new("m", [Turn::says(&["without"])]).shared();
    let open_chats = open_chats(&[&model]).await;
    let open_chat = open_chat(&open_chats).await;
    let answered = say(&open_chat, "@m hello", LoopOptions { tools: Some(away), ..plain(&open_chats) }).await;
    assert_eq!(
        (kinds(&answered[0].result), spoken(&open_chat).await[1].1.as_str()),
        (vec!["notice", "text"], "without")
    );
}

#[test]
fn the_blocking_form_works_in_plain_code_only() {
    let model = FakeModel::new("m", [Turn::says(&["hi"])]).shared();
    let history: Vec<Entry> = question();
    let result = execute_with_tools_blocking(Arc::clone(&model) as Arc<_>, &history, options()).unwrap();
    assert_eq!(result.final_text, "hi");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let refused =
        runtime.block_on(async { execute_with_tools_blocking(Arc::clone(&model) as Arc<_>, &history, options()) });
    assert!(refused.is_err() && model.histories().len() == 1);
}
