//! What a person must know about a run besides its result: what its check came to, which tests it changed, which agents
//! were tried, and what it has cost beyond its budget.

use matsu_core::receipt::is_test;
use serde_json::Value;

use super::plain_text::{plain, plain_line};
use crate::client::field;

/// All of it, for the only run of a report, or for each of several under its name.
pub fn show(report: &Value) {
    let several = report["results"].as_array().map_or(&[][..], Vec::as_slice);
    show_one(report, "");
    for run in several {
        show_one(run, &format!("{}: ", field(run, "cli_name")));
    }
}

fn show_one(run: &Value, of: &str) {
    for tried in run["tried"].as_array().into_iter().flatten() {
        eprintln!("{of}{} was tried before: {}", field(tried, "agent"), plain_line(&field(tried, "why")));
    }
    let agent = field(run, "agent");
    if !agent.is_empty() {
        eprintln!("{of}{agent} worked on it last");
    }
    let over = field(run, "over_budget");
    if !over.is_empty() {
        eprintln!("{of}Note: {}; the run ended by itself, and nothing more is started for it", plain_line(&over));
    }
    let receipt = &run["receipt"];
    if !receipt.is_object() {
        return;
    }
    if receipt["passed"] != true {
        let output = field(run, "check_output");
        if !output.trim().is_empty() {
            eprintln!("{}", plain(&output).trim_end());
        }
    }
    eprintln!("{of}{}", line(receipt));
    tell_changed_tests(receipt, of);
}

/// A check in one line.
fn line(receipt: &Value) -> String {
    let commit: String = field(receipt, "head").chars().take(12).collect();
    format!(
        "check {}: {} (commit {commit}, {} s, {})",
        plain_line(&command(receipt)),
        plain_line(&verdict(receipt)),
        receipt["seconds"],
        counted(receipt["rounds"].as_u64().unwrap_or(1), "round")
    )
}

/// A report has the command as text, a stored receipt as it was given.
fn command(receipt: &Value) -> String {
    match (&receipt["command"], &receipt["check"]["command"]) {
        (Value::String(line), _) | (_, Value::String(line)) => line.clone(),
        (_, Value::Array(words)) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

/// Whether it passed, and why not.
pub fn verdict(receipt: &Value) -> String {
    match (receipt["passed"].as_bool(), receipt["why"].as_str()) {
        (Some(true), _) => "passed".to_owned(),
        (_, Some(why)) => format!("failed ({why})"),
        _ => "failed".to_owned(),
    }
}

/// A check that the run itself has changed proves less than it seems to.
pub fn tell_changed_tests(receipt: &Value, of: &str) {
    let names = receipt["changed_tests"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let (tests, build): (Vec<&str>, Vec<&str>) = names.partition(|name| is_test(name));
    for (what, names) in [("tests", tests), ("build files", build)] {
        if !names.is_empty() {
            let names = plain_line(&names.join(", "));
            eprintln!("{of}Note: the run changed {what}: {names}. Read these changes before you rely on the check");
        }
    }
}

/// `1 round`, `2 rounds`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
