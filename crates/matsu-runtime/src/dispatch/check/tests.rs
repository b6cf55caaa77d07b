//! What is refused, and in which words.

use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "task_id": { "type": "string", "minLength": 1, "maxLength": 5 },
            "timeout": { "type": "integer", "minimum": 0, "maximum": 60 },
            "mode": { "type": "string", "enum": ["graceful", "immediate"] },
            "ids": { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 2 },
            "since": { "anyOf": [
                { "type": "integer", "minimum": 0 },
                { "type": "object", "additionalProperties": { "type": "integer" } },
            ] },
            "options": { "type": "object", "properties": { "deep": { "type": "boolean" } },
                         "additionalProperties": false },
        },
        "required": ["task_id"],
        "additionalProperties": false,
    })
}

#[track_caller]
fn refusal(given: Value) -> (String, String, String, String) {
    let error = arguments(&schema(), &given).expect_err("it is refused");
    let detail = |name: &str| error.details[name].as_str().unwrap_or("").to_owned();
    (detail("param_name"), detail("expected"), detail("received"), error.message)
}

#[test]
fn what_fits_passes() {
    for given in [
        json!({ "task_id": "t" }),
        json!({ "task_id": "t", "timeout": 60, "mode": "graceful", "ids": ["a"], "since": 3 }),
        json!({ "task_id": "t", "since": { "a": 1 }, "options": { "deep": true }, "timeout": null }),
    ] {
        assert!(arguments(&schema(), &given).is_ok(), "{given}");
    }
}

#[test]
fn each_refusal_names_the_field_what_was_expected_and_what_came() {
    let words = |name: &str, expected: &str, received: &str, message: &str| {
        (name.to_owned(), expected.to_owned(), received.to_owned(), message.to_owned())
    };
    let table = [
        (
            json!({}),
            words("task_id", "string of 1..5 characters", "nothing", "task_id is required: string of 1..5 characters"),
        ),
        (
            json!({ "task_id": "t", "timeout": 61 }),
            words("timeout", "integer 0..60", "61", "timeout must be a whole number from 0 to 60, got 61"),
        ),
        (
            json!({ "task_id": "t", "timeout": "5" }),
            words("timeout", "integer 0..60", "\"5\"", "timeout must be a whole number from 0 to 60, got \"5\""),
        ),
        (
            json!({ "task_id": "t", "timeout": 1.5 }),
            words("timeout", "integer 0..60", "1.5", "timeout must be a whole number from 0 to 60, got 1.5"),
        ),
        (
            json!({ "task_id": "待つ待つ待つ" }),
            words(
                "task_id",
                "string of 1..5 characters",
                "\"待つ待つ待つ\"",
                "task_id must be string of 1..5 characters, got \"待つ待つ待つ\"",
            ),
        ),
        (
            json!({ "task_id": "t", "mode": "hard" }),
            words(
                "mode",
                "one of graceful, immediate",
                "\"hard\"",
                "mode must be one of graceful, immediate, got \"hard\"",
            ),
        ),
        (
            json!({ "task_id": "t", "ids": [] }),
            words("ids", "array of 1..2 items", "0 items", "ids must be array of 1..2 items, got 0 items"),
        ),
        (json!({ "task_id": "t", "ids": ["a", 7] }), words("ids[1]", "string", "7", "ids[1] must be string, got 7")),
        (
            json!({ "task_id": "t", "since": "x" }),
            words("since", "integer from 0 or object", "\"x\"", "since must be integer from 0 or object, got \"x\""),
        ),
        (
            json!({ "task_id": "t", "options": { "deep": 1 } }),
            words("options.deep", "boolean", "1", "options.deep must be boolean, got 1"),
        ),
        (
            json!({ "task_id": "t", "wait": 5 }),
            words(
                "wait",
                "did you mean timeout?",
                "wait",
                "wait is not a parameter of this tool; did you mean timeout?",
            ),
        ),
        (
            json!({ "task_id": "t", "taskid": 5 }),
            words(
                "taskid",
                "did you mean task_id?",
                "taskid",
                "taskid is not a parameter of this tool; did you mean task_id?",
            ),
        ),
    ];
    for (given, expected) in table {
        assert_eq!(refusal(given.clone()), expected, "{given}");
    }
}

#[test]
fn a_long_value_is_not_repeated_whole() {
    let (_, _, received, _) = refusal(json!({ "task_id": "x".repeat(10_000) }));
    assert_eq!(received.chars().count(), SHOWN_CHARS_MAX);
}
