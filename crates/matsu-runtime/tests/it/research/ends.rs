//! How searches end when they do not go well: failures, stops, and a process that dies.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use matsu_core::ports::fetcher::{FetchError, FetchOutcome};
use matsu_core::ports::research_model::ResearchModel;
use matsu_core::ports::search_engine::EngineError;
use matsu_testkit::web::{CannedResponse, Web};

use super::lab::Client;
use super::lab::{Lab, kit, runtime, runtime_of, text};
use crate::fixtures::me;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::worker::Service;

#[tokio::test(start_paused = true)]
async fn a_failure_is_visible_with_its_code_and_workers_go_on() {
    let lab = Lab::open().await;
    lab.web.page("https://a.org/", [text("It speaks.", "a page")]);
    lab.web.results("nothing", &["https://gone.org/", "https://robots.org/", "https://private.org/"]);
    lab.web
        .page("https://robots.org/", [CannedResponse::Fails(FetchError::Robots)])
        .page("https://private.org/", [CannedResponse::Fails(FetchError::Refused("a private address".to_owned()))]);
    lab.web.results("good", &["https://a.org/"]);
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["nothing", "good"]).await;
    let status = client.all_done(&task).await;
    let of = |query: &str| {
        status["searches"].as_array().unwrap().iter().find(|search| search["query"] == query).unwrap().clone()
    };
    assert_eq!(
        (&of("nothing")["status"], &of("nothing")["error_code"]),
        (&json!("failed"), &json!("ALL_FETCHES_FAILED"))
    );
    assert!(of("nothing")["error"].as_str().unwrap().contains("robots.txt"), "{status}");
    assert_eq!(of("good")["status"], "partial");
    assert_eq!(status["budget"]["pages_used"], 1, "what failed cost nothing");
}

#[tokio::test(start_paused = true)]
async fn a_failing_engine_is_tried_again_named_and_left_alone() {
    let lab = Lab::open().await;
    lab.web.break_engine(Some(EngineError::Failed("no route".to_owned())));
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["q"]).await;
    let status = client.all_done(&task).await;
    let search = &status["searches"][0];
    assert_eq!(search["status"], "failed", "{search}");
    assert_eq!(search["error_code"], "ALL_ENGINES_BLOCKED", "after two failures it is not asked: {search}");
    assert_eq!(lab.web.asked().len(), 2);
    lab.web.break_engine(None);
    lab.pass(Duration::from_secs(61)).await;
    client.queue(&task, &["q"]).await;
    client.all_done(&task).await;
    assert_eq!(lab.web.asked().len(), 3, "after the pause it is asked again");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_away_fails_the_search_and_costs_no_second_fetch() {
    let lab = Lab::open().await;
    lab.web.page("https://a.org/", [text("It speaks.", "a page")]).results("q", &["https://a.org/"]);
    lab.web.break_model(true);
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["q"]).await;
    let status = client.all_done(&task).await;
    let search = &status["searches"][0];
    assert_eq!((&search["status"], &search["error_code"]), (&json!("failed"), &json!("PIPELINE_ERROR")));
    assert_eq!(lab.web.fetched().len(), 1);
    lab.web.break_model(false);
    client.queue(&task, &["q"]).await;
    client.all_done(&task).await;
    assert_eq!((lab.web.fetched().len(), client.materials(&task).await["total"].as_i64()), (1, Some(1)));
}

#[tokio::test(start_paused = true)]
async fn a_search_goes_on_without_a_model_that_fails() {
    let lab = Lab::open().await;
    for n in 0..3 {
        lab.web.page(&format!("https://s{n}.org/"), [text(&format!("Claim {n}."), &format!("thing {}", n * 29))]);
    }
    lab.web.results("q", &["https://s0.org/", "https://s1.org/", "https://s2.org/"]);
    lab.web.break_model(true);
    lab.web.break_judge(true);
    let spare = Arc::new(Web::new(lab.clock));
    let embedded = ResearchModel { claim_maker: spare.clone(), judge: spare, writer: None };
    let runtime = runtime_of(&lab.store, lab.clock, kit(&lab.web).with_embedded(embedded));
    let (_service, client) = (Service::start(&runtime), Client::of(&runtime, me(), "one"));
    let task = client.task(None).await;
    client.queue(&task, &["q"]).await;
    let status = client.all_done(&task).await;
    let search = &status["searches"][0];
    assert_eq!((&search["status"], &search["error_code"]), (&json!("satisfied"), &json!(null)), "{status}");
    assert_eq!((lab.web.fetched().len(), client.materials(&task).await["total"].as_i64()), (3, Some(3)));
    let warnings = status["warnings"].to_string();
    assert!(
        warnings.contains("done without the model of research, which failed: the model did not answer"),
        "{status}"
    );
    assert!(!warnings.contains("verifications failed"), "the claims are judged without it too: {status}");
}

