//! What people read about research: where it stands, why an engine gave nothing, and that a wait waits.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use matsu_testkit::model_server::{Asked, ModelServer, Reply};
use matsu_testkit::test_site::{Mood, TestSite};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::api::until;
use crate::home::Home;

/// How long an engine takes that shall be waited for.
const SLOW: u64 = 1_500;

fn home_with(site: &TestSite) -> Home {
    Home::sqlite()
        .with_variable("MATSU_RESEARCH_SEARXNG", site.searxng())
        .with_variable("MATSU_RESEARCH_ALLOW_HOSTS", site.hosts().join(","))
        .with_variable("MATSU_RESEARCH_STEP_MS", "0")
        .with_variable("MATSU_RESEARCH_BROWSER", "off")
}

fn call(home: &Home, tool: &str, arguments: &Value) -> Value {
    home.run(&["call", tool, &arguments.to_string()]).good().json()
}

fn begin(home: &Home, query: &str) -> String {
    let task = call(home, "create_task", &json!({ "query": "green tea" }))["task_id"].as_str().unwrap().to_owned();
    let options = json!({ "engines": ["searxng"], "max_pages": 2 });
    call(home, "queue_searches", &json!({ "task_id": task, "queries": [query], "options": options }));
    task
}

#[test]
fn a_first_wait_without_since_waits_for_what_comes() {
    let site = TestSite::start().unwrap();
    site.set_mood("searxng", Mood::Slow(SLOW));
    let home = home_with(&site);
    let _daemon = home.serve();
    let task = begin(&home, "green tea");
    let status = call(&home, "get_status", &json!({ "task_id": task, "wait": 30, "wait_for": "all" }));
    assert_eq!(
        (status["returned_because"].as_str(), status["status"].as_str()),
        (Some("idle"), Some("finished")),
        "{status}"
    );
    assert!(status["waited_ms"].as_u64().unwrap() >= 300, "{status}");
    assert!(status["message"].as_str().unwrap().starts_with("nothing is queued"), "{status}");
    let task = begin(&home, "black tea");
    let seen = call(&home, "get_task_status", &json!({ "task_id": task, "timeout": 30 }));
    assert!(seen["waited_ms"].as_u64().unwrap() >= 300, "{seen}");
}

/// Asks for research, waits for it, and answers with the result of the wait.
fn waiting_model(asked: &Asked) -> Reply {
    let last: Value = serde_json::from_str(asked.last()).unwrap_or_default();
    let Some(task) = last["task_id"].as_str().map(str::to_owned).or_else(|| known_task(asked)) else {
        return Reply::tool("create_task", json!({ "query": "green tea" }));
    };
    if last["message"].as_str().is_some_and(|text| text.starts_with("Task created")) {
        return Reply::tool(
            "queue_searches",
            json!({ "task_id": task, "queries": ["green tea"], "options": { "max_pages": 2 } }),
        );
    }
    if last["queued_count"] == 1 {
        return Reply::tool("get_status", json!({ "task_id": task, "wait": 30, "wait_for": "all" }));
    }
    Reply::text(&format!("waited={} because={} status={}", last["waited_ms"], last["returned_because"], last["status"]))
}

fn known_task(asked: &Asked) -> Option<String> {
    let read = |text: &String| serde_json::from_str::<Value>(text).ok()?["task_id"].as_str().map(str::to_owned);
    asked.messages.iter().find_map(read)
}

#[test]
fn a_model_in_a_chat_waits_for_research() {
    let site = TestSite::start().unwrap();
    site.set_mood("searxng", Mood::Slow(SLOW));
    let server = ModelServer::with(Box::new(waiting_model)).unwrap();
    let home = home_with(&site);
    let file = home.path("config.toml");
    let config =
        format!("[providers.m]\nwire = \"openai_chat\"\nmodel = \"m-1\"\nbase_url = \"{}/v1\"\n", server.url());
    std::fs::write(&file, config).unwrap();
    let _daemon = home.serve();
    let mut command = home.command(&["chat", "--once", "--model", "m", "--config", file.to_str().unwrap()]);
    let input = home.path("question");
    std::fs::write(&input, "research green tea").unwrap();
    let ran = crate::home::run({
        command.stdin(std::fs::File::open(&input).unwrap());
        command
    });
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("because=\"idle\" status=\"finished\""), "{ran:?}");
    let waited: u64 = ran.out.split("waited=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(waited >= 300, "{ran:?}");
}

