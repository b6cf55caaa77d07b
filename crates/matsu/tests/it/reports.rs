//! The report of research: answer first, citations that lead to their place, forms that keep page text harmless.

use serde_json::Value;

use crate::home::{Backend, Home};

const QUESTION: &str = "How long may a pod stay on an unreachable node?";

/// Documents about one question: two that say the same word for word, one that says otherwise, one that is hostile.
fn documents(home: &Home) -> String {
    let folder = home.path("documents");
    std::fs::create_dir_all(&folder).unwrap();
    let same = "A pod may stay on an unreachable node for 300 seconds.";
    for (name, head, text) in [
        ("a.md", "url: https://a.example.org/a\nauthor: Ann Writer\ndate: 2021-03-04", same),
        ("b.md", "url: https://b.example.net/b", same),
        ("c.md", "url: https://c.example.com/c", "The pod of a batch job is not bound to an unreachable node at all."),
        (
            "d.md",
            "url: https://d.example.de/d\ntitle: \"<script>alert(1)</script> {x} & y\"",
            "An unreachable node keeps a pod for <img src=x onerror=alert(1)> as long as [a link](javascript:alert(1)) says.",
        ),
    ] {
        let before = "This page is about clusters. It has two sentences before the fact.";
        let after = "What follows is about something else. It ends here.";
        std::fs::write(
            folder.join(name),
            format!("---\n{head}\n---\n# Nodes of {name}\n\n{before}\n\n{text}\n\n{after}\n"),
        )
        .unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

fn ask(home: &Home) -> String {
    let folder = documents(home);
    let answer = home.run_json(&["research", QUESTION, "--dir", &folder, "--engine", "local"]);
    answer["task_id"].as_str().unwrap().to_owned()
}

fn report(home: &Home, task: &str) -> Value {
    home.run_json(&["export", task, "--format", "json"])["report"].clone()
}

#[test]
fn a_report_answers_first_and_cites_quote_document_and_place() {
    let home = Home::new(Backend::Sqlite);
    let task = ask(&home);
    let report = report(&home, &task);
    assert_eq!(report["method"], "extractive");
    let sentence = &report["answer"][0];
    assert_eq!(sentence["text"], "A pod may stay on an unreachable node for 300 seconds.", "{report}");
    let numbers = sentence["citations"].as_array().unwrap();
    assert_eq!(numbers.len(), 2, "one claim with two origins: {report}");
    for number in numbers {
        let citation = &report["citations"][usize::try_from(number.as_u64().unwrap()).unwrap() - 1];
        assert_eq!(citation["quote"], "A pod may stay on an unreachable node for 300 seconds.", "{citation}");
        assert!(citation["url"].as_str().unwrap().starts_with("file://"), "{citation}");
        assert!(citation["heading"].as_str().unwrap().starts_with("Nodes of "), "{citation}");
        assert!(citation["passage"].as_u64().unwrap() >= 1, "{citation}");
    }
    assert_eq!(report["searched"][0]["query"], QUESTION, "{report}");
    assert_eq!(report["read"].as_array().unwrap().len(), 4, "{report}");
}

#[test]
fn a_citation_opens_between_what_stands_before_and_after_it_with_the_quote_marked() {
    let home = Home::new(Backend::Sqlite);
    let task = ask(&home);
    let citation = report(&home, &task)["citations"][0].clone();
    let daemon = home.serve();
    let path = format!("/api/v1/tasks/{task}/passages/{}", citation["fragment_id"].as_str().unwrap());
    let opened = daemon.api.get(&path);
    let pieces = opened["pieces"].as_array().unwrap();
    let quoted: Vec<&str> =
        pieces.iter().filter(|piece| piece["is_quoted"] == true).filter_map(|piece| piece["text"].as_str()).collect();
    assert!(quoted.contains(&citation["quote"].as_str().unwrap()), "{opened}");
    let whole: String = pieces.iter().filter_map(|piece| piece["text"].as_str()).collect();
    let around = format!("{}{whole}{}", opened["before"].as_str().unwrap(), opened["after"].as_str().unwrap());
    assert!(around.contains("two sentences before") && around.contains("something else"), "{opened}");
    let missing = daemon.api.send("GET", &format!("/api/v1/tasks/{task}/passages/frag_0"), None).unwrap();
    assert_eq!(missing.status, 404, "{}", missing.json());
}

#[test]
fn every_form_of_a_report_keeps_the_text_of_pages_harmless() {
    let home = Home::new(Backend::Sqlite);
    let task = ask(&home);
    let export = |format: &str| home.run(&["export", &task, "--format", format]).good().out;
    let html = export("html");
    assert!(html.starts_with("<!doctype html>") && html.contains("default-src 'none'"), "{html}");
    assert!(html.contains("id=\"c1\"") && html.contains("href=\"#c1\""), "{html}");
    assert!(!html.contains("<script") && !html.contains("<img") && !html.contains("href=\"javascript"), "{html}");
    let markdown = export("markdown");
    assert!(markdown.contains("## Answer") && markdown.contains("## Sources"), "{markdown}");
    assert!(markdown.contains("\\<script\\>"), "marks are escaped: {markdown}");
    assert!(
        markdown.contains("An unreachable node keeps a pod for as long as a link says."),
        "tags are gone: {markdown}"
    );
    let plain = markdown.replace("\\<", "").replace("\\]", "");
    assert!(!plain.contains("](javascript") && !plain.contains("<img") && !plain.contains("<script"), "{markdown}");
    let bibtex = export("bibtex");
    assert_eq!(bibtex.matches("@misc{").count(), bibtex.matches("urldate = {").count(), "{bibtex}");
    assert!(bibtex.contains("author = {{Ann Writer}}") && bibtex.contains("year = {2021}"), "{bibtex}");
    assert_eq!(bibtex.matches('{').count(), bibtex.matches('}').count(), "{bibtex}");
    let csl: Value = serde_json::from_str(&export("csl")).unwrap();
    let ann = csl.as_array().unwrap().iter().find(|entry| entry["author"][0]["literal"] == "Ann Writer").unwrap();
    assert_eq!(ann["issued"]["date-parts"][0][0], 2021, "{csl}");
    assert_eq!(ann["accessed"]["date-parts"][0].as_array().map(Vec::len), Some(3), "{csl}");
    assert!(csl.as_array().unwrap().iter().all(|entry| entry["id"].is_string() && entry["type"].is_string()), "{csl}");
}

#[test]
fn a_long_sentence_is_whole_in_a_compact_list() {
    let home = Home::new(Backend::Sqlite);
    let folder = home.path("documents");
    std::fs::create_dir_all(&folder).unwrap();
    let reasons: Vec<String> =
        (0..12).map(|n| format!("the controller number {n} of the cluster waits for it")).collect();
    let sentence = format!("A pod may stay on an unreachable node for 300 seconds because {}.", reasons.join(", "));
    assert!((400..800).contains(&sentence.len()), "{}", sentence.len());
    std::fs::write(folder.join("a.md"), format!("# Nodes\n\n{sentence}\n")).unwrap();
    let folder = folder.to_str().unwrap();
    let answer = home.run_json(&["research", QUESTION, "--dir", folder, "--engine", "local"]);
    let wish = format!("{{\"task_id\":{}}}", answer["task_id"]);
    let materials = home.run_json(&["call", "get_materials", &wish]);
    assert_eq!(materials["claims"][0]["text"], sentence, "{materials}");
}

#[test]
fn no_form_of_a_report_has_what_a_terminal_obeys() {
    let home = Home::new(Backend::Sqlite);
    let folder = home.path("documents");
    std::fs::create_dir_all(&folder).unwrap();
    let text =
        "An unreachable node keeps its \u{1b}[31mpod\u{1b}[0m for\u{1b}]0;PWNED\u{7} 300 seconds\u{9b}2J at most.";
    std::fs::write(folder.join("a.txt"), format!("\u{1b}]0;PWNED\u{7}Nodes of a cluster.\n\n{text}\n")).unwrap();
    let folder = folder.to_str().unwrap();
    let answer = home.run_json(&["research", QUESTION, "--dir", folder, "--engine", "local"]);
    let task = answer["task_id"].as_str().unwrap();
    let whole = |text: &str| text.replace(['\\', '\n'], " ");
    for format in ["markdown", "text", "html", "bibtex", "csl", "json"] {
        let out = home.run(&["export", task, "--format", format]).good().out;
        assert!(!out.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{format}: {out:?}");
        for rest in ["PWNED", "[31m", "[0m", "\\u001b", "\\u0007", "\\u009b"] {
            assert!(!out.contains(rest), "{format}: {rest}: {out}");
        }
        let is_shown = whole(&out).contains("An unreachable node keeps its pod for 300 seconds at most");
        assert!(is_shown || matches!(format, "csl" | "bibtex"), "{format}: {out}");
    }
    assert!(!answer.to_string().contains("PWNED") && !answer.to_string().contains("u001b"), "{answer}");
}

#[test]
fn a_report_says_what_was_not_found_and_what_was_skipped() {
    let home = Home::new(Backend::Sqlite);
    let folder = documents(&home);
    let ran = home.run(&["research", "unreachable node zeppelin", "--dir", &folder, "--engine", "local"]).good();
    assert!(ran.out.contains("No claim that was found mentions: zeppelin."), "{}", ran.out);
    assert!(ran.out.contains("## Searched"), "{}", ran.out);
    let ran = home.run(&["research", "zeppelin", "--dir", &folder, "--engine", "local"]);
    assert!(ran.out.contains("The search “zeppelin” found no claim"), "{ran:?}");
    assert!(ran.out.contains("No direct answer was found."), "{ran:?}");
}

#[test]
fn a_research_that_was_printed_is_read_and_belongs_to_its_folder() {
    let home = Home::new(Backend::Sqlite);
    let folder = documents(&home);
    home.run(&["research", QUESTION, "--dir", &folder, "--engine", "local"]).good();
    home.run_json(&["research", QUESTION, "--dir", &folder, "--engine", "local"]);
    let listed = home.run_json(&["tasks"]);
    let tasks = listed["items"].as_array().unwrap();
    assert_eq!(tasks.len(), 2, "{listed}");
    let folder = std::fs::canonicalize(&folder).unwrap();
    for task in tasks {
        assert_eq!(task["unread"], false, "{task}");
        assert_eq!(task["started_in"], folder.to_str().unwrap(), "{task}");
    }
}

#[test]
fn a_rejected_claim_takes_its_sentence_out_of_the_report() {
    let home = Home::new(Backend::Sqlite);
    let task = ask(&home);
    let claim = report(&home, &task)["answer"][0]["claim_ids"][0].as_str().unwrap().to_owned();
    home.run(&["feedback", "claim_reject", &claim, "--reason", "wrong"]).good();
    let after = report(&home, &task);
    assert!(!after["answer"].to_string().contains("300 seconds"), "{after}");
    assert!(after["notes"].to_string().contains("rejected by a person"), "{after}");
}