#[tokio::test(start_paused = true)]
async fn a_site_that_says_too_often_is_left_alone_and_frees_its_worker() {
    let lab = Lab::open().await;
    let busy = CannedResponse::Fails(FetchError::RateLimited { retry_after: Some(Duration::from_secs(45)) });
    lab.web
        .page("https://busy.org/", [busy, text("It was busy.", "a busy page")])
        .page("https://free.org/", [text("It was free.", "a free page")]);
    lab.web.results("q", &["https://busy.org/"]).results("r", &["https://free.org/"]);
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["q", "r"]).await;
    lab.pass(Duration::from_secs(10)).await;
    let status = client.status(&task).await;
    assert_eq!((&status["queue"]["running"], &status["queue"]["depth"]), (&json!(0), &json!(1)), "{status}");
    let status = client.all_done(&task).await;
    assert_eq!(status["metrics"]["total_pages"], 2);
    assert!(lab.clock.now().since(crate::fixtures::START) >= Duration::from_secs(45));
}

#[tokio::test(start_paused = true)]
async fn a_site_that_asks_for_a_long_pause_is_left_out_and_the_others_are_read() {
    let lab = Lab::open().await;
    let busy = || CannedResponse::Fails(FetchError::RateLimited { retry_after: Some(Duration::from_secs(600)) });
    lab.web
        .page("https://busy.org/1", [busy()])
        .page("https://free.org/1", [text("It was free.", "a free page")])
        .page("https://free.org/2", [text("It stayed free.", "another page, which is free")]);
    let urls =
        ["https://busy.org/1", "https://busy.org/2", "https://busy.org/3", "https://free.org/1", "https://free.org/2"];
    lab.web.results("q", &urls).results("r", &["https://busy.org/4", "https://free.org/1"]);
    lab.web.step(Duration::from_secs(1));
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["q"]).await;
    let status = client.all_done(&task).await;
    assert_eq!(status["searches"][0]["pages_fetched"], 2, "{status}");
    let skipped = status["searches"][0]["skipped"].as_array().unwrap();
    let reasons: Vec<String> = (1..4).map(|n| format!("https://busy.org/{n}: 429, asked to wait 600 s")).collect();
    assert_eq!(skipped, &reasons.iter().map(|reason| json!(reason)).collect::<Vec<_>>());
    assert!(status["warnings"].to_string().contains("busy.org: 429, asked to wait 600 s"), "{status}");
    client.queue(&task, &["r"]).await;
    let status = client.all_done(&task).await;
    assert!(status.to_string().contains("https://busy.org/4: 429, asked to wait"), "{status}");
    assert!(lab.clock.now().since(crate::fixtures::START) < Duration::from_secs(60), "nothing waited for it");
    assert_eq!(lab.web.fetched().iter().filter(|url| url.contains("busy")).count(), 1);
}

/// How long two searches take that read four pages of one site, five seconds apart.
async fn four_pages_of_one_site(lab: &Lab) -> Duration {
    for n in 0..4 {
        lab.web.page(&format!("https://www.site.org/{n}"), [text(&format!("Page {n}."), &format!("part {}", n * 17))]);
    }
    lab.web.results("q", &["https://www.site.org/0", "https://www.site.org/1"]);
    lab.web.results("r", &["https://www.site.org/2", "https://www.site.org/3"]);
    lab.web.step(Duration::from_secs(5));
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["q", "r"]).await;
    client.all_done(&task).await;
    lab.clock.now().since(crate::fixtures::START)
}

#[tokio::test(start_paused = true)]
async fn requests_to_one_site_keep_their_distance_over_all_workers() {
    let took = four_pages_of_one_site(&Lab::open().await).await;
    assert!(took >= Duration::from_secs(3 * 5), "{took:?}");
}