#[test]
fn finished_research_reads_finished_everywhere_and_goes_on() {
    let site = TestSite::start().unwrap();
    let home = home_with(&site);
    let daemon = home.serve();
    let task = begin(&home, "green tea");
    let wait = json!({ "task_id": task, "wait": 30, "wait_for": "all" });
    assert_eq!(call(&home, "get_status", &wait)["status"], "finished");
    assert_eq!(call(&home, "get_task_status", &json!({ "task_id": task }))["status"], "finished");
    assert_eq!(daemon.api.get(&format!("/api/v1/tasks/{task}"))["status"], "finished");
    let listed = daemon.api.get("/api/v1/tasks?status=finished");
    assert_eq!(listed["items"][0]["task_id"], task.as_str(), "{listed}");
    let waited = home.run(&["status", &task, "--wait"]);
    assert!(waited.code == 0 && waited.out.contains("finished"), "{waited:?}");
    site.set_mood("searxng", Mood::Slow(SLOW));
    let more =
        json!({ "task_id": task, "queries": ["black tea"], "options": { "engines": ["searxng"], "max_pages": 1 } });
    call(&home, "queue_searches", &more);
    assert_eq!(call(&home, "get_status", &json!({ "task_id": task }))["status"], "exploring");
    assert_eq!(call(&home, "get_status", &wait)["status"], "finished");
    assert_eq!(call(&home, "stop_task", &json!({ "task_id": task }))["final_status"], "completed");
    let refused = home.run(&["call", "queue_searches", &more.to_string()]);
    assert!(refused.code == 1 && refused.out.contains("TASK_STOPPED"), "{refused:?}");
}

#[test]
fn research_of_the_terminal_ends_by_itself_and_can_be_continued_and_repeated() {
    let site = TestSite::start().unwrap();
    let home = home_with(&site);
    let daemon = home.serve();
    let first = home.run_json(&["research", "green tea", "--engine", "searxng", "--max-pages", "2"]);
    let task = first["task_id"].as_str().unwrap().to_owned();
    let status = |task: &str| daemon.api.get(&format!("/api/v1/tasks/{task}"))["status"].as_str().unwrap().to_owned();
    assert_eq!(status(&task), "completed");
    let again = home.run_json(&["research", "black tea", "--task", &task]);
    assert_eq!((again["task_id"].as_str(), status(&task).as_str()), (Some(task.as_str()), "completed"), "{again}");
    assert_eq!(again["status"]["metrics"]["total_searches"], 2, "{again}");
    let repeated = home.run_json(&["retry", &task])["task_id"].as_str().unwrap().to_owned();
    let ended = home.run(&["status", &repeated, "--wait"]);
    assert!(ended.code == 0 && ended.out.contains("completed"), "{ended:?}");
    let cancelled = home.run_json(&["research", "white tea", "--engine", "searxng", "--max-pages", "1"]);
    let cancelled = cancelled["task_id"].as_str().unwrap();
    home.run(&["retry", cancelled]).good();
}

#[test]
fn an_engine_that_fails_says_why_in_the_terminal_and_by_its_exit_code() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let site = TestSite::start().unwrap();
    let cases = [
        (Some(Mood::Locked), None, "status 401"),
        (Some(Mood::Refusing), None, "status 403"),
        (Some(Mood::Broken), None, "status 500"),
        (Some(Mood::Babbling), None, "not JSON of the expected form"),
        (None, Some(format!("http://127.0.0.1:{closed}")), "connection refused"),
        (None, Some("http://no-such-host.invalid".to_owned()), "unknown host name"),
    ];
    for (mood, address, cause) in cases {
        site.set_mood("searxng", mood.unwrap_or_default());
        let mut home = home_with(&site);
        if let Some(address) = address {
            home = home.with_variable("MATSU_RESEARCH_SEARXNG", address);
        }
        let ran = home.run(&["research", "green tea", "--engine", "searxng"]);
        assert!(ran.code == 1 && ran.out.contains(cause), "{cause}: {ran:?}");
        let folder = home.path("empty");
        std::fs::create_dir_all(&folder).unwrap();
        let beside = home.run(&["research", "green tea", "--dir", folder.to_str().unwrap()]);
        assert!(beside.code == 1 && beside.out.contains("ENGINE_FAILED"), "{cause}, beside local: {beside:?}");
        assert!(beside.out.contains(cause), "{cause}, beside local: {beside:?}");
    }
}

