//! From a question to claims: the usual way, its order, its numbers, its sizes.

use std::time::Duration;

use serde_json::json;

use matsu_core::id::TaskId;
use matsu_core::ports::fetcher::FetchOutcome;
use matsu_core::ports::store::{ReadSearches, SearchWish};
use matsu_core::principal::Principal;
use matsu_runtime::research::ResearchSettings;
use matsu_runtime::worker::Service;
use matsu_testkit::web::CannedResponse;

use super::lab::{Client, Lab, runtime_with, text};
use crate::fixtures::{START, me};

#[tokio::test(start_paused = true)]
async fn a_question_becomes_claims_with_evidence() {
    let lab = Lab::open().await;
    lab.web
        .page("https://a.org/1", [text("Waiting is cheap.", "the cost of waiting")])
        .page("https://b.org/1", [text("Waiting is cheap [yes] as we measured.", "measurements of queues")])
        .page("https://c.gov/1", [text("Waiting is cheap [no] in our view.", "a view from elsewhere")]);
    lab.web.results("waiting", &["https://a.org/1", "https://b.org/1", "https://c.gov/1"]);
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    let queued = client.queue(&task, &["waiting"]).await;
    let status = client.all_done(&task).await;
    let search = &status["searches"][0];
    assert_eq!(search["id"], queued["search_ids"][0], "one id everywhere");
    assert_eq!(status["queue"]["items"][0]["id"], search["id"]);
    assert_eq!((&search["status"], &search["pages_fetched"]), (&json!("satisfied"), &json!(3)));
    assert_eq!((&search["satisfaction_score"], &search["has_primary_source"]), (&json!(1.0), &json!(true)));
    assert_eq!(status["waiting_for"], json!([]));
    let materials = client.materials(&task).await;
    let claim = materials["claims"]
        .as_array()
        .unwrap()
        .iter()
        .find(|claim| claim["text"] == "Waiting is cheap.")
        .unwrap_or_else(|| panic!("{materials}"));
    assert_eq!(claim["origin"]["url"], "https://a.org/1");
    assert_eq!(claim["evidence_count"], 2, "its own page says nothing about it: {claim}");
    assert_eq!((&claim["confidence"], &claim["controversy"]), (&json!(0.514), &json!(0.471)));
    assert_eq!(claim["has_refutation"], true);
    let contested = client
        .call("get_materials", json!({ "task_id": task, "options": { "only": "contested", "format": "narrative" } }))
        .await;
    let prose = contested["narrative"].as_str().unwrap();
    assert!(prose.contains("Waiting is cheap. [1] (confidence 0.514; supported by [2]; refuted by [3])"), "{prose}");
    assert!(prose.contains("1. https://a.org/1 <https://a.org/1>"), "{prose}");
    let graph = client
        .call(
            "get_materials",
            json!({ "task_id": task, "options": { "include_graph": true, "include_fragments": true } }),
        )
        .await;
    assert!(graph["evidence_graph"]["edges"].as_array().unwrap().len() > 5);
    assert_eq!(graph["fragments"].as_array().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_nothing_was_weighed_for_has_no_confidence() {
    let lab = Lab::open().await;
    lab.web.page("https://a.org/1", [text("Waiting is cheap [yes].", "the cost of waiting")]);
    lab.web.results("waiting", &["https://a.org/1"]);
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["waiting"]).await;
    client.all_done(&task).await;
    for detail in ["compact", "full"] {
        let options = json!({ "detail": detail });
        let found = client.call("get_materials", json!({ "task_id": task, "options": options })).await;
        let claim = &found["claims"][0];
        assert_eq!((claim["verification"].as_str(), claim.get("confidence")), (Some("unverified"), None), "{found}");
    }
    let sure = json!({ "task_id": task, "options": { "min_confidence": 0.1 } });
    assert_eq!(client.call("get_materials", sure).await["total"], 0, "it is not known to be likely");
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_fails_is_a_warning() {
    let lab = Lab::open().await;
    lab.web
        .page("https://a.org/1", [text("Waiting is cheap [yes].", "the cost of waiting")])
        .page("https://b.org/1", [text("Waiting is cheap [yes] as we measured.", "measurements of queues")]);
    lab.web.results("waiting", &["https://a.org/1", "https://b.org/1"]);
    lab.web.break_judge(true);
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["waiting"]).await;
    let status = client.all_done(&task).await;
    let warnings = status["warnings"].to_string();
    assert!(warnings.contains("verifications failed") && warnings.contains("its answer is no JSON"), "{status}");
    let found = client.materials(&task).await;
    let claims = found["claims"].as_array().unwrap();
    assert!(claims.iter().all(|claim| claim["verification"] == "unverified"), "{found}");
}

#[tokio::test(start_paused = true)]
async fn three_searches_of_half_a_minute_take_two_workers_little_more_than_one_minute() {
    let lab = Lab::open().await;
    for (query, seconds) in [("first", 30), ("second", 40), ("third", 35)] {
        let url = format!("https://{query}.org/");
        lab.web.page(&url, [text(&format!("The {query} says so."), query)]).results(query, &[&url]);
        lab.web.delay(query, Duration::from_secs(seconds));
    }
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    client.queue(&task, &["first", "second", "third"]).await;
    let status = client.all_done(&task).await;
    let wish = SearchWish { rows_max: 3, changed_since: None };
    let rows = lab.store.run(ReadSearches { task_id: TaskId::from_text(task), wish }).await.unwrap().rows;
    let took = rows.iter().filter_map(|row| row.job.finished_at).max().unwrap().since(START);
    assert!(took <= Duration::from_secs(65), "{took:?}");
    assert!(took >= Duration::from_secs(64), "{took:?}");
    assert_eq!(lab.web.searching_max(), 2);
    assert_eq!(status["metrics"]["total_claims"], 3);
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_named_and_nothing_is_queued() {
    let lab = Lab::open().await;
    let client = lab.client("one");
    let task = client.task(None).await;
    let long = "x".repeat(501);
    for (arguments, field) in [
        (json!({ "task_id": task, "queries": [] }), "queries"),
        (json!({ "task_id": task, "queries": ["good", "  "] }), "queries[1]"),
        (json!({ "task_id": task, "queries": ["good", long] }), "queries[1]"),
        (json!({ "task_id": task, "queries": ["good"], "options": { "engines": ["nope"] } }), "options.engines[0]"),
        (json!({ "task_id": task, "queries": ["good"], "options": { "priority": "urgent" } }), "options.priority"),
        (json!({ "task_id": task, "queries": ["good"], "options": { "prio": "low" } }), "options.prio"),
        (json!({ "queries": ["good"] }), "task_id"),
    ] {
        let said = client.call("queue_searches", arguments).await;
        assert_eq!(said["error_code"], "INVALID_PARAMS", "{said}");
        assert_eq!(said["details"]["param_name"], field, "{said}");
    }
    assert_eq!(client.status(&task).await["queue"]["total"], 0);
    let unknown = client.call("queue_searches", json!({ "task_id": "task_nope", "queries": ["a"] })).await;
    assert_eq!(unknown["error_code"], "TASK_NOT_FOUND");
    for (wait, code) in [(61, "INVALID_PARAMS"), (-1, "INVALID_PARAMS")] {
        let said = client.call("get_status", json!({ "task_id": task, "wait": wait })).await;
        assert_eq!((&said["error_code"], &said["details"]["param_name"]), (&json!(code), &json!("wait")));
    }
    let before = lab.clock.now();
    let said = client.call("get_status", json!({ "task_id": "task_nope", "wait": 30 })).await;
    assert_eq!((said["error_code"].as_str(), lab.clock.now()), (Some("TASK_NOT_FOUND"), before), "at once");
}

#[tokio::test(start_paused = true)]
async fn the_same_query_is_queued_once_until_it_has_ended() {
    let lab = Lab::open().await;
    let client = lab.client("one");
    let task = client.task(None).await;
    let said = client.queue(&task, &["Long polling", "LONG  polling", "other"]).await;
    assert_eq!((&said["queued_count"], said["search_ids"].as_array().unwrap().len()), (&json!(2), 2));
    assert_eq!(
        said["skipped"][0],
        json!({ "query": "LONG  polling", "reason": "duplicate", "search_id": said["search_ids"][0] })
    );
    let again = client.queue(&task, &["long polling"]).await;
    assert_eq!((&again["queued_count"], &again["skipped"][0]["search_id"]), (&json!(0), &said["search_ids"][0]));
    let _service = lab.start();
    client.all_done(&task).await;
    assert_eq!(client.queue(&task, &["long polling"]).await["queued_count"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_pages_is_never_passed() {
    let lab = Lab::open().await;
    let mut urls = Vec::new();
    for n in 0..50 {
        let url = format!("https://site{n}.org/");
        lab.web.page(&url, [text(&format!("Claim number {n}."), &format!("subject {}", n * n))]);
        urls.push(url);
    }
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    lab.web.results("a", &urls[..25]).results("b", &urls[25..]).results("c", &urls);
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(Some(5)).await;
    client.queue(&task, &["a", "b"]).await;
    let status = client.all_done(&task).await;
    assert_eq!(lab.web.fetched().len(), 5);
    assert_eq!((&status["budget"]["pages_used"], &status["budget"]["remaining_percent"]), (&json!(5), &json!(0)));
    assert!(status["warnings"][0].as_str().unwrap().contains("0 % of the budget"), "{status}");
    client.queue(&task, &["c"]).await;
    let status = client.all_done(&task).await;
    let last = status["searches"].as_array().unwrap().iter().find(|search| search["query"] == "c").unwrap();
    // Pages that the task has read already cost nothing; the first new one is refused.
    assert_eq!(last["error_code"], "BUDGET_EXHAUSTED", "{last}");
    assert_eq!(lab.web.fetched().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_seconds_ends_a_search_with_what_it_has() {
    let lab = Lab::open().await;
    for n in 0..9 {
        lab.web.page(&format!("https://s{n}.org/"), [text(&format!("Claim {n}."), &format!("thing {}", n * 13))]);
    }
    let urls: Vec<String> = (0..9).map(|n| format!("https://s{n}.org/")).collect();
    lab.web.results("slow", &urls.iter().map(String::as_str).collect::<Vec<_>>());
    lab.web.page_delay(Duration::from_secs(4));
    let (_service, client) = (lab.start(), lab.client("one"));
    let made = client.call("create_task", json!({ "query": "q", "config": { "budget": { "max_seconds": 10 } } })).await;
    let task = made["task_id"].as_str().unwrap();
    client.queue(task, &["slow"]).await;
    let status = client.all_done(task).await;
    let search = &status["searches"][0];
    assert_eq!((&search["status"], &search["error_code"]), (&json!("partial"), &json!("BUDGET_EXHAUSTED")), "{search}");
    assert_eq!(search["pages_fetched"], 8, "four sites at the same time");
    assert_eq!(status["budget"]["time_used_seconds"], 10);
}

#[tokio::test(start_paused = true)]
async fn every_setting_of_a_task_has_its_effect() {
    let lab = Lab::open().await;
    for site in ["a.org", "b.org", "wanted.org"] {
        lab.web.page(&format!("https://{site}/"), [text(&format!("{site} speaks."), site)]);
    }
    lab.web.results("q", &["https://a.org/", "https://b.org/", "https://wanted.org/"]);
    let (_service, client) = (lab.start(), lab.client("one"));
    let config = json!({ "priority_domains": ["wanted.org"], "language": "ja", "engines": ["local"] });
    let made = client.call("create_task", json!({ "query": "q", "config": config, "idempotency_key": "k" })).await;
    let same = client.call("create_task", json!({ "query": "q", "config": config, "idempotency_key": "k" })).await;
    assert_eq!(made["task_id"], same["task_id"]);
    let other = client.call("create_task", json!({ "query": "other", "idempotency_key": "k" })).await;
    assert_eq!(other["error_code"], "IDEMPOTENCY_CONFLICT");
    let task = made["task_id"].as_str().unwrap();
    client.call("queue_searches", json!({ "task_id": task, "queries": ["q"], "options": { "max_pages": 2 } })).await;
    client.all_done(task).await;
    assert_eq!(lab.web.fetched(), ["https://wanted.org/", "https://a.org/"]);
    assert_eq!(lab.web.asked(), [("q".to_owned(), Some("ja".to_owned()))]);
}

#[tokio::test(start_paused = true)]
async fn a_known_page_serves_the_next_task_too() {
    let lab = Lab::open().await;
    lab.web
        .page("https://a.org/1", [text("Waiting is cheap [yes].", "the cost of waiting")])
        .page("https://b.org/1", [text("Waiting is cheap [yes] as we measured.", "measurements of queues")]);
    lab.web.results("waiting", &["https://a.org/1", "https://b.org/1"]);
    let figures = async |client: Client| {
        let task = client.task(None).await;
        client.queue(&task, &["waiting"]).await;
        let status = client.all_done(&task).await;
        let (search, materials) = (status["searches"][0].clone(), client.materials(&task).await);
        let claims = materials["claims"].as_array().unwrap().iter();
        let claims: Vec<_> = claims.map(|claim| claim["confidence"].clone()).collect();
        (search["satisfaction_score"].clone(), search["useful_fragments"].clone(), claims)
    };
    let service = lab.start();
    let first = figures(lab.client("one")).await;
    assert_eq!(first, (json!(0.533), json!(2), vec![json!(0.655); 2]));
    assert_eq!(figures(lab.client("one")).await, first, "what was read a moment ago");
    assert_eq!(lab.web.fetched().len(), 2, "nothing is fetched twice");
    service.stop().await;
    let forgetful = ResearchSettings { page_cache_kept: Duration::ZERO, ..ResearchSettings::default() };
    let second = runtime_with(&lab.store, lab.clock, &lab.web, forgetful);
    let _service = Service::start(&second);
    assert_eq!(
        figures(Client::of(&second, me(), "two")).await,
        first,
        "what is read again keeps its place, and its claims"
    );
    assert_eq!(lab.web.fetched().len(), 4, "the copies were too old");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_one_principal_is_not_shown_to_another() {
    let lab = Lab::open().await;
    let secret = match text("The secret is blue.", "a private paper") {
        CannedResponse::Text(text) => CannedResponse::Private(text),
        other => other,
    };
    lab.web.page("https://paper.org/", [secret, text("Please log in to read.", "a public login")]);
    lab.web.results("q", &["https://paper.org/"]);
    let (_service, mine) = (lab.start(), lab.client("mine"));
    let theirs = Client::of(&lab.runtime, Principal::user("other"), "theirs");
    let (my_task, their_task) = (mine.task(None).await, theirs.task(None).await);
    mine.queue(&my_task, &["q"]).await;
    mine.all_done(&my_task).await;
    theirs.queue(&their_task, &["q"]).await;
    theirs.all_done(&their_task).await;
    assert!(mine.materials(&my_task).await.to_string().contains("blue"));
    assert!(!theirs.materials(&their_task).await.to_string().contains("blue"));
    assert_eq!(lab.web.fetched().len(), 2, "a private copy serves its owner alone");
    assert_eq!(theirs.materials(&my_task).await["error_code"], "TASK_NOT_FOUND");
}

/// Cookies led to a signed address, which works without any: what is there is still the owner's.
#[tokio::test(start_paused = true)]
async fn a_page_that_cookies_led_to_reaches_no_one_else() {
    let lab = Lab::open().await;
    let to = |url: &str, is_private| CannedResponse::Gives(FetchOutcome::Redirect { to: url.to_owned(), is_private });
    lab.web
        .page("https://paper.org/", [to("https://cdn.org/a", true), to("https://cdn.org/login", false)])
        .page("https://cdn.org/a", [to("https://cdn.org/b", false)])
        .page("https://cdn.org/b", [text("The secret is blue.", "a private paper")])
        .page("https://cdn.org/login", [text("Please log in to read.", "a public login")]);
    lab.web.results("q", &["https://paper.org/"]);
    let (_service, mine) = (lab.start(), lab.client("mine"));
    let theirs = Client::of(&lab.runtime, Principal::user("other"), "theirs");
    let (my_task, their_task) = (mine.task(None).await, theirs.task(None).await);
    mine.queue(&my_task, &["q"]).await;
    mine.all_done(&my_task).await;
    theirs.queue(&their_task, &["q"]).await;
    theirs.all_done(&their_task).await;
    assert!(mine.materials(&my_task).await.to_string().contains("blue"));
    assert!(!theirs.materials(&their_task).await.to_string().contains("blue"));
    assert_eq!(lab.web.fetched().len(), 5, "a private copy serves its owner alone");
}

#[tokio::test(start_paused = true)]
async fn replies_stay_small_and_the_whole_costs_few_calls() {
    let lab = Lab::open().await;
    let mut queries = Vec::new();
    for n in 0..5 {
        let urls: Vec<String> = (0..6).map(|m| format!("https://site{m}.org/{n}")).collect();
        for (m, url) in urls.iter().enumerate() {
            let claim = format!("In case {n} of {m} waiting was cheap [yes].");
            lab.web.page(url, [text(&claim, &format!("case {} of place {}", n * 7, m * 11))]);
        }
        let query = format!("query {n}");
        lab.web.results(&query, &urls.iter().map(String::as_str).collect::<Vec<_>>());
        queries.push(query);
    }
    let (_service, client) = (lab.start(), lab.client("one"));
    let made = client.call("create_task", json!({ "query": "Is waiting cheap?" })).await;
    let task = made["task_id"].as_str().unwrap();
    let queued = client.call("queue_searches", json!({ "task_id": task, "queries": queries })).await;
    let wait = json!({ "task_id": task, "wait": 50, "wait_for": "all", "detail": "summary" });
    let status = client.call("get_status", wait).await;
    assert_eq!(status["returned_because"], "idle", "{status}");
    assert!(status.to_string().len() <= 1024, "{}: {status}", status.to_string().len());
    let options = json!({ "format": "narrative" });
    let materials = client.call("get_materials", json!({ "task_id": task, "options": options })).await;
    let bytes: usize = [&made, &queued, &status, &materials].iter().map(|said| said.to_string().len()).sum();
    assert!(bytes <= 20 * 1024, "{bytes}");
    assert!(materials["total"].as_i64().unwrap() >= 30, "{materials}");
    let compact = client.call("get_materials", json!({ "task_id": task })).await;
    let claims = compact["claims"].as_array().unwrap();
    assert!(claims.len() >= 25, "{}: {compact}", claims.len());
    assert!(compact.to_string().len() <= 17 * 1024, "{}", compact.to_string().len());
    assert!(claims.iter().all(|claim| claim.get("evidence").is_none()), "{compact}");
}

#[tokio::test(start_paused = true)]
async fn what_two_searches_find_in_nearly_the_same_words_is_one_claim() {
    let lab = Lab::open().await;
    let first = "Waiting is cheap if the server of the site answers only when a task has changed since the last call.";
    let copied =
        "Waiting is cheap if the server of the site answers only when the task has changed since the last call.";
    let other = "Waiting is cheap if the server of the site never answers when a task has changed since the last call.";
    lab.web
        .page("https://a.org/1", [text(first, "the cost of waiting")])
        .page("https://b.org/1", [text(copied, "measurements of queues")])
        .page("https://c.org/1", [text(other, "a view from elsewhere")]);
    lab.web
        .results("one", &["https://a.org/1"])
        .results("two", &["https://b.org/1"])
        .results("three", &["https://c.org/1"]);
    let (_service, client) = (lab.start(), lab.client("one"));
    let task = client.task(None).await;
    for query in ["one", "two", "three"] {
        client.queue(&task, &[query]).await;
        client.all_done(&task).await;
    }
    let found = client.materials(&task).await;
    let claims: Vec<_> = found["claims"].as_array().unwrap().iter().map(|claim| claim["text"].clone()).collect();
    assert_eq!((claims.len(), found["total"].as_i64()), (2, Some(2)), "{found}");
    assert!(claims.contains(&json!(first)) && claims.contains(&json!(other)), "{found}");
    let merged = found["claims"].as_array().unwrap().iter().find(|claim| claim["text"] == first).unwrap();
    assert_eq!(merged["origin"]["also"], json!(["https://b.org/1"]), "both places are shown: {merged}");
    assert_eq!(merged["evidence_count"], 0, "a copy confirms nothing: {merged}");
}

#[tokio::test(start_paused = true)]
async fn a_small_budget_of_seconds_is_shared_by_the_searches_that_run() {
    let lab = Lab::open().await;
    for query in ["first", "second"] {
        let url = format!("https://{query}.org/");
        lab.web.page(&url, [text(&format!("The {query} says so."), query)]).results(query, &[&url]);
        lab.web.delay(query, Duration::from_secs(1));
    }
    let (_service, client) = (lab.start(), lab.client("one"));
    // Two searches run at once; each needs two or three seconds, and less than five are there for each.
    let made = client.call("create_task", json!({ "query": "q", "config": { "budget": { "max_seconds": 6 } } })).await;
    let task = made["task_id"].as_str().unwrap();
    client.queue(task, &["first", "second"]).await;
    let status = client.all_done(task).await;
    for search in status["searches"].as_array().unwrap() {
        assert_eq!((&search["error_code"], &search["pages_fetched"]), (&json!(null), &json!(1)), "{status}");
    }
    assert!(status["budget"]["time_used_seconds"].as_i64().unwrap() <= 6, "{status}");
}
