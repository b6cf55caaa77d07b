//! `matsu watch` over the whole screen of a real terminal.

use serde_json::Value;

use super::super::{Bench, SOON};
use super::ASKS;
use crate::home::until;

/// Works until it is ended.
const LONG: &str = "sleep 600";

fn task(bench: &Bench, id: &str) -> Value {
    let listed = bench.run(&["tasks", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let one = listed["items"].as_array().unwrap().iter().find(|one| one["task_id"] == id);
    one.unwrap_or_else(|| panic!("{listed}")).clone()
}

fn status(bench: &Bench, id: &str) -> String {
    task(bench, id)["status"].as_str().unwrap().to_owned()
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
    // The list is drawn as a whole when it comes back; a later change would draw one digit of the count.
    until("the run has ended", SOON, || (status(&bench, &asking) == "completed").then_some(()));
    screen.say("");
    screen.wait_for("1 unread", SOON);
    // What begins meanwhile appears by itself.
    let long = bench.detached("script", LONG);
    screen.wait_for(&long, SOON);
    until("it runs", SOON, || (status(&bench, &long) == "running").then_some(()));
    // Only what changes on the screen is drawn again, so the question itself is not looked for.
    screen.press(b'c');
    screen.press(b'y');
    until("it is to end", SOON, || task(&bench, &long)["stop"].is_object().then_some(()));
    // The result of the other one, which is last, is on the ordinary screen again.
    screen.press(b'G');
    screen.press(b'\r');
    screen.wait_for("went on", SOON);
    screen.wait_for("back to the list", SOON);
    screen.say("");
    // What is typed before the list is back belongs to the line that brings it back.
    until("the list is back", SOON, || (screen.shown().matches("\u{1b}[?1049h").count() == 3).then_some(()));
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
