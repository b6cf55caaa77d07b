//! Tools that go on as tasks of their server: the loop does not wait for them while there is something else to do.

use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::history::Role;
use matsu_core::ports::provider::Danger;
use matsu_core::ports::tool_source::{ToolAnswer, ToolReply};
use matsu_runtime::models::agentic_loop::{LoopOptions, StopReason};
use matsu_testkit::fake_model::{FakeModel, Turn};
use matsu_testkit::fake_tools::FakeTools;
use serde_json::json;

use super::{results, run, with_tools};

fn slow() -> Arc<FakeTools> {
    let later = |_| async {
        ToolReply::Later(Box::pin(async {
            Clock::system().sleep(Duration::from_secs(90)).await;
            ToolAnswer::good("after all")
        }))
    };
    FakeTools::new().with("slow", Danger::ReadOnly, later).answering("quick", |_| ToolAnswer::good("at once")).shared()
}

#[tokio::test(start_paused = true)]
async fn its_result_arrives_as_a_later_tool_result() {
    let turns = [
        Turn::calls("slow", json!({})).and_calls("", "quick", json!({})),
        Turn::says(&["The slow one still runs."]),
        Turn::says(&["Now I know."]),
    ];
    let model = FakeModel::new("m", turns).shared();
    let result = run(Arc::clone(&model), with_tools(slow())).await;
    assert_eq!(results(&result), [("at once".to_owned(), false), ("after all".to_owned(), false)]);
    assert_eq!(result.final_text, "Now I know.");
    let roles: Vec<Role> = result.history_delta.iter().map(|entry| entry.role).collect();
    assert_eq!(roles, [Role::Assistant, Role::Tool, Role::Assistant, Role::Tool, Role::Assistant]);
}

#[tokio::test(start_paused = true)]
async fn it_is_settled_when_the_time_is_over() {
    let turns = [Turn::calls("slow", json!({})), Turn::says(&["It runs."])];
    let options = LoopOptions { time_max: Duration::from_secs(30), ..with_tools(slow()) };
    let result = run(FakeModel::new("m", turns).shared(), options).await;
    assert_eq!(result.stop_reason, StopReason::Timeout);
    let said = results(&result);
    assert!(said[0].1 && said[0].0.contains("the time of this answer was over"), "{said:?}");
}