#[test]
fn a_part_of_an_engine_that_did_not_respond_is_named_and_an_empty_answer_is_no_failure() {
    let site = TestSite::start().unwrap();
    let home = home_with(&site);
    let ask = ["research", "green tea", "--engine", "searxng", "--max-pages", "1"];
    site.set_mood("searxng", Mood::Halting);
    let ran = home.run(&ask).good();
    assert!(ran.out.contains("searxng: othersearch did not respond: timeout"), "{ran:?}");
    let seen = home.run_json(&ask);
    assert!(seen["status"]["warnings"].to_string().contains("othersearch did not respond: timeout"), "{seen}");
    site.set_mood("searxng", Mood::Empty);
    let ran = home.run(&ask).good();
    assert!(ran.out.contains("searxng: no results"), "{ran:?}");
}

#[test]
fn an_engine_that_asks_for_a_second_is_asked_again_after_a_second() {
    let site = TestSite::start().unwrap();
    site.set_mood("searxng", Mood::BusyOnce);
    let home = home_with(&site);
    let began = Instant::now();
    let seen = home.run_json(&["research", "green tea", "--engine", "searxng", "--max-pages", "1"]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(seen["status"]["searches"][0]["pages_fetched"], 1, "{seen}");
}

#[test]
fn without_a_folder_the_local_engine_does_not_answer_for_one_that_failed() {
    let site = TestSite::start().unwrap();
    site.set_mood("searxng", Mood::Broken);
    let home = home_with(&site).with_variable("MATSU_RESEARCH_FOLDERS", "none");
    let ran = home.run(&["research", "green tea"]);
    assert!(ran.code == 1 && ran.out.contains("green tea: failed"), "{ran:?}");
    assert!(!ran.out.contains("local"), "{ran:?}");
    site.set_mood("searxng", Mood::BusyOnce);
    let home = home_with(&site).with_variable("MATSU_RESEARCH_FOLDERS", "none");
    let seen = home.run_json(&["research", "green tea", "--max-pages", "1"]);
    assert_eq!(seen["status"]["searches"][0]["pages_fetched"], 1, "the pause was waited for: {seen}");
}

#[test]
fn research_with_nothing_to_search_is_refused_with_three_ways_out() {
    let home = Home::sqlite().with_variable("MATSU_RESEARCH_FOLDERS", "none");
    let ran = home.run(&["research", "green tea"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for way in ["NOTHING_TO_SEARCH", "--dir", "research.searxng", "research.openalex"] {
        assert!(ran.err.contains(way), "{way}: {ran:?}");
    }
    assert_eq!(home.run_json(&["tasks"])["items"], json!([]), "nothing was created");
}

#[test]
fn ctrl_c_says_which_task_goes_on_and_where() {
    for has_daemon in [true, false] {
        let site = TestSite::start().unwrap();
        site.set_mood("searxng", Mood::Slow(15_000));
        let home = home_with(&site);
        let _daemon = has_daemon.then(|| home.serve());
        let mut research = home.start(&["research", "green tea", "--engine", "searxng"]);
        until("the engine is asked", Duration::from_secs(60), || {
            (!site.visits_to("/searxng").is_empty()).then_some(())
        });
        std::thread::sleep(Duration::from_millis(500));
        research.signal(Signal::INT);
        let (status, _) = research.ends_within(Duration::from_secs(10));
        let said = research.printed();
        assert_eq!(status.code(), Some(130), "{said}");
        let task = home.run_json(&["tasks"])["items"][0]["task_id"].as_str().unwrap().to_owned();
        let goes_on =
            if has_daemon { "it continues in the daemon" } else { "it is kept, and continues when a daemon runs" };
        assert!(said.contains(&format!("Stopped watching {task}; {goes_on}")), "{said}");
        assert!(said.contains(&format!("`matsu export {task}`")), "{said}");
    }
}

#[test]
fn pages_of_different_sites_are_fetched_at_the_same_time() {
    let site = TestSite::start().unwrap();
    let home = home_with(&site);
    let pages: Vec<String> = (0..4).map(|n| site.url(n, "/slow/2000")).collect();
    let began = Instant::now();
    let seen = home.run_json(&["research", "slow pages", "--query", &pages.join(" "), "--engine", "searxng"]);
    let search = &seen["status"]["searches"][0];
    assert_eq!(search["pages_fetched"], 4, "{seen}");
    assert!(began.elapsed() < Duration::from_millis(7_500), "{:?}", began.elapsed());
}