/// A site need not answer at once: the distance is kept from each answer to the next request.
#[tokio::test(start_paused = true)]
async fn a_slow_site_is_asked_one_at_a_time() {
    let lab = Lab::open().await;
    lab.web.page_delay(Duration::from_secs(7));
    let took = four_pages_of_one_site(&lab).await;
    assert!(took >= Duration::from_secs(4 * 7 + 3 * 5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn redirects_are_followed_under_every_rule() {
    let lab = Lab::open().await;
    let to = |url: &str| CannedResponse::Gives(FetchOutcome::Redirect { to: url.to_owned(), is_private: false });
    lab.web
        .page("https://a.org/", [to("https://b.org/#top")])
        .page("https://b.org/", [text("It moved.", "a moved page")])
        .page("https://c.org/", [to("https://blocked.org/")])
        .page("https://blocked.org/", [text("Never.", "a blocked page")])
        .page("https://loop.org/", [to("https://loop.org/")]);
    lab.web.results("q", &["https://a.org/", "https://c.org/", "https://loop.org/"]);
    let (_service, client) = (lab.start(), lab.client("one"));
    let block = json!({ "action": "domain_block", "domain_pattern": "*.blocked.org", "reason": "spam" });
    client.call("feedback", block).await;
    let task = client.task(None).await;
    client.queue(&task, &["q"]).await;
    client.all_done(&task).await;
    assert!(!lab.web.fetched().iter().any(|url| url.contains("blocked")), "{:?}", lab.web.fetched());
    assert_eq!(client.materials(&task).await["total"], 1);
    assert_eq!(lab.web.fetched().iter().filter(|url| url.contains("loop")).count(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_graceful_stop_waits_and_keeps_what_was_found() {
    let lab = Lab::open().await;
    for n in 0..20 {
        lab.web.page(&format!("https://s{n}.org/"), [text(&format!("Claim {n}."), &format!("thing {}", n * 29))]);
    }
    let urls: Vec<String> = (0..20).map(|n| format!("https://s{n}.org/")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    lab.web.results("long", &urls).results("short", &urls[..2]);
    lab.web.page_delay(Duration::from_secs(12));
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["long", "short", "third", "fourth"]).await;
    lab.pass(Duration::from_secs(2)).await;
    let said = client.call("stop_task", json!({ "task_id": task, "reason": "completed" })).await;
    assert_eq!(
        (&said["final_status"], &said["cancelled"]),
        (&json!("completed"), &json!({ "queued": 2, "running": 0 })),
        "{said}"
    );
    let waited = said["waited_ms"].as_u64().unwrap();
    assert!((20_000..=31_000).contains(&waited), "{waited}");
    let status = client.status(&task).await;
    let of = |query: &str| {
        status["searches"].as_array().unwrap().iter().find(|search| search["query"] == query).unwrap()["status"].clone()
    };
    assert_eq!((of("long"), of("short"), of("third")), (json!("partial"), json!("partial"), json!("cancelled")));
    assert!(client.materials(&task).await["total"].as_i64().unwrap() >= 4, "its finished stages are kept");
    let why = "2 verifications did not run because the task was stopped; their claims are unverified";
    assert!(status["warnings"].to_string().contains(why), "{status}");
    let report = client.report(&task).await;
    assert!(report.to_string().contains(why), "{report}");
    assert_eq!(client.queue(&task, &["more"]).await["error_code"], "TASK_STOPPED");
    let again = client.call("stop_task", json!({ "task_id": task, "mode": "immediate" })).await;
    assert_eq!((&again["final_status"], &again["already_ended"]), (&json!("completed"), &json!(true)));
}

#[tokio::test(start_paused = true)]
async fn an_immediate_stop_leaves_nothing_of_its_task_and_everything_of_others() {
    let lab = Lab::open().await;
    lab.web.page("https://shared.org/", [text("All share this.", "a shared page")]);
    for n in 0..9 {
        lab.web.page(&format!("https://s{n}.org/"), [text(&format!("Claim {n}."), &format!("thing {}", n * 29))]);
    }
    let urls: Vec<String> = (0..9).map(|n| format!("https://s{n}.org/")).collect();
    let mut urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    urls.insert(0, "https://shared.org/");
    lab.web.results("long", &urls).results("other", &["https://shared.org/"]);
    let (_service, client) = (lab.start(), lab.client("one"));
    let other = client.task(None).await;
    client.queue(&other, &["other"]).await;
    client.all_done(&other).await;
    let before = client.materials(&other).await;
    lab.web.page_delay(Duration::from_secs(6));
    let task = client.task(None).await;
    client.queue(&task, &["long", "queued later", "and later"]).await;
    lab.pass(Duration::from_secs(15)).await;
    let stop = json!({ "task_id": task, "mode": "immediate", "reason": "user_cancelled" });
    let said = client.call("stop_task", stop).await;
    assert_eq!(said["final_status"], "cancelled");
    assert!(said["waited_ms"].as_u64().unwrap() < 5_000, "{said}");
    assert!(said["cleaned"]["claims"].as_u64().unwrap() > 0);
    lab.pass(Duration::from_secs(30)).await;
    assert_eq!(client.materials(&task).await["total"], 0, "a late completion changes nothing");
    assert_eq!(client.materials(&other).await, before);
    let orphans = json!({ "task_id": task, "cleanup": "orphans" });
    let swept = client.call("stop_task", orphans).await;
    assert!(swept["cleaned"]["pages"].as_u64().unwrap() >= 1, "{swept}");
    assert_eq!(client.materials(&other).await, before);
    lab.web.page_delay(Duration::ZERO);
    client.queue(&other, &["long"]).await;
    client.all_done(&other).await;
    assert!(client.materials(&other).await["total"].as_i64().unwrap() > 5, "both workers still serve");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_in_mid_search_costs_no_page_twice() {
    let lab = Lab::open().await;
    for n in 0..6 {
        lab.web.page(&format!("https://s{n}.org/"), [text(&format!("Claim {n}."), &format!("thing {}", n * 29))]);
    }
    let urls: Vec<String> = (0..6).map(|n| format!("https://s{n}.org/")).collect();
    lab.web.results("q", &urls.iter().map(String::as_str).collect::<Vec<_>>());
    lab.web.page_delay(Duration::from_secs(4));
    let (service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["q"]).await;
    lab.pass(Duration::from_secs(6)).await;
    drop(service);
    let before = client.status(&task).await;
    assert_eq!(before["metrics"]["total_pages"], 4, "four sites at the same time");
    let second = runtime(&lab.store, lab.clock, &lab.web);
    let _service = Service::start(&second);
    lab.pass(Duration::from_secs(1)).await;
    lab.store.reap_node(&lab.runtime.node(), lab.clock.now()).await.unwrap();
    let client = Client::of(&second, me(), "two");
    let status = client.all_done(&task).await;
    assert_eq!(
        (&status["metrics"]["total_pages"], &status["budget"]["pages_used"]),
        (&json!(6), &json!(6)),
        "{status}"
    );
    let fetched = lab.web.fetched();
    assert_eq!(fetched.len(), 8, "only the two under way were asked for again: {fetched:?}");
    assert_eq!(client.materials(&task).await["total"], 6);
}

#[tokio::test(start_paused = true)]
async fn a_pause_goes_on_where_it_was() {
    let lab = Lab::open().await;
    for n in 0..6 {
        lab.web.page(&format!("https://s{n}.org/"), [text(&format!("Claim {n}."), &format!("thing {}", n * 29))]);
    }
    let urls: Vec<String> = (0..6).map(|n| format!("https://s{n}.org/")).collect();
    lab.web.results("q", &urls.iter().map(String::as_str).collect::<Vec<_>>());
    lab.web.page_delay(Duration::from_secs(4));
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["q"]).await;
    lab.pass(Duration::from_secs(10)).await;
    let id = matsu_core::id::TaskId::from_text(task.clone());
    Tasks::of(&lab.runtime).steer(&me(), &id, matsu_core::ports::store::Steer::Pause, None).await.unwrap();
    lab.pass(Duration::from_secs(60)).await;
    let paused = client.status(&task).await;
    assert_eq!((&paused["status"], &paused["queue"]["running"]), (&json!("paused"), &json!(0)));
    client.queue(&task, &["another"]).await;
    let status = client.all_done(&task).await;
    assert_eq!(status["metrics"]["total_pages"], 6, "queueing work resumes the principal's own pause");
    assert!(lab.web.fetched().len() <= 7);
}
