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
fn a_secret_is_never_repeated() {
    let schema = json!({ "type": "object", "properties": {
        "passkey": { "type": "string", "maxLength": 5, "writeOnly": true },
    } });
    for given in [json!(["canary"]), json!("canary-too-long"), json!({ "canary": 1 })] {
        let error = arguments(&schema, &json!({ "passkey": given })).expect_err("it is refused");
        assert!(error.message.starts_with("passkey must be a string of at most 5 characters"), "{}", error.message);
        assert!(!error.message.contains("canary") && !error.details.to_string().contains("canary"), "{error:?}");
    }
}

#[test]
fn bounds_of_a_number_are_said_in_words() {
    let message = |bounds: Value, given: f64| {
        let mut schema = json!({ "type": "object", "properties": { "confidence": { "type": "number" } } });
        let property = schema["properties"]["confidence"].as_object_mut().expect("an object");
        property.extend(bounds.as_object().expect("an object").clone());
        arguments(&schema, &json!({ "confidence": given })).expect_err("it is refused").message
    };
    let both = message(json!({ "minimum": 0.0, "maximum": 1.0 }), 1.5);
    assert_eq!(both, "confidence must be a number from 0 to 1, got 1.5");
    assert_eq!(message(json!({ "minimum": 0.05 }), 0.0), "confidence must be a number of at least 0.05, got 0.0");
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

/// What is given, and the field, the expectation, what came and the message of its refusal.
type Case = (Value, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let with = |name: &str, value: Value| json!({ "task_id": "t", name: value });
    vec![
        (json!({}), "task_id", "string of 1..5 characters", "nothing", "task_id is required: a string of 1 to 5 characters"),
        (with("timeout", json!(61)), "timeout", "integer 0..60", "61", "timeout must be a whole number from 0 to 60, got 61"),
        (with("timeout", json!("5")), "timeout", "integer 0..60", "\"5\"", "timeout must be a whole number from 0 to 60, got \"5\""),
        (with("timeout", json!(1.5)), "timeout", "integer 0..60", "1.5", "timeout must be a whole number from 0 to 60, got 1.5"),
        (json!({ "task_id": "待つ待つ待つ" }), "task_id", "string of 1..5 characters", "\"待つ待つ待つ\"", "task_id must be a string of 1 to 5 characters, got \"待つ待つ待つ\""),
        (with("mode", json!("hard")), "mode", "one of graceful, immediate", "\"hard\"", "mode must be one of graceful, immediate, got \"hard\""),
        (with("ids", json!([])), "ids", "array of 1..2 items", "0 items", "ids must be a list of 1 to 2 items, got 0 items"),
        (with("ids", json!(["a", 7])), "ids[1]", "string", "7", "ids[1] must be a string, got 7"),
        (with("since", json!("x")), "since", "integer from 0 or object", "\"x\"", "since must be a whole number of at least 0 or an object, got \"x\""),
        (with("options", json!({ "deep": 1 })), "options.deep", "boolean", "1", "options.deep must be true or false, got 1"),
        (with("wait", json!(5)), "wait", "did you mean timeout?", "wait", "wait is not a parameter of this tool; did you mean timeout?"),
        (with("taskid", json!(5)), "taskid", "did you mean task_id?", "taskid", "taskid is not a parameter of this tool; did you mean task_id?"),
    ]
}

#[test]
fn each_refusal_names_the_field_what_was_expected_and_what_came() {
    for (given, name, expected, received, message) in cases() {
        let words = [name, expected, received, message].map(str::to_owned);
        assert_eq!(<[String; 4]>::from(refusal(given.clone())), words, "{given}");
    }
}

#[test]
fn a_whole_number_may_be_written_with_a_point() {
    let mut given = json!({ "task_id": "t", "timeout": 5.0, "since": { "a": 2.0 }, "other": 1.0 });
    whole_numbers(&schema(), &mut given);
    assert_eq!(given, json!({ "task_id": "t", "timeout": 5, "since": { "a": 2 }, "other": 1.0 }));
    let mut broken = json!({ "task_id": "t", "timeout": 5.5 });
    whole_numbers(&schema(), &mut broken);
    assert!(arguments(&schema(), &broken).is_err());
}

#[test]
fn a_long_value_is_not_repeated_whole() {
    let (_, _, received, _) = refusal(json!({ "task_id": "x".repeat(10_000) }));
    assert_eq!(received.chars().count(), SHOWN_CHARS_MAX);
}
