//! Pages that need a login: one item, parked searches, and how they go on.

use std::time::Duration;

use serde_json::json;

use matsu_core::limits::AUTH_KEPT;
use matsu_core::ports::fetcher::FetchOutcome;
use matsu_core::research::auth::AuthType;
use matsu_testkit::web::CannedResponse;

use super::lab::{Client, Lab, text};

fn closed() -> CannedResponse {
    CannedResponse::Gives(FetchOutcome::NeedsAuth { auth_type: AuthType::Login })
}

/// One open page and one closed one, searched by two queries.
async fn lab() -> (Lab, Client, String) {
    let lab = Lab::open().await;
    lab.web
        .page("https://open.org/", [text("The open page speaks.", "an open page")])
        .page("https://closed.org/", [closed(), closed(), text("The closed page speaks.", "a closed page")]);
    lab.web.results("q", &["https://closed.org/", "https://open.org/"]);
    lab.web.results("r", &["https://closed.org/"]);
    let client = lab.client("one");
    let task = client.task(None).await;
    (lab, client, task)
}

#[tokio::test(start_paused = true)]
async fn a_needed_login_parks_its_searches_and_a_finished_one_lets_them_go_on() {
    let (lab, client, task) = lab().await;
    let _service = lab.start();
    let queued = client.queue(&task, &["q", "r"]).await;
    let status = loop {
        let said = client.call("get_status", json!({ "task_id": task, "wait": 30, "wait_for": "any" })).await;
        if said["searches_by_status"]["awaiting_auth"] == 2 {
            break client.status(&task).await;
        }
    };
    assert_eq!(status["auth_queue"]["pending_count"], 1, "one item for one address: {status}");
    assert_eq!(status["auth_queue"]["by_auth_type"]["login"], 1);
    assert_eq!(status["metrics"]["total_pages"], 1, "the others went on");
    assert!(status["waiting_for"].to_string().contains("2 searches awaiting a login"));
    let mut id = String::new();
    for group_by in ["none", "domain", "type"] {
        let said = client.call("get_auth_queue", json!({ "task_id": task, "group_by": group_by })).await;
        let item = match group_by {
            "none" => said["items"][0].clone(),
            "domain" => said["groups"]["closed.org"][0].clone(),
            _ => said["groups"]["login"][0].clone(),
        };
        id = item["queue_id"].as_str().expect("an id in every grouping").to_owned();
        assert_eq!(item["blocked"].as_array().unwrap().len(), 2);
    }
    let resolve = json!({ "target": "item", "queue_id": id, "action": "complete" });
    let said = client.call("resolve_auth", resolve.clone()).await;
    let mut requeued: Vec<_> = said["requeued_jobs"].as_array().unwrap().clone();
    requeued.sort_by_key(ToString::to_string);
    let mut ids = queued["search_ids"].as_array().unwrap().clone();
    ids.sort_by_key(ToString::to_string);
    assert_eq!(requeued, ids, "precisely those");
    assert_eq!(client.call("resolve_auth", resolve).await["error_code"], "RESOURCE_NOT_FOUND");
    client.all_done(&task).await;
    assert!(client.materials(&task).await.to_string().contains("The closed page speaks."));
    assert_eq!(client.call("get_auth_queue", json!({})).await["total_count"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_skipped_login_ends_those_fetches() {
    let (lab, client, task) = lab().await;
    let _service = lab.start();
    client.queue(&task, &["q", "r"]).await;
    lab.pass(Duration::from_secs(20)).await;
    let said =
        client.call("resolve_auth", json!({ "target": "domain", "domain": "closed.org", "action": "skip" })).await;
    assert_eq!((&said["resolved_count"], said["requeued_jobs"].as_array().unwrap().len()), (&json!(1), 2));
    let status = client.all_done(&task).await;
    let of = |query: &str| {
        status["searches"].as_array().unwrap().iter().find(|search| search["query"] == query).unwrap().clone()
    };
    assert_eq!(of("q")["status"], "partial");
    assert_eq!((&of("r")["status"], &of("r")["error_code"]), (&json!("failed"), &json!("ALL_FETCHES_FAILED")));
    assert_eq!(lab.web.fetched().iter().filter(|url| url.contains("closed")).count(), 2, "no search tried again");
}

#[tokio::test(start_paused = true)]
async fn an_unresolved_login_expires_by_itself() {
    let (lab, client, task) = lab().await;
    let _service = lab.start();
    client.queue(&task, &["q"]).await;
    lab.pass(AUTH_KEPT + Duration::from_secs(30)).await;
    let status = client.status(&task).await;
    assert_eq!((&status["searches"][0]["status"], &status["waiting_for"]), (&json!("partial"), &json!([])));
    assert_eq!(client.call("get_auth_queue", json!({})).await["total_count"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_task_leaves_no_search_waiting_for_a_login() {
    let (lab, client, task) = lab().await;
    let _service = lab.start();
    client.queue(&task, &["q"]).await;
    lab.pass(Duration::from_secs(20)).await;
    assert_eq!(client.call("get_auth_queue", json!({})).await["total_count"], 1);
    let said = client.call("stop_task", json!({ "task_id": task })).await;
    assert_eq!((&said["final_status"], &said["cancelled"]["queued"]), (&json!("completed"), &json!(1)));
    assert_eq!(client.call("get_auth_queue", json!({})).await["total_count"], 0);
}
