//! People are asked, several at once, and the clock waits for them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::ports::provider::{Danger, ToolSpec};
use matsu_core::ports::tool_source::{ToolAnswer, ToolReply};
use matsu_runtime::models::agentic_loop::{Approver, ByDanger, Decision, LoopOptions, PendingCall, Policy, StopReason};
use matsu_testkit::fake_model::{FakeModel, Turn};
use matsu_testkit::fake_tools::FakeTools;
use serde_json::json;
use tokio::sync::Barrier;

use super::{kinds, results, run, with_tools};

/// Decides only when two calls wait at the same time.
struct TwoAtOnce(Barrier);

#[async_trait]
impl Approver for TwoAtOnce {
    fn policy(&self, tool: &ToolSpec) -> Policy {
        if &*tool.name == "never" { Policy::Deny } else { ByDanger::of(tool.danger) }
    }

    async fn ask(&self, call: PendingCall) -> Decision {
        self.0.wait().await;
        Clock::system().sleep(Duration::from_secs(3_600)).await;
        if call.arguments["n"] == 1 { Decision::Granted } else { Decision::Denied("not that one".to_owned()) }
    }
}

fn tools() -> FakeTools {
    let done = |_| async { ToolReply::Now(ToolAnswer::good("gone")) };
    FakeTools::new().with("delete", Danger::Destructive, done).with("never", Danger::ReadOnly, done)
}

#[tokio::test(start_paused = true)]
async fn several_wait_at_once_and_the_clock_stands_still() {
    let round = Turn::calls("delete", json!({"n": 1})).and_calls("", "delete", json!({"n": 2})).and_calls(
        "",
        "never",
        json!({}),
    );
    let approver = Arc::new(TwoAtOnce(Barrier::new(2)));
    let tools = tools().shared();
    let options = LoopOptions { approver, ..with_tools(Arc::clone(&tools) as Arc<_>) };
    let result = run(FakeModel::new("m", [round, Turn::says(&["ok"])]).shared(), options).await;
    assert_eq!(result.stop_reason, StopReason::EndTurn, "an hour with a person is not over the time");
    assert_eq!(kinds(&result)[..5], ["tool_call", "tool_call", "tool_call", "asked", "asked"]);
    let said = results(&result);
    assert_eq!(said[0], ("gone".to_owned(), false));
    assert!(said[1].0.contains("not that one") && said[2].0.contains("not allowed"), "{said:?}");
    assert_eq!(tools.called().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_destructive_call_is_not_run_when_no_person_can_be_asked() {
    let tools = tools().shared();
    let turns = [Turn::calls("delete", json!({})), Turn::says(&["ok"])];
    let result = run(FakeModel::new("m", turns).shared(), with_tools(Arc::clone(&tools))).await;
    assert!(results(&result)[0].0.contains("cannot be given here"));
    assert!(tools.called().is_empty());
}
