//! The tools through their dispatch, as every transport calls them.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use matsu_core::job::{JobEnd, JobKind};
use matsu_core::ports::store::ReadTasks;
use matsu_core::principal::Principal;
use matsu_core::task::{StopMode, StopReason, TaskKind, TaskStatus};
use matsu_runtime::dispatch::{self, Reply};
use matsu_runtime::tool::native_task::{Arrived, DeferredWaits, NativeLookup};
use matsu_runtime::tool::{NativeTasks, ToolContext, reply_check};
use matsu_runtime::tools::TOOLS;
use matsu_runtime::worker::Service;
use matsu_runtime::{Bodies, InstanceId, Runtime};

use crate::fixtures::{finished, job, me, memory, runtime, runtime_with, scripted, sleep_job, stop, submit};

fn context(runtime: &Runtime, tasks: NativeTasks) -> ToolContext {
    let instance = Some(InstanceId::from_text("client"));
    ToolContext { instance, tasks, ..ToolContext::new(runtime.clone(), me()) }
}

/// Calls a tool; every answer must fit the schema its tool promises.
async fn call(cx: &ToolContext, name: &str, arguments: Value) -> Value {
    let entry = TOOLS.iter().find(|tool| tool.name == name).expect("a tool of that name");
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    match dispatch::call(entry, cx, arguments).await {
        Reply::Done { body, is_error } => {
            if let Err(error) = reply_check::check(entry.output_schema(), &body) {
                panic!("{name} answered {body}, which does not fit its schema: {error}");
            }
            assert_eq!(body["ok"], json!(!is_error));
            body
        }
        Reply::Interrupted { body, .. } => body,
        Reply::Task(id) => json!({ "native": id }),
    }
}

#[tokio::test(start_paused = true)]
async fn one_task_is_followed_from_queue_to_result() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Unknown);
    let task = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 20_000)]).await;
    let ask = |timeout: u64| json!({ "task_id": task.id, "timeout": timeout });
    assert_eq!(call(&cx, "get_task_status", ask(0)).await["status"], "queued");
    let _service = Service::start(&runtime);
    let early = call(&cx, "get_task_status", ask(5)).await;
    assert_eq!((&early["status"], &early["returned_because"]), (&json!("running"), &json!("timeout")));
    assert!(early["elapsed_time"].as_f64().unwrap() >= 4.9, "{early}");
    let late = call(&cx, "get_task_status", ask(40)).await;
    assert_eq!((&late["status"], &late["returned_because"]), (&json!("completed"), &json!("terminal")));
    assert!(late["result"].is_string() && late["next"]["since"] == late["revision"], "{late}");
    let waited = late["waited_ms"].as_u64().unwrap();
    assert!((14_000..16_500).contains(&waited), "woken at the end, not at the deadline: {waited}");
}

#[tokio::test(start_paused = true)]
async fn thirty_minutes_of_waiting_cost_few_small_calls() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Unknown);
    let _service = Service::start(&runtime);
    let task = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 1_800_000)]).await;
    let mut calls = 0;
    let mut since = json!(1);
    loop {
        calls += 1;
        let arguments = json!({ "task_id": task.id, "timeout": 600, "since": since });
        let reply = call(&cx, "get_task_status", arguments).await;
        if reply["status"] == "completed" {
            break;
        }
        assert!(reply.to_string().len() <= 400, "{} bytes: {reply}", reply.to_string().len());
        if reply["returned_because"] == "timeout" {
            assert_eq!(reply["hold_max"], 50, "the reply says how long it can be held");
        }
        since = reply["next"]["since"].clone();
    }
    assert!(calls <= 37, "{calls} calls");
}

