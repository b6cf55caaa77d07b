//! Rounds of tool calls.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::history::Item;
use matsu_core::limits::TOOL_OUTPUT_BYTES_MAX;
use matsu_core::ports::provider::Danger;
use matsu_core::ports::tool_source::{ToolAnswer, ToolReply};
use matsu_runtime::models::agentic_loop::{Event, StopReason};
use matsu_testkit::fake_model::{FakeModel, Turn};
use matsu_testkit::fake_tools::FakeTools;
use serde_json::json;

use super::{kinds, results, run, timed, with_tools};

#[tokio::test(start_paused = true)]
async fn events_come_in_order_and_done_once() {
    let tools = FakeTools::new().answering("look", |arguments| ToolAnswer::good(arguments.to_string())).shared();
    let turns = [
        Turn::says(&["Let ", "me see."]).and_calls("a", "look", json!({"n": 1})).and_calls(
            "b",
            "look",
            json!({"n": 2}),
        ),
        Turn::says(&["Two."]),
    ];
    let result = run(FakeModel::new("m", turns).shared(), with_tools(tools)).await;
    let wanted = ["text", "text", "tool_call", "tool_call", "tool_result", "tool_result", "text"];
    assert_eq!(kinds(&result), wanted);
    assert_eq!(results(&result), [("{\"n\":1}".to_owned(), false), ("{\"n\":2}".to_owned(), false)]);
    assert_eq!((result.final_text.as_str(), result.iterations_used), ("Two.", 2));
    assert_eq!((result.stop_reason, &result.error), (StopReason::EndTurn, &None));
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_round_run_at_once_four_at_most_and_are_reported_in_call_order() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let tools = FakeTools::new().with("slow", Danger::ReadOnly, move |request| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let n = request.arguments["n"].as_u64().unwrap();
            // The first takes longest, so that the others are done before it.
            Clock::system().sleep(Duration::from_secs(10 - n)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            ToolReply::Now(ToolAnswer::good(n.to_string()))
        }
    });
    let round = (0..6).fold(Turn::default(), |turn, n| turn.and_calls("", "slow", json!({ "n": n })));
    let events = timed(FakeModel::new("m", [round, Turn::says(&["ok"])]).shared(), with_tools(tools.shared())).await;
    let reported: Vec<String> = events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::ToolResult { content, .. } => Some(content.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(reported, ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(seen.load(Ordering::SeqCst), 4);
    let took = events.last().unwrap().0;
    assert!(took < Duration::from_secs(15), "six calls of 5 to 10 s took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn ids_are_minted_where_the_model_gives_none_or_the_same() {
    let tools = FakeTools::new().answering("look", |arguments| ToolAnswer::good(arguments.to_string())).shared();
    let same = || Turn::default().and_calls("x", "look", json!({"n": 3})).and_calls("x", "look", json!({"n": 4}));
    let turns =
        [Turn::calls("look", json!({"n": 1})).and_calls("", "look", json!({"n": 2})), same(), Turn::says(&["ok"])];
    let result = run(FakeModel::new("m", turns).shared(), with_tools(tools)).await;
    let items = || result.history_delta.iter().flat_map(|entry| &entry.content);
    let calls: Vec<(String, String)> = items()
        .filter_map(|item| match item {
            Item::ToolCall { id, arguments, .. } => Some((id.clone(), arguments.to_string())),
            _ => None,
        })
        .collect();
    let answers: Vec<(String, String)> = items()
        .filter_map(|item| match item {
            Item::ToolResult { id, content, .. } => Some((id.clone(), content.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(calls, answers, "each result carries its own call's id");
    assert_eq!(calls.iter().map(|call| &call.0).collect::<HashSet<_>>().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_hangs_or_is_not_there_is_an_error_result_and_the_model_goes_on() {
    let tools = FakeTools::new().answering("bad", |_| ToolAnswer::error("out of order")).with(
        "hangs",
        Danger::ReadOnly,
        |_| std::future::pending(),
    );
    let turn = Turn::calls("bad", json!({}))
        .and_calls("", "hangs", json!({}))
        .and_calls("", "nowhere", json!({}))
        .and_calls("", "bad", json!("{broken"));
    let model = FakeModel::new("m", [turn, Turn::says(&["I see."])]).shared();
    let result = run(Arc::clone(&model), with_tools(tools.shared())).await;
    let said = results(&result);
    for ((content, is_error), words) in
        said.iter().zip(["out of order", "no progress for 60 s", "no tool \"nowhere\"", "could not be read"])
    {
        assert!(*is_error && content.contains(words), "{words}: {content}");
    }
    assert_eq!((result.final_text.as_str(), model.histories().len()), ("I see.", 2));
}

#[tokio::test(start_paused = true)]
async fn progress_keeps_a_slow_tool_alive() {
    let tools = FakeTools::new().with("slow", Danger::ReadOnly, |request| async move {
        for _ in 0..3 {
            Clock::system().sleep(Duration::from_secs(30)).await;
            (request.alive)();
        }
        ToolReply::Now(ToolAnswer::good("done"))
    });
    let result = run(
        FakeModel::new("m", [Turn::calls("slow", json!({})), Turn::says(&["ok"])]).shared(),
        with_tools(tools.shared()),
    )
    .await;
    assert_eq!(results(&result), [("done".to_owned(), false)]);
}

#[tokio::test(start_paused = true)]
async fn the_same_call_three_times_in_a_row_ends_it() {
    let tools = FakeTools::new().answering("look", |_| ToolAnswer::good("nothing")).shared();
    let result =
        run(FakeModel::new("m", [Turn::calls("look", json!({"q": 1}))]).shared(), with_tools(Arc::clone(&tools))).await;
    assert_eq!((result.stop_reason, tools.called().len()), (StopReason::Error, 2));
    let error = result.error.as_ref().unwrap();
    assert!(error.message.contains("three times in a row") && error.code.as_str() == "LOOP_REPEATS", "{error}");
}

#[tokio::test(start_paused = true)]
async fn long_output_is_cut_and_can_be_read_on() {
    let tools =
        FakeTools::new().answering("dump", |_| ToolAnswer::good("x".repeat(TOOL_OUTPUT_BYTES_MAX + 10))).shared();
    let turns = [
        Turn::default().and_calls("c1", "dump", json!({})),
        Turn::calls("read_tool_output", json!({"id": "c1", "offset": TOOL_OUTPUT_BYTES_MAX})),
        Turn::says(&["ok"]),
    ];
    let model = FakeModel::new("m", turns).shared();
    let result = run(Arc::clone(&model), with_tools(tools)).await;
    let said = results(&result);
    assert!(said[0].0.len() < TOOL_OUTPUT_BYTES_MAX + 300 && said[0].0.contains("read_tool_output"));
    assert_eq!(said[1], ("x".repeat(10), false));
    let offered = |nth: usize| model.requests()[nth].tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>();
    assert_eq!(
        (offered(0), offered(1)),
        (vec!["dump".to_owned()], vec!["dump".to_owned(), "read_tool_output".to_owned()])
    );
}
