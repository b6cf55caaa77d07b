//! Research from the command line, with a daemon and without one, on documents of the user's own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use matsu_testkit::model_server::{Asked, ModelServer, Part, Reply};
use serde_json::{Value, json};

use crate::home::{Backend, Home};

/// A folder with a few documents in three languages.
fn documents(home: &Home) -> String {
    let folder = home.path("documents");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, domain, text) in [
        ("a.md", "a.example.org", "Long polling reduces token use compared with plain polling. It was measured."),
        ("b.md", "b.example.net", "We found that long polling reduces token use compared with plain polling."),
        ("c.md", "c.example.com", "Long polling does not reduce token use compared with plain polling."),
        ("d.md", "d.example.jp", "待ち行列は仕事を失いません。"),
        ("e.md", "e.example.kr", "대기열은 작업을 잃지 않습니다."),
    ] {
        std::fs::write(folder.join(name), format!("---\nurl: https://{domain}/{name}\n---\n# Notes\n\n{text}\n"))
            .unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

#[test]
fn the_demonstration_takes_less_than_ten_seconds_and_shows_a_dispute() {
    let home = Home::sqlite();
    let began = Instant::now();
    let ran = home.run(&["demo"]).good();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    for part in ["3 searches queued", "refuted by", "blocked by a person", "1 wait, 0 polls", "matsu connect"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let said = home.run_json(&["demo"]);
    assert_eq!(said["contested"]["has_refutation"], true, "{said}");
    assert_eq!(said["figures"]["waits"], 1);
    assert!(said["figures"]["woken_ms"].as_f64().unwrap() < 1000.0, "{said}");
    assert!(said["agent"]["notice"].as_str().unwrap().contains("get_notifications"), "{said}");
}

#[test]
fn research_finds_the_users_own_documents_in_three_languages() {
    let home = Home::new(Backend::Sqlite);
    let folder = documents(&home);
    for with_daemon in [false, true] {
        let _daemon = with_daemon.then(|| home.serve());
        for (question, part) in [
            ("long polling token use", "Long polling reduces token use"),
            ("行列", "待ち行列は仕事を失いません。"),
            ("대기", "대기열은 작업을 잃지 않습니다."),
        ] {
            let answer = home.run_json(&["research", question, "--dir", &folder, "--engine", "local"]);
            let claims = answer["claims"].as_array().unwrap();
            let is_said = claims.iter().any(|claim| claim["text"].as_str().unwrap().contains(part));
            assert!(is_said, "{question}: {answer}");
        }
    }
}

/// The answer among wrapped lines, in a list, in another form of the word, and in a question without spaces.
#[test]
fn whole_sentences_of_wrapped_files_answer_first() {
    let home = Home::new(Backend::Sqlite);
    let folder = home.path("wrapped");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in [
        (
            "nodes.md",
            "# Nodes\n\nA node is a machine. When a node becomes\nunreachable, the controller deletes its pods after\nfive minutes. Pods are cheap.\n\nThe states of a node are:\n\n- Ready, when it takes\n  new pods.\n- Unknown, when it sent no heartbeat.\n",
        ),
        ("bears.txt", "On animals\n\nIn the cold months brown bears\nsleep in caves. Fish do not.\n"),
        (
            "kame.md",
            "# ゾウガメ\n\nゾウガメは島に住む大きな亀である。ゾウガメの\n寿命は百年を超えることが\nある。魚は泳ぐ。\n",
        ),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let folder = folder.to_str().unwrap().to_owned();
    for (question, expected) in [
        (
            "What happens to pods when a node becomes unreachable?",
            "When a node becomes unreachable, the controller deletes its pods after five minutes.",
        ),
        ("where does a bear sleep", "In the cold months brown bears sleep in caves."),
        ("ゾウガメの寿命", "ゾウガメの寿命は百年を超えることがある。"),
    ] {
        let answer = home.run_json(&["research", question, "--dir", &folder, "--engine", "local"]);
        assert_eq!(answer["claims"][0]["text"], expected, "{answer}");
        assert!(answer["claims"][0]["relevance"].as_f64().unwrap() > 0.0, "{answer}");
        assert_eq!(answer["claims"][0]["verification"], "unverified", "{answer}");
    }
    let answer = home.run_json(&["research", "which states of a node take new pods", "--dir", &folder]);
    let claims = answer["claims"].as_array().unwrap();
    let ready = claims.iter().find(|claim| claim["text"] == "Ready, when it takes new pods.");
    let context = ready.map(|claim| claim["context"].as_str().unwrap_or_default().to_owned());
    assert_eq!(context.as_deref(), Some("Nodes › The states of a node are:"), "{answer}");
}

#[test]
fn weights_that_do_not_fit_the_ranker_are_refused() {
    let home = Home::sqlite();
    let file = home.path("weights.txt");
    std::fs::write(&file, "wings 1 2\n").unwrap();
    let home = home.with_variable("MATSU_RESEARCH_RANKING_WEIGHTS", file.to_str().unwrap());
    let ran = home.run(&["research", "anything"]);
    assert!(ran.code == 1 && ran.err.contains("wings is not a feature of the ranker"), "{}", ran.err);
}

#[test]
fn a_report_of_the_users_own_documents_is_written() {
    let home = Home::new(Backend::Sqlite);
    let (folder, report) = (documents(&home), home.path("report.md"));
    let ran =
        home.run(&["research", "long polling token use", "--dir", &folder, "--out", report.to_str().unwrap()]).good();
    for part in [
        "## Answer",
        "Long polling reduces token use compared with plain polling.",
        "[1] “",
        "file://",
        "no model wrote",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let text = std::fs::read_to_string(&report).unwrap();
    assert!(text.contains("## Sources") && text.contains("## Searched") && text.contains("## Read"), "{text}");
}

#[test]
fn a_second_question_to_the_same_documents_is_answered_too() {
    let home = Home::new(Backend::Sqlite);
    let folder = documents(&home);
    let ask = || {
        let said = home.run_json(&["research", "long polling token use", "--dir", &folder, "--engine", "local"]);
        let claims = said["claims"].as_array().unwrap();
        let mut shown: Vec<String> = claims
            .iter()
            .map(|claim| format!("{} {} {}", claim["text"], claim["confidence"], claim["evidence_count"]))
            .collect();
        shown.sort();
        shown
    };
    let first = ask();
    assert_eq!(first.len(), 3, "{first:?}");
    assert_eq!(ask(), first);
}

#[test]
fn a_document_that_is_as_it_was_costs_no_page_again() {
    let home = Home::new(Backend::Sqlite);
    let folder = documents(&home);
    let mut ask = vec!["research", "long polling", "--dir", &folder, "--engine", "local", "--max-pages", "5"];
    for query in ["long polling", "token use", "plain polling compared", "polling tokens"] {
        ask.extend(["--query", query]);
    }
    let said = home.run_json(&ask);
    assert_eq!(said["status"]["budget"]["pages_used"], 3, "{said}");
    assert_eq!(said["status"]["searches_by_status"]["failed"], serde_json::Value::Null, "{said}");
}

#[test]
fn the_human_side_of_research_has_its_commands() {
    let home = Home::new(Backend::Sqlite);
    let folder = documents(&home);
    let answer = home.run_json(&["research", "long polling token use", "--dir", &folder]);
    let task = answer["task_id"].as_str().unwrap();
    let claim = answer["claims"][0]["id"].as_str().unwrap();
    assert!(home.run(&["auth", "list"]).good().out.contains("No page waits"));
    home.run(&["feedback", "claim_reject", claim, "--reason", "wrong"]).good();
    home.run(&["feedback", "domain_block", "*.example.com", "--reason", "spam"]).good();
    let log = home.run_json(&["feedback"]);
    assert_eq!(log["items"].as_array().unwrap().len(), 2, "{log}");
    let edge = answer["claims"].as_array().unwrap().iter().find_map(|claim| claim["evidence"][0]["edge_id"].as_str());
    let said = home.run_json(&["feedback", "edge_correct", edge.unwrap(), "--relation", "supports"]);
    assert_eq!(said["new_relation"], "supports", "{said}");
    assert!(home.run_json(&["calibration", "show"])["stats"]["sources"]["judge"].is_object());
    assert!(home.run(&["calibration", "rollback", "judge"]).code != 0);
    let exported = home.run(&["export", task]).good().out;
    assert!(exported.contains("rejected by a person"), "{exported}");
    assert!(
        home.run_json(&["export", task, "--format", "json"])["claims"].as_array().is_some_and(|list| !list.is_empty())
    );
    assert_eq!(home.run_json(&["gc", "--dry-run"])["pages"], 0, "a task still reaches them");
    home.run_json(&["call", "stop_task", &format!(r#"{{"task_id":"{task}","cleanup":"soft"}}"#)]);
    let dry = home.run_json(&["gc", "--dry-run"]);
    assert!(dry["pages"].as_u64().unwrap() > 0, "{dry}");
    assert_eq!(home.run_json(&["gc"])["pages"], dry["pages"]);
}

/// A model that reads for research: of each passage it quotes the first sentence, and invents another that is not in the
/// text; it judges; and it writes a report with one sentence that its claims do not support.
fn reader(asked: &Asked) -> Reply {
    let data: Value = serde_json::from_str(asked.last()).unwrap_or_default();
    let list = |name: &str| data[name].as_array().cloned().unwrap_or_default();
    let (claims, passages) = (list("claims"), list("passages"));
    let answer = match (claims.is_empty(), passages.is_empty()) {
        (true, _) => json!({ "claims": passages.iter().flat_map(read).collect::<Vec<_>>() }),
        (false, false) => {
            json!({ "stances": claims.iter().flat_map(|claim| judge(claim, &passages)).collect::<Vec<_>>() })
        }
        (false, true) => json!({
            "answer": [
                { "text": claims[0]["claim"], "claims": [1] },
                { "text": "Unicorns reduce token use by 97 percent.", "claims": [1] },
                { "text": "A sentence of no claim.", "claims": [] },
            ],
            "sections": [{ "title": "Details", "sentences": [{ "text": claims[0]["claim"], "claims": [1] }] }],
        }),
    };
    Reply::text(&answer.to_string())
}

fn read(passage: &Value) -> Vec<Value> {
    let first = passage["text"].as_str().unwrap_or_default().split_inclusive('.').next().unwrap_or_default().trim();
    vec![
        json!({ "passage": passage["number"], "text": format!("In other words: {first}"), "quote": first }),
        json!({ "passage": passage["number"], "text": "Invented.", "quote": "words that no document has" }),
    ]
}

fn judge(claim: &Value, passages: &[Value]) -> Vec<Value> {
    let numbers = claim["passages"].as_array().unwrap();
    let compared = passages.iter().filter(|passage| numbers.contains(&passage["number"]));
    let stance = |passage: &Value| {
        let refutes = if passage["text"].as_str().unwrap().contains("does not") { 0.9 } else { 0.02 };
        json!({
            "claim": claim["number"], "passage": passage["number"],
            "supports": 0.92 - refutes, "refutes": refutes, "neutral": 0.08,
        })
    };
    compared.map(stance).collect()
}

#[test]
fn a_model_reads_and_judges_where_one_is_named_for_it() {
    for (wire, path) in [("openai_chat", "/v1"), ("anthropic", "")] {
        let server = ModelServer::with(Box::new(reader)).unwrap();
        let home = Home::sqlite().with_variable("MATSU_RESEARCH_MODEL", "reader");
        let folder = documents(&home);
        let config =
            format!("[providers.reader]\nwire = \"{wire}\"\nmodel = \"m-1\"\nbase_url = \"{}{path}\"\n", server.url());
        let file = home.path("config.toml");
        std::fs::write(&file, config).unwrap();
        let asked = ["research", "long polling token use", "--dir", &folder, "--engine", "local", "--config"];
        let answer = home.run_json(&[&asked[..], &[file.to_str().unwrap()]].concat());
        let claims = answer["claims"].as_array().unwrap();
        let texts: Vec<&str> = claims.iter().map(|claim| claim["text"].as_str().unwrap()).collect();
        assert!(texts.iter().any(|text| text.starts_with("In other words: ")), "{wire}: {answer}");
        assert!(!texts.contains(&"Invented."), "{wire}: a quote that is not there counts for nothing: {answer}");
        let contested = claims.iter().any(|claim| claim["controversy"].as_f64().unwrap_or(0.0) > 0.0);
        assert!(contested, "{wire}: the model's stances count: {answer}");
        let bodies: Vec<String> = server.asked().iter().map(|request| request.body.to_string()).collect();
        assert!(bodies.iter().any(|body| body.contains("\"passages\"") || body.contains("\\\"passages\\\"")), "{wire}");
        let task = answer["task_id"].as_str().unwrap();
        let exported = home.run_json(&["export", task, "--config", file.to_str().unwrap()]);
        let report = &exported["report"];
        assert_eq!((&report["method"], &report["model"]), (&json!("model"), &json!("reader")), "{wire}: {report}");
        assert_eq!(report["sentences_removed"], 2, "{wire}: what no claim says is removed and counted: {report}");
        let sentence = &report["answer"][0];
        assert!(!sentence["claim_ids"].as_array().unwrap().is_empty(), "{wire}: {report}");
        assert!(!sentence["citations"].as_array().unwrap().is_empty(), "{wire}: {report}");
    }
}

#[test]
fn a_name_that_no_provider_has_is_refused_in_words() {
    let home = Home::sqlite().with_variable("MATSU_RESEARCH_MODEL", "unknown");
    let ran = home.run(&["research", "anything"]);
    assert!(ran.code == 1 && ran.err.contains("research.model: there is no provider unknown"), "{}", ran.err);
}

/// The daemon is killed while it waits for the model; the command goes on with the work and shows the answer.
#[test]
fn a_search_in_the_terminal_outlives_its_daemon() {
    let is_first = AtomicBool::new(true);
    let author = move |asked: &Asked| {
        let slow = is_first.swap(false, Ordering::SeqCst);
        if slow { Reply::after(Duration::from_secs(600), vec![Part::Text("late".to_owned())]) } else { reader(asked) }
    };
    let server = ModelServer::with(Box::new(author)).unwrap();
    let home = Home::sqlite().with_variable("MATSU_RESEARCH_MODEL", "reader");
    let folder = documents(&home);
    let provider = "[providers.reader]\nwire = \"openai_chat\"\nmodel = \"m-1\"\n";
    let file = home.path("config.toml");
    std::fs::write(&file, format!("{provider}base_url = \"{}/v1\"\n", server.url())).unwrap();
    let file = file.to_str().unwrap();
    let mut daemon = home.serve_with(&["--config", file]);
    let asked = ["research", "long polling token use", "--dir", &folder, "--engine", "local", "--config", file];
    let mut command = home.start(&asked);
    assert!(server.wait_for_count(Duration::from_secs(20), 1), "{}", command.printed());
    daemon.process.kill();
    let (status, _) = command.ends_within(Duration::from_secs(60));
    assert!(status.success() && command.printed().contains("In other words: "), "{status}: {}", command.printed());
}

/// `auto`: nothing goes to a model before a person chose it; the choice takes effect at once, and is remembered.
#[test]
fn a_model_is_used_only_after_a_person_chose_it() {
    let server = ModelServer::with(Box::new(reader)).unwrap();
    let home = Home::sqlite().with_variable("MATSU_RESEARCH_MODEL", "auto");
    let folder = documents(&home);
    let provider = "[providers.reader]\nwire = \"openai_chat\"\nmodel = \"m-1\"\n";
    let file = home.path("config.toml");
    std::fs::write(&file, format!("{provider}base_url = \"{}/v1\"\n", server.url())).unwrap();
    let file = file.to_str().unwrap();
    let ask = || home.run_json(&["research", "long polling token use", "--dir", &folder, "--config", file]);
    {
        let daemon = home.serve_with(&["--config", file]);
        let before = ask();
        let task = before["task_id"].as_str().unwrap();
        let report = home.run(&["export", task, "--config", file]).good().out;
        assert!(report.contains("no model was chosen"), "{report}");
        assert_eq!(server.asked().len(), 0, "nothing is sent without a choice");
        let state = daemon.api.get("/api/v1/research/model");
        let names: Vec<&str> = state["options"].as_array().unwrap().iter().filter_map(|o| o["name"].as_str()).collect();
        assert!(state["asks"] == true && names.contains(&"reader") && names.last() == Some(&"embedded"), "{state}");
        let unknown = json!({ "model": "unknown" });
        let refused = daemon.api.send("POST", "/api/v1/research/model", Some(&unknown)).unwrap().json();
        assert!(refused["detail"].as_str().unwrap().contains("there is no provider unknown"), "{refused}");
        daemon.api.post("/api/v1/research/model", &json!({ "model": "reader" }));
        ask();
        assert!(!server.asked().is_empty(), "the daemon that runs uses it at once");
    }
    let asked = server.asked().len();
    let _daemon = home.serve_with(&["--config", file]);
    ask();
    assert!(server.asked().len() > asked, "the next daemon remembers it");
}