#[tokio::test(start_paused = true)]
async fn several_tasks_return_on_the_first_news() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Unknown);
    let _service = Service::start(&runtime);
    let slow = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 60_000)]).await;
    let quick = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 3_000)]).await;
    let since = json!({ slow.id.as_str(): 2, quick.id.as_str(): 2 });
    let ids = json!({ "task_ids": [slow.id, quick.id], "timeout": 50, "since": since });
    let reply = call(&cx, "get_task_status", ids).await;
    assert_eq!(reply["changed"], json!([quick.id]));
    assert_eq!(reply["tasks"][0]["task_id"], json!(quick.id), "news first");
    assert_eq!((&reply["tasks"][0]["status"], &reply["tasks"][1]["status"]), (&json!("completed"), &json!("running")));
    assert!(reply["next"]["since"][slow.id.as_str()].as_i64().unwrap() >= 2);
    let wrong = call(&cx, "get_task_status", json!({ "task_ids": [slow.id, quick.id], "since": 3 })).await;
    assert_eq!((&wrong["error_code"], &wrong["details"]["param_name"]), (&json!("INVALID_PARAMS"), &json!("since")));
    let both = call(&cx, "get_task_status", json!({ "task_ids": [slow.id], "task_id": quick.id })).await;
    assert_eq!(both["error_code"], "INVALID_PARAMS");
    let gone = call(&cx, "get_task_status", json!({ "task_ids": [slow.id, "task_nope"], "timeout": 50 })).await;
    assert_eq!(gone["changed"], json!(["task_nope"]).as_array().map(|a| json!(a)).unwrap());
    assert_eq!(gone["tasks"][0]["status"], "not_found");
}

#[tokio::test(start_paused = true)]
async fn without_ids_open_tasks_and_unread_results_are_listed_and_waited_for() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Unknown);
    let _service = Service::start(&runtime);
    let done = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 0)]).await;
    finished(&runtime, &done.id).await;
    let open = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 10_000)]).await;
    let list = call(&cx, "get_task_status", json!({})).await;
    let lines: Vec<_> =
        list["tasks"].as_array().unwrap().iter().map(|line| (&line["task_id"], &line["unread"])).collect();
    assert_eq!(lines, [(&json!(open.id), &json!(false)), (&json!(done.id), &json!(true))]);
    assert_eq!(list["total"], 2);
    let woken = call(&cx, "get_task_status", json!({ "timeout": 50, "since": list["next"]["since"] })).await;
    assert_eq!(woken["tasks"][0]["status"], "completed");
    assert!(woken["waited_ms"].as_u64().unwrap() < 11_000);
    call(&cx, "get_task_status", json!({ "task_id": done.id })).await;
    clock.sleep(Duration::from_secs(3_700)).await;
    let later = call(&cx, "get_task_status", json!({})).await;
    assert_eq!(later["total"], 1, "what was read an hour ago is not listed any more: {later}");
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_what_runs_and_what_is_unread_before_what_was_read() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Unknown);
    let _service = Service::start(&runtime);
    let running = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 20_000)]).await;
    let unread = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 0)]).await;
    finished(&runtime, &unread.id).await;
    for _ in 0..25 {
        let read = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 0)]).await;
        finished(&runtime, &read.id).await;
        call(&cx, "get_task_status", json!({ "task_id": read.id })).await;
    }
    let list = call(&cx, "get_task_status", json!({})).await;
    let ids: Vec<_> = list["tasks"].as_array().unwrap().iter().map(|line| &line["task_id"]).collect();
    assert_eq!((ids.len(), &ids[..2]), (20, &[&json!(running.id), &json!(unread.id)][..]), "{list}");
    assert_eq!((&list["total"], &list["next"]["after"]), (&json!(2), &json!(20)), "{list}");
    let rest = call(&cx, "get_task_status", json!({ "after": 20 })).await;
    assert_eq!((rest["tasks"].as_array().unwrap().len(), rest["next"].get("after")), (7, None), "{rest}");
    // A wait over the list ends with the task that runs, not with those that have ended long ago.
    let waited = call(&cx, "get_task_status", json!({ "timeout": 40, "since": list["next"]["since"] })).await;
    assert!(waited["waited_ms"].as_u64().unwrap() > 10_000, "{waited}");
    assert_eq!(
        (&waited["tasks"][0]["task_id"], &waited["tasks"][0]["status"]),
        (&json!(running.id), &json!("completed"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_idle_research_task_says_that_nothing_is_queued() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Unknown);
    let _service = Service::start(&runtime);
    let task = submit(&runtime, TaskKind::Research, Vec::new()).await;
    let said = call(&cx, "get_task_status", json!({ "task_id": task.id, "timeout": 40 })).await;
    assert_eq!((&said["status"], &said["returned_because"]), (&json!("idle"), &json!("idle")), "{said}");
    assert!(said["status_message"].as_str().unwrap().contains("nothing is queued"), "{said}");
    let searched = submit(&runtime, TaskKind::Research, vec![sleep_job(&clock, 0)]).await;
    finished(&runtime, &searched.id).await;
    let said = call(&cx, "get_task_status", json!({ "task_id": searched.id })).await;
    assert!(said["status_message"].as_str().unwrap().starts_with("1 of 1 jobs done, nothing is queued"), "{said}");
    assert!(said.get("result").is_none(), "the output of a job is no result of a research task: {said}");
    assert_eq!(said["status"], "finished", "{said}");
    let list = call(&cx, "get_task_status", json!({})).await;
    let words: Vec<&str> = list["tasks"].as_array().unwrap().iter().map(|l| l["status"].as_str().unwrap()).collect();
    assert_eq!(words, ["finished", "idle"], "{list}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_passes_no_since_gets_only_undelivered_changes() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Unknown);
    let _service = Service::start(&runtime);
    let task = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 8_000)]).await;
    let ask = json!({ "task_id": task.id, "timeout": 20 });
    let look = call(&cx, "get_task_status", json!({ "task_id": task.id })).await;
    assert_eq!(look["waited_ms"], 0, "a look is no wait: {look}");
    let first = call(&cx, "get_task_status", ask.clone()).await;
    assert_eq!(first["status"], "completed", "a first wait waits: {first}");
    assert!(first["waited_ms"].as_u64().unwrap() > 5_000, "{first}");
}

