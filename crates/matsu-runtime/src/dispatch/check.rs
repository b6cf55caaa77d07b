//! Arguments against a schema, with an answer that names the field, what was expected and what came.
//!
//! Covers what our own derived schemas use. A keyword it does not know is ignored, so serde has the last word.

use serde_json::{Map, Value};

use crate::tool::ToolError;

/// How much of a received value an answer repeats.
const SHOWN_CHARS_MAX: usize = 80;

/// Up to here a float holds every whole number exactly.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Writes `5.0` as `5` where the schema asks for an integer: JSON has one kind of number, and some clients send it so.
pub fn whole_numbers(schema: &Value, given: &mut Value) {
    let choices = schema["anyOf"].as_array();
    match given {
        Value::Number(number) => {
            let is_integer = |schema: &Value| schema["type"] == "integer";
            let wanted = is_integer(schema) || choices.is_some_and(|choices| choices.iter().any(is_integer));
            if wanted
                && number.is_f64()
                && let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < WHOLE_MAX)
            {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
                let whole = float as i64;
                *given = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| whole_numbers(&schema["items"], item)),
        Value::Object(fields) => {
            let open = choices.into_iter().flatten().find(|choice| choice["type"] == "object").unwrap_or(schema);
            for (name, value) in fields {
                whole_numbers(open["properties"].get(name).unwrap_or(&open["additionalProperties"]), value);
            }
        }
        _ => {}
    }
}

/// Checks an object of arguments.
///
/// # Errors
/// The first field that does not fit.
pub fn arguments(schema: &Value, arguments: &Value) -> Result<(), ToolError> {
    value(schema, "", arguments)
}

fn value(schema: &Value, path: &str, given: &Value) -> Result<(), ToolError> {
    if let Some(choices) = schema["anyOf"].as_array()
        && !choices.iter().any(|choice| value(choice, path, given).is_ok())
    {
        // Where only one of them can be meant, what is wrong with it says more.
        let mut meant = choices.iter().filter(|choice| choice["type"].as_str() == Some(holder(given)));
        if let (Some(only), None) = (meant.next(), meant.next()) {
            return value(only, path, given);
        }
        let expected = choices.iter().map(expected).collect::<Vec<_>>().join(" or ");
        return Err(refused(schema, path, &expected, given));
    }
    let fits = match schema["type"].as_str() {
        _ if !schema["const"].is_null() => schema["const"] == *given,
        Some("object") => return object(schema, path, given),
        None if schema["properties"].is_object() => return object(schema, path, given),
        Some("array") => return array(schema, path, given),
        Some("string") => given.as_str().is_some_and(|text| text_fits(schema, text)),
        Some("integer") => given.as_i64().is_some_and(|number| number_fits(schema, number as f64)),
        Some("number") => given.as_f64().is_some_and(|number| number_fits(schema, number)),
        Some("boolean") => given.is_boolean(),
        _ => true,
    };
    if fits { Ok(()) } else { Err(refused(schema, path, &expected(schema), given)) }
}

fn object(schema: &Value, path: &str, given: &Value) -> Result<(), ToolError> {
    let Some(fields) = given.as_object() else { return Err(refused(schema, path, "object", given)) };
    let none = Map::new();
    let known = schema["properties"].as_object().unwrap_or(&none);
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let is_there = match fields.get(required) {
            Some(Value::Null) => false,
            given => given.is_some(),
        };
        if !is_there {
            let name = join(path, required);
            let expected = known.get(required).map_or_else(|| "a value".to_owned(), expected);
            let message = format!("{name} is required: {}", in_words(&expected));
            return Err(ToolError::param(&name, &expected, "nothing", message));
        }
    }
    for (name, given) in fields {
        let path = join(path, name);
        match (known.get(name), &schema["additionalProperties"]) {
            (Some(_), _) if given.is_null() => {}
            (Some(schema), _) => value(schema, &path, given)?,
            (None, Value::Bool(false)) => return Err(unknown(&path, name, known)),
            (None, others @ Value::Object(_)) => value(others, &path, given)?,
            (None, _) => {}
        }
    }
    Ok(())
}

fn array(schema: &Value, path: &str, given: &Value) -> Result<(), ToolError> {
    let Some(items) = given.as_array() else { return Err(refused(schema, path, &expected(schema), given)) };
    let least = schema["minItems"].as_u64().unwrap_or(0);
    let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
    if !(least..=most).contains(&(items.len() as u64)) {
        let expected = expected(schema);
        let message = format!("{path} must be {}, got {} items", in_words(&expected), items.len());
        return Err(ToolError::param(path, &expected, &format!("{} items", items.len()), message));
    }
    items.iter().enumerate().try_for_each(|(at, item)| value(&schema["items"], &format!("{path}[{at}]"), item))
}

