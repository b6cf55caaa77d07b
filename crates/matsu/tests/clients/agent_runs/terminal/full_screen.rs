//! `matsu watch` over the whole screen of a real terminal.

use super::super::{Bench, SOON};
use super::ASKS;
use crate::home::until;

/// Works until it is ended.
const LONG: &str = "sleep 600";

fn status(bench: &Bench, task: &str) -> String {
    let listed = bench.run(&["tasks", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    let one = listed["items"].as_array().unwrap().iter().find(|one| one["task_id"] == task);
    one.unwrap_or_else(|| panic!("{listed}"))["status"].as_str().unwrap().to_owned()
}

#[test]
fn the_full_screen_follows_what_happens_and_answers_and_cancels() {
    let bench = Bench::new();
    let asking = bench.detached("events", ASKS);
    until("it asks", SOON, || (status(&bench, &asking) == "input_required").then_some(()));
    let mut screen = bench.terminal(&["watch"]);
    screen.wait_for("1 asking", SOON);
    screen.wait_for(&asking, SOON);
    // The bar is on the question; the answer is given on the ordinary screen.
    screen.press(b'a');
    // The title of the task has the question in it, so the prompt is what is waited for.
    screen.wait_for("Answer (number or option): ", SOON);
    screen.say("1");
    screen.wait_for("back to the list", SOON);
    screen.say("");
    screen.wait_for("1 unread", SOON);
    // What begins meanwhile appears by itself.
    let long = bench.detached("script", LONG);
    screen.wait_for(&long, SOON);
    until("it runs", SOON, || (status(&bench, &long) == "running").then_some(()));
    screen.press(b'c');
    screen.wait_for(&format!("Cancel {long}?"), SOON);
    screen.press(b'y');
    until("it is cancelled", SOON, || (status(&bench, &long) == "cancelled").then_some(()));
    // The result of the other one is on the ordinary screen again.
    screen.press(b'g');
    screen.press(b'\r');
    screen.wait_for("went on", SOON);
    screen.wait_for("back to the list", SOON);
    screen.say("");
    screen.press(b'q');
    assert_eq!(screen.code(SOON), Some(0));
    let shown = screen.shown();
    let (on, off) = (shown.matches("\u{1b}[?1049h").count(), shown.matches("\u{1b}[?1049l").count());
    assert!(on == off && on == 3, "the terminal is as it was: {on} {off}");
}

#[test]
fn without_a_terminal_the_full_screen_names_the_lines() {
    let bench = Bench::new();
    let ran = bench.run(&["watch"]);
    assert!(ran.code == 1 && ran.err.contains("matsu watch --lines"), "{ran:?}");
}