#[tokio::test(start_paused = true)]
async fn a_long_result_is_read_in_parts_and_its_tail_alone() {
    let (store, clock) = memory().await;
    let text: String = (0..3_000).map(|line| format!("line {line} 待つ\n")).collect();
    let output = text.clone();
    let body = scripted(JobKind::AgentRun, move |_| {
        let output_json = output.clone();
        async move { JobEnd::Completed { output_json } }
    });
    let limits = matsu_core::slot::SlotLimits::for_cores(2);
    let runtime = runtime_with(&store, clock, limits, Bodies::default().with(body));
    let cx = context(&runtime, NativeTasks::Unknown);
    let _service = Service::start(&runtime);
    let task = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::AgentRun, "{}")]).await;
    finished(&runtime, &task.id).await;
    let mut read = String::new();
    let mut offset = 0;
    loop {
        let reply = call(&cx, "get_task_status", json!({ "task_id": task.id, "output_offset": offset })).await;
        let part = reply["result"].as_str().unwrap();
        assert!(reply.to_string().len() < 20_000);
        match reply["next_output_offset"].as_u64() {
            Some(next) => {
                read.push_str(part.rsplit_once("\n[… ").unwrap().0);
                offset = next;
            }
            None => {
                read.push_str(part);
                break;
            }
        }
    }
    assert_eq!(read, text);
    let tail = call(&cx, "get_task_status", json!({ "task_id": task.id, "tail": 2 })).await;
    assert_eq!(tail["tail"], "line 2998 待つ\nline 2999 待つ");
}

#[tokio::test(start_paused = true)]
async fn failures_are_successful_reads_and_other_users_see_nothing() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Unknown);
    let _service = Service::start(&runtime);
    let bad = job(&clock, JobKind::Sleep, r#"{"ms":"a"}"#);
    let task = submit(&runtime, TaskKind::Agent, vec![bad]).await;
    finished(&runtime, &task.id).await;
    let reply = call(&cx, "get_task_status", json!({ "task_id": task.id })).await;
    assert_eq!((&reply["status"], &reply["error_code"]), (&json!("failed"), &json!("INVALID_PARAMS")));
    let other_user = ToolContext { principal: Principal::user("other"), ..context(&runtime, NativeTasks::Unknown) };
    let seen = call(&other_user, "get_task_status", json!({ "task_id": task.id, "timeout": 50 })).await;
    assert_eq!(seen["status"], "not_found");
    let refused = call(&other_user, "cancel_task", json!({ "task_id": task.id })).await;
    assert_eq!(refused["error_code"], "TASK_NOT_FOUND");
    assert_eq!(call(&other_user, "get_task_status", json!({})).await["total"], 0);
}

