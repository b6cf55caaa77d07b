//! Every way a loop can end: what was done is kept, and the transcript is valid.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use matsu_core::clock::Clock;
use matsu_core::history::{Entry, Role};
use matsu_core::ports::provider::{Danger, ModelLimits, Price, ProviderFault, TurnEnd};
use matsu_core::ports::tool_source::ToolAnswer;
use matsu_runtime::models::agentic_loop::{
    Event, LoopOptions, Spending, StopReason, execute_with_tools, execute_with_tools_blocking,
};
use matsu_testkit::fake_model::{FakeModel, Turn};
use matsu_testkit::fake_tools::FakeTools;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{NOW, kinds, options, question, results, run, timed, with_tools};

fn looking() -> Arc<FakeTools> {
    FakeTools::new().answering("look", |arguments| ToolAnswer::good(arguments.to_string())).shared()
}

#[tokio::test(start_paused = true)]
async fn first_text_comes_before_the_stream_ends() {
    let model = FakeModel::new("m", [Turn::says(&["a", "b", "c"]).pausing(Duration::from_secs(1))]).shared();
    let events = timed(model, options()).await;
    assert_eq!(events[0], (Duration::from_secs(1), Event::Text("a".to_owned())));
    assert_eq!(events.last().unwrap().0, Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_is_cut_and_finished_rounds_are_kept() {
    let turns = [Turn::calls("look", json!({"n": 1})), Turn::says(&["well"]).then_silent()];
    let clock = Clock::system();
    let began = clock.instant();
    let options = LoopOptions { time_max: Duration::from_secs(5), ..with_tools(looking()) };
    let result = run(FakeModel::new("m", turns).shared(), options).await;
    assert!(clock.instant() - began <= Duration::from_secs(6));
    assert!(result.timed_out && result.stop_reason == StopReason::Timeout);
    let roles: Vec<Role> = result.history_delta.iter().map(|entry| entry.role).collect();
    assert_eq!(roles, [Role::Assistant, Role::Tool, Role::Assistant]);
    assert_eq!(result.history_delta[2].spoken(), "well", "what had arrived is kept");
}

#[tokio::test(start_paused = true)]
async fn at_most_so_many_turns_and_it_is_said() {
    let turns = (0..20).map(|n| Turn::calls("look", json!({ "n": n })));
    let result = run(FakeModel::new("m", turns).shared(), with_tools(looking())).await;
    assert_eq!((result.stop_reason, result.iterations_used), (StopReason::MaxIterations, 10));
    assert!(result.error.as_ref().unwrap().message.contains("10 rounds"));
    assert_eq!(result.history_delta.last().unwrap().role, Role::Tool);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_settles_the_whole_batch() {
    let tools =
        FakeTools::new()
            .answering("look", |_| ToolAnswer::good("seen"))
            .with("hangs", Danger::ReadOnly, |_| std::future::pending());
    let round = Turn::default().and_calls("h", "hangs", json!({})).and_calls("l", "look", json!({}));
    let cancel = CancellationToken::new();
    let options = LoopOptions { cancel: cancel.clone(), ..with_tools(tools.shared()) };
    let model = FakeModel::new("m", [round]).shared();
    let stop = async {
        Clock::system().sleep(Duration::from_secs(3)).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(run(model, options), stop);
    assert_eq!(result.stop_reason, StopReason::Cancelled);
    let said = results(&result);
    assert!(said[0].1 && said[0].0.contains("stopped by a person"), "{said:?}");
    assert_eq!(said[1], ("seen".to_owned(), false), "what was done is reported as done");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_mid_answer_keeps_what_came() {
    let cancel = CancellationToken::new();
    let options = LoopOptions { cancel: cancel.clone(), ..options() };
    let model = FakeModel::new("m", [Turn::says(&["half an", " answer"]).pausing(Duration::from_secs(1))]).shared();
    let mut stream = execute_with_tools(model, &question(), options);
    assert_eq!(stream.next().await, Some(Event::Text("half an".to_owned())));
    cancel.cancel();
    let result = stream.collect().await;
    assert_eq!(result.history_delta[0].spoken(), "half an");
    assert_eq!(result.stop_reason, StopReason::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_vendor_that_fails_in_mid_answer_loses_nothing_and_is_not_asked_again() {
    let turns = [Turn::calls("look", json!({})), Turn::says(&["so far"]).failing(ProviderFault::Truncated)];
    let model = FakeModel::new("m", turns).shared();
    let result = run(Arc::clone(&model), with_tools(looking())).await;
    assert_eq!((result.stop_reason, model.histories().len()), (StopReason::Error, 2));
    assert_eq!(result.history_delta[2].spoken(), "so far", "an error is not stored as the model's text");
    assert_eq!(result.error.as_ref().unwrap().code.as_str(), "PROVIDER_UNAVAILABLE");
}

#[tokio::test(start_paused = true)]
async fn before_the_first_word_a_vendor_is_asked_again_when_it_says_so() {
    let after = Some(Duration::from_secs(7));
    let turns = [
        Turn::refused(ProviderFault::RateLimited { after }),
        Turn::default().failing(ProviderFault::Server { after: None }),
        Turn::says(&["at last"]),
    ];
    let clock = Clock::system();
    let began = clock.instant();
    let result = run(FakeModel::new("m", turns).shared(), options()).await;
    assert_eq!((result.final_text.as_str(), result.iterations_used), ("at last", 1));
    assert_eq!(clock.instant() - began, Duration::from_secs(8), "7 s asked for, then 1 s");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_mended_is_not_asked_again() {
    for fault in [ProviderFault::Auth, ProviderFault::ContextOverflow, ProviderFault::BadRequest] {
        let model = FakeModel::new("m", [Turn::refused(fault)]).shared();
        let result = run(Arc::clone(&model), options()).await;
        assert_eq!((model.histories().len(), result.error.as_ref().unwrap().code), (1, fault.code()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_ends_it_and_what_it_started() {
    let spending = Arc::new(Spending::bounded(Some(100), None));
    let turns = (0..20).map(|n| Turn::calls("look", json!({ "n": n })).using(30, 5));
    let with = |turns: Vec<Turn>| {
        let mut model = FakeModel::new("m", turns);
        model.price = Some(Price { input_micros: 1_000_000, output_micros: 2_000_000 });
        model.shared()
    };
    let options = LoopOptions { spending: Arc::clone(&spending), ..with_tools(looking()) };
    let result = run(with(turns.collect()), options.clone()).await;
    assert_eq!((result.stop_reason, result.iterations_used), (StopReason::Budget, 3));
    assert_eq!((result.usage.total(), result.cost_micros), (105, Some(120)));
    let child = run(with(vec![Turn::says(&["hi"])]), options).await;
    assert_eq!((child.stop_reason, child.iterations_used), (StopReason::Budget, 0));
}

#[tokio::test(start_paused = true)]
async fn silence_and_refusal_are_said_aloud() {
    let empty = run(FakeModel::new("m", [Turn::default()]).shared(), options()).await;
    assert_eq!((kinds(&empty), empty.history_delta.len()), (vec!["notice"], 0));
    let refused = run(FakeModel::new("m", [Turn::default().ending(TurnEnd::Refused)]).shared(), options()).await;
    assert_eq!(refused.error.as_ref().unwrap().code.as_str(), "PROVIDER_REFUSED");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_history_is_refused_before_the_model_is_asked() {
    let model = FakeModel::new("m", [Turn::says(&["hi"])]).shared();
    let history = [Entry::user("u", NOW), Entry::system("late", NOW)];
    let result = execute_with_tools(Arc::clone(&model) as Arc<_>, &history, options()).collect().await;
    assert!(result.error.as_ref().unwrap().message.contains("entry 1"));
    assert!(model.histories().is_empty() && result.history_delta.is_empty());
}

#[tokio::test(start_paused = true)]
async fn old_turns_are_left_out_when_the_window_is_full() {
    let mut model = FakeModel::new("m", [Turn::says(&["ok"])]);
    model.limits = ModelLimits { context_tokens: 400, output_tokens: 100 };
    let model = model.shared();
    let mut history = vec![Entry::system("s", NOW), Entry::user("x".repeat(4_000), NOW)];
    history.push(Entry::assistant("m", vec![matsu_core::history::Item::text("old")], NOW));
    history.push(Entry::user("new", NOW));
    let result = execute_with_tools(Arc::clone(&model) as Arc<_>, &history, options()).collect().await;
    let sent: Vec<String> = model.histories()[0].iter().map(Entry::spoken).collect();
    assert_eq!((sent, result.final_text.as_str()), (vec!["s".to_owned(), "new".to_owned()], "ok"));
}

#[test]
fn blocking_works_from_plain_code_and_refuses_inside_a_runtime() {
    let model = FakeModel::new("m", [Turn::says(&["hi"])]).shared();
    let result = execute_with_tools_blocking(Arc::clone(&model) as Arc<_>, &question(), options()).unwrap();
    assert_eq!(result.final_text, "hi");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let inside = runtime.block_on(async {
        execute_with_tools_blocking(Arc::clone(&model) as Arc<_>, &question(), options()).unwrap_err()
    });
    assert!(inside.to_string().contains("inside an async runtime"));
    assert_eq!(model.histories().len(), 1, "nothing was done");
}