/// The type of a schema whose parts have places of their own.
fn holder(given: &Value) -> &'static str {
    match given {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        _ => "neither",
    }
}

fn text_fits(schema: &Value, text: &str) -> bool {
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().any(|word| word == text);
    }
    let chars = text.chars().count() as u64;
    (schema["minLength"].as_u64().unwrap_or(0)..=schema["maxLength"].as_u64().unwrap_or(u64::MAX)).contains(&chars)
}

fn number_fits(schema: &Value, number: f64) -> bool {
    schema["minimum"].as_f64().is_none_or(|least| number >= least)
        && schema["maximum"].as_f64().is_none_or(|most| number <= most)
}

/// A schema in a few words: `integer 0..60`, `one of a, b`.
fn expected(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", words.join(", "));
    }
    let bounds = |least: &str, most: &str| match (&schema[least], &schema[most]) {
        (Value::Null, Value::Null) => String::new(),
        (least, Value::Null) => format!(" from {least}"),
        (Value::Null, most) => format!(" up to {most}"),
        (least, most) => format!(" {least}..{most}"),
    };
    match schema["type"].as_str() {
        Some("string") => match bounds("minLength", "maxLength").as_str() {
            "" => "string".to_owned(),
            bounds => format!("string of{bounds} characters"),
        },
        Some("array") => format!("array of{} items", bounds("minItems", "maxItems")),
        Some(name) => format!("{name}{}", bounds("minimum", "maximum")),
        None => "a value".to_owned(),
    }
}

/// Repeats what came, unless the schema says that it is a secret: an answer is logged, and read by others.
fn refused(schema: &Value, path: &str, expected: &str, given: &Value) -> ToolError {
    let shown = match schema["writeOnly"].as_bool() {
        Some(true) => kind_of(given).to_owned(),
        _ => matsu_core::job::end::clip(&given.to_string(), SHOWN_CHARS_MAX),
    };
    let name = if path.is_empty() { "arguments" } else { path };
    ToolError::param(name, expected, &shown, format!("{name} must be {}, got {shown}", in_words(expected)))
}

fn kind_of(given: &Value) -> &'static str {
    match given {
        Value::Null => "null",
        Value::Bool(_) => "a boolean (not shown)",
        Value::Number(_) => "a number (not shown)",
        Value::String(_) => "a string of another length (not shown)",
        Value::Array(_) => "an array (not shown)",
        Value::Object(_) => "an object (not shown)",
    }
}

/// An expectation as part of a sentence: `integer 0..60` is "a whole number from 0 to 60".
fn in_words(expected: &str) -> String {
    expected.split(" or ").map(one_in_words).collect::<Vec<_>>().join(" or ")
}

fn one_in_words(expected: &str) -> String {
    let plain = |bounds: &str| bounds.replace("..", " to ").replace("from ", "at least ").replace("up to ", "at most ");
    match expected.split_once(' ') {
        Some(("integer", bounds)) if bounds.contains("..") => format!("a whole number from {}", plain(bounds)),
        Some(("integer", bounds)) => format!("a whole number of {}", plain(bounds)),
        Some(("number", bounds)) => match bounds.split_once("..") {
            Some((least, most)) => format!("a number from {} to {}", whole(least), whole(most)),
            None => format!("a number of {}", plain(whole(bounds))),
        },
        Some(("string", bounds)) => format!("a string {}", plain(bounds)),
        Some(("array", bounds)) => format!("a list {}", plain(bounds)),
        Some(_) => expected.to_owned(),
        None => match expected {
            "integer" => "a whole number".to_owned(),
            "boolean" => "true or false".to_owned(),
            "object" => "an object".to_owned(),
            other => format!("a {other}"),
        },
    }
}

/// `1.0` as people write it.
fn whole(number: &str) -> &str {
    number.strip_suffix(".0").unwrap_or(number)
}

fn unknown(path: &str, name: &str, known: &Map<String, Value>) -> ToolError {
    let near = known.keys().map(|key| (likeness(name, key), key));
    let near = near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > 0.7);
    let hint = match near {
        Some((_, key)) => format!("did you mean {key}?"),
        None => format!("known are {}", known.keys().cloned().collect::<Vec<_>>().join(", ")),
    };
    ToolError::param(path, &hint, name, format!("{path} is not a parameter of this tool; {hint}"))
}

/// The three words for waiting are easily confused, and not alike enough for the letters to tell.
fn likeness(name: &str, key: &str) -> f64 {
    const WAITING: [&str; 3] = ["wait", "timeout", "timeout_seconds"];
    if WAITING.contains(&name) && WAITING.contains(&key) { 1.0 } else { strsim::jaro_winkler(name, key) }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests;