#[tokio::test(start_paused = true)]
async fn cancelling_says_what_happened_and_twice_is_harmless() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Unknown);
    let _service = Service::start(&runtime);
    let jobs = (0..3).map(|_| sleep_job(&clock, 600_000)).collect();
    let task = submit(&runtime, TaskKind::Agent, jobs).await;
    clock.sleep(Duration::from_secs(1)).await;
    let first = call(&cx, "cancel_task", json!({ "task_id": task.id, "mode": "immediate" })).await;
    assert_eq!((&first["status"], &first["mode"]), (&json!("cancelled"), &json!("immediate")));
    assert_eq!(first["cancelled"], json!({ "queued": 1, "running": 2 }));
    let again = call(&cx, "cancel_task", json!({ "task_id": task.id })).await;
    assert_eq!((&again["status"], &again["already_ended"]), (&json!("cancelled"), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_becomes_a_task_that_ends_when_something_arrives() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Understood);
    let _service = Service::start(&runtime);
    let task = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 20_000)]).await;
    let ask = json!({ "task_id": task.id, "timeout": 600, "since": 2 });
    let reply = call(&cx, "get_task_status", ask.clone()).await;
    let wait = matsu_core::id::TaskId::from_text(reply["native"].as_str().expect("a native task"));
    let look = async || match DeferredWaits::of(&runtime)
        .native_task(&me(), &wait, Duration::ZERO, &CancellationToken::new())
        .await
    {
        Ok(NativeLookup::Found(native)) => native,
        other => panic!("{other:?}"),
    };
    assert_eq!(look().await.task.status, TaskStatus::Running);
    clock.sleep(Duration::from_secs(18)).await;
    let ended = look().await;
    assert_eq!(
        (ended.task.status, ended.arrived),
        (
            TaskStatus::Completed,
            Some(Arrived::Tasks {
                tool: "get_task_status".to_owned(),
                ids: vec![task.id.clone()],
                since: [(task.id.clone(), 2)].into(),
            })
        )
    );
    assert_eq!(look().await.task.status, TaskStatus::Completed, "and stays so");
    let list = call(&cx, "get_task_status", json!({})).await;
    assert_eq!(list["tasks"][0]["unread"], true, "the wait consumed nothing, and is itself not listed: {list}");
    assert_eq!(list["total"], 1);

    let other = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 3_600_000)]).await;
    let reply = call(&cx, "get_task_status", json!({ "task_id": other.id, "timeout": 600, "since": 2 })).await;
    let wait = matsu_core::id::TaskId::from_text(reply["native"].as_str().expect("a native task"));
    for _ in 0..2 {
        stop(&runtime, &wait, StopMode::Immediate, StopReason::UserCancelled).await;
    }
    let left = call(&cx, "get_task_status", json!({ "task_id": other.id })).await;
    assert_eq!(left["status"], "running", "cancelling the wait ends nothing else");
}

#[tokio::test(start_paused = true)]
async fn a_native_wait_ends_by_itself_after_a_day() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Understood);
    let task = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 1)]).await;
    let reply = call(&cx, "get_task_status", json!({ "task_id": task.id, "timeout": 600, "since": 1 })).await;
    let wait = matsu_core::id::TaskId::from_text(reply["native"].as_str().expect("a native task"));
    clock.sleep(Duration::from_secs(24 * 3_600 - 60)).await;
    let look = async || match DeferredWaits::of(&runtime)
        .native_task(&me(), &wait, Duration::ZERO, &CancellationToken::new())
        .await
    {
        Ok(NativeLookup::Found(native)) => native.task.status,
        other => panic!("{other:?}"),
    };
    assert_eq!(look().await, TaskStatus::Running);
    clock.sleep(Duration::from_secs(120)).await;
    assert_eq!(look().await, TaskStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_native_wait_is_swept_away() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let cx = context(&runtime, NativeTasks::Understood);
    let task = submit(&runtime, TaskKind::Research, vec![]).await;
    let reply = call(&cx, "get_task_status", json!({ "task_id": task.id, "timeout": 600, "since": 1 })).await;
    assert!(reply["native"].is_null(), "an idle task has nothing to wait for: {reply}");
    let task = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 1)]).await;
    let reply = call(&cx, "get_task_status", json!({ "task_id": task.id, "timeout": 600, "since": 1 })).await;
    let wait = matsu_core::id::TaskId::from_text(reply["native"].as_str().expect("a native task"));
    clock.sleep(Duration::from_secs(24 * 3_600)).await;
    let _service = Service::start(&runtime);
    clock.sleep(Duration::from_secs(120)).await;
    let found = store.run(ReadTasks(vec![wait.clone()])).await.unwrap();
    assert!(found.iter().all(|task| task.status == TaskStatus::Completed), "{found:?}");
}
