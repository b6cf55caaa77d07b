//! Putting a member into JSON text, and taking it out, without touching the rest of it. Comments and trailing commas,
//! which editors allow, are stepped over; the text is never parsed and written anew.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A person has made the entry that Matsu would write.
#[derive(Debug, thiserror::Error)]
#[error("it already has an entry {0:?} that Matsu did not write; to let Matsu set it up, remove that entry first")]
pub struct ByHand(pub String);

/// Where a value stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

/// The text with one more piece, the piece as it was put in, and how to find it after another program has moved it.
#[derive(Debug, PartialEq)]
pub struct Inserted {
    pub text: String,
    pub piece: String,
    pub place: Option<JsonSpan>,
}

/// Where a value was put, for a client that writes its whole file anew, in an order and with spaces of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JsonSpan {
    /// Names on the way from the root; the last one is the member itself, or the array it stands in.
    path: Vec<String>,
    /// How many of these names were made for it.
    made: usize,
    value: Value,
    is_element: bool,
}

impl JsonSpan {
    /// Where a piece begins that was put here and that nothing was put before since.
    pub fn start_of(&self, text: &str, piece: &str) -> Option<usize> {
        // A text without anything in it got the whole object.
        if piece.starts_with('{') {
            return text.find(piece);
        }
        let names: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let container = at_path(text, names.get(..names.len().checked_sub(self.made)?)?).ok()??;
        let at = container.start + 1;
        text.get(at..)?.starts_with(piece).then_some(at)
    }
}

/// Puts `"key": value` first into the object at `path`, making what is missing on the way there.
pub fn insert_member(text: &str, path: &[&str], key: &str, value: &Value) -> Result<Inserted> {
    let whole: Vec<&str> = path.iter().copied().chain([key]).collect();
    let placed = |made: usize| Some(JsonSpan { path: owned(&whole), made, value: value.clone(), is_element: false });
    if is_blank(text) {
        let piece = format!("{{\n  {}\n}}\n", nested(path, key, value));
        return Ok(Inserted { text: format!("{text}{piece}"), piece, place: placed(whole.len()) });
    }
    let mut object = root(text)?;
    for (depth, name) in path.iter().enumerate() {
        match member(text, object, name)? {
            Some(found) if text.as_bytes()[found.start] == b'{' => object = found,
            Some(_) => bail!("{name:?} is not an object"),
            None => return Ok(put(text, object, &nested(&path[depth..], key, value), placed(whole.len() - depth))),
        }
    }
    if member(text, object, key)?.is_some() {
        return Err(ByHand(key.to_owned()).into());
    }
    Ok(put(text, object, &format!("{}: {value}", quoted(key)), placed(1)))
}

/// Puts a value first into the array at `path`; makes the array if there is none.
pub fn insert_element(text: &str, path: &[&str], value: &Value) -> Result<Inserted> {
    let Some((last, above)) = path.split_last() else { bail!("no path") };
    let placed = |made: usize| Some(JsonSpan { path: owned(path), made, value: value.clone(), is_element: true });
    if let Some(array) = at_path(text, path)? {
        if text.as_bytes()[array.start] != b'[' {
            bail!("{last:?} is not an array");
        }
        return Ok(put(text, array, &value.to_string(), placed(0)));
    }
    let inserted = insert_member(text, above, last, &Value::Array(vec![value.clone()]))?;
    let made = inserted.place.as_ref().map_or(0, |place| place.made);
    Ok(Inserted { place: placed(made), ..inserted })
}

/// The text without what was put there; `None` if it is not there any more, or not as it was.
pub fn take_out(text: &str, place: &JsonSpan) -> Result<Option<String>> {
    let names: Vec<&str> = place.path.iter().map(String::as_str).collect();
    let Some((last, above)) = names.split_last() else { return Ok(None) };
    let (container, is_it): (_, &dyn Fn(&Item) -> bool) = if place.is_element {
        (at_path(text, &names)?, &|_| true)
    } else {
        (at_path(text, above)?, &|item| item.key.as_deref() == Some(last))
    };
    let Some(container) = container else { return Ok(None) };
    let is_same = |item: &Item| value_at(text, item.value).is_some_and(|value| value == place.value);
    let Some(item) = items(text, container)?.into_iter().find(|item| is_it(item) && is_same(item)) else {
        return Ok(None);
    };
    let mut left = without(text, container, &item);
    // What was made for it goes with it, if it holds nothing else now.
    let holders = if place.is_element { names.len() } else { above.len() };
    let made = place.made.saturating_sub(usize::from(!place.is_element));
    for depth in (holders - made.min(holders)..holders).rev() {
        let Some(empty) = at_path(&left, &names[..=depth])?.filter(|span| is_empty(&left, *span)) else { break };
        let Some(holder) = at_path(&left, &names[..depth])? else { break };
        let Some(item) = items(&left, holder)?.into_iter().find(|item| item.value == empty) else { break };
        left = without(&left, holder, &item);
    }
    Ok(Some(left))
}

fn owned(path: &[&str]) -> Vec<String> {
    path.iter().map(|name| (*name).to_owned()).collect()
}

/// The value that stands under these names.
fn at_path(text: &str, path: &[&str]) -> Result<Option<Span>> {
    if is_blank(text) {
        return Ok(None);
    }
    let mut found = Some(root(text)?);
    for name in path {
        found = match found {
            Some(object) if text.as_bytes()[object.start] == b'{' => member(text, object, name)?,
            _ => return Ok(None),
        };
    }
    Ok(found)
}

/// Nothing but the white space of JSON.
fn is_blank(text: &str) -> bool {
    text.trim_matches([' ', '\t', '\r', '\n']).is_empty()
}

fn value_at(text: &str, span: Span) -> Option<Value> {
    serde_json::from_str(&text[span.start..span.end]).ok()
}

fn is_empty(text: &str, container: Span) -> bool {
    skip(text, container.start + 1) >= container.end - 1
}

/// With its comma: the one that follows, or the one before it if it is the last.
fn without(text: &str, container: Span, item: &Item) -> String {
    let next = skip(text, item.value.end);
    let (from, to) = match (text.as_bytes().get(next), item.comma_before) {
        (Some(b','), _) => (item.from, next + 1),
        (_, Some(comma)) => (comma, item.value.end),
        // Alone: the bracket closes right after it opened.
        _ => (item.from, container.end - 1),
    };
    format!("{}{}", &text[..from], &text[to..])
}

fn nested(path: &[&str], key: &str, value: &Value) -> String {
    let inner = format!("{}: {value}", quoted(key));
    path.iter().rev().fold(inner, |inner, name| format!("{}: {{ {inner} }}", quoted(name)))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Right after the opening bracket, on a line of its own, with a comma if something follows.
fn put(text: &str, container: Span, what: &str, place: Option<JsonSpan>) -> Inserted {
    let at = container.start + 1;
    let inside = &text[at..container.end - 1];
    let follows = skip(text, at) < container.end - 1;
    let indent: String = match inside.find('\n') {
        Some(end) => {
            let line = &inside[end + 1..];
            let white: String = line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
            if follows { white } else { format!("{white}  ") }
        }
        None => "  ".to_owned(),
    };
    let piece = if inside.contains('\n') || !follows {
        format!("\n{indent}{what}{}", if follows { "," } else { "" })
    } else {
        format!(" {what},")
    };
    let piece = if follows || inside.contains('\n') { piece } else { format!("{piece}\n") };
    Inserted { text: format!("{}{piece}{}", &text[..at], &text[at..]), piece, place }
}

fn root(text: &str) -> Result<Span> {
    let start = skip(text, text.len() - text.trim_start_matches('\u{feff}').len());
    if text.as_bytes().get(start) != Some(&b'{') {
        bail!("this is not a JSON object");
    }
    Ok(Span { start, end: value_end(text, start)? })
}

/// One of the things in an object or an array.
struct Item {
    key: Option<String>,
    /// Right after the bracket or the comma before it.
    from: usize,
    comma_before: Option<usize>,
    value: Span,
}

/// The value of a member of the object.
fn member(text: &str, object: Span, name: &str) -> Result<Option<Span>> {
    // Of a name that stands twice the last one counts, as for the parsers of all clients.
    let found = items(text, object)?.into_iter().rfind(|item| item.key.as_deref() == Some(name));
    Ok(found.map(|item| item.value))
}

fn items(text: &str, container: Span) -> Result<Vec<Item>> {
    let is_object = text.as_bytes()[container.start] == b'{';
    let (mut found, mut from, mut comma_before) = (Vec::new(), container.start + 1, None);
    let mut at = skip(text, from);
    while at < container.end - 1 {
        let mut key = None;
        if is_object {
            let key_end = value_end(text, at)?;
            let name: String = serde_json::from_str(&text[at..key_end])?;
            at = skip(text, key_end);
            if text.as_bytes().get(at) != Some(&b':') {
                bail!("the JSON is broken near {name:?}");
            }
            at = skip(text, at + 1);
            key = Some(name);
        }
        let value = Span { start: at, end: value_end(text, at)? };
        if value.end == value.start {
            bail!("the JSON is broken");
        }
        found.push(Item { key, from, comma_before, value });
        at = skip(text, value.end);
        if text.as_bytes().get(at) == Some(&b',') {
            (comma_before, from) = (Some(at), at + 1);
            at = skip(text, at + 1);
        }
    }
    Ok(found)
}

/// Where the value that starts here ends.
fn value_end(text: &str, start: usize) -> Result<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at)?,
            b'{' | b'[' => (depth, at) = (depth + 1, at + 1),
            b'}' | b']' if depth > 0 => (depth, at) = (depth - 1, at + 1),
            b'/' if skip(text, at) > at => at = skip(text, at),
            b',' | b'}' | b']' | b':' if depth == 0 => return Ok(at),
            _ => {
                at += 1;
                // A bare word: it ends where something else begins.
                if depth == 0 && bytes.get(at).is_none_or(|next| next.is_ascii_whitespace() || b",}]".contains(next)) {
                    return Ok(at);
                }
                continue;
            }
        }
        if depth == 0 {
            return Ok(at);
        }
    }
    bail!("the JSON ends too early")
}

fn string_end(bytes: &[u8], start: usize) -> Result<usize> {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return Ok(at + 1),
            _ => at += 1,
        }
    }
    bail!("a string in the JSON has no end")
}

/// Past white space and comments.
fn skip(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    loop {
        match bytes.get(at) {
            Some(byte) if byte.is_ascii_whitespace() => at += 1,
            Some(b'/') if bytes.get(at + 1) == Some(&b'/') => {
                at = text[at..].find('\n').map_or(text.len(), |end| at + end);
            }
            Some(b'/') if bytes.get(at + 1) == Some(&b'*') => {
                at = text[at..].find("*/").map_or(text.len(), |end| at + end + 2);
            }
            _ => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, path: &[&str], expected: &str) {
        let inserted = insert_member(text, path, "m", &Value::from(1)).unwrap();
        assert_eq!(inserted.text, expected);
        assert_eq!(inserted.text.replacen(&inserted.piece, "", 1), text, "taking it out restores the text");
    }

    #[test]
    fn a_member_is_put_in_and_the_rest_stays() {
        check("{}", &[], "{\n  \"m\": 1\n}");
        check("{ \"a\": 2 }", &[], "{ \"m\": 1, \"a\": 2 }");
        check("{\n    \"a\": {}\n}\n", &[], "{\n    \"m\": 1,\n    \"a\": {}\n}\n");
        check("{\n  \"s\": { \"x\": [1, {}] },\n}", &["s"], "{\n  \"s\": { \"m\": 1, \"x\": [1, {}] },\n}");
        check("// c\n{ \"a\\\"}\": /* } */ true }", &["s"], "// c\n{ \"s\": { \"m\": 1 }, \"a\\\"}\": /* } */ true }");
        check("", &["s"], "{\n  \"s\": { \"m\": 1 }\n}\n");
    }

    #[test]
    fn an_element_comes_first() {
        let inserted = insert_element("{\"h\": {\"Stop\": [ 2 ]}}", &["h", "Stop"], &Value::from(1)).unwrap();
        assert_eq!(inserted.text, "{\"h\": {\"Stop\": [ 1, 2 ]}}");
        let made = insert_element("{ \"h\": {} }", &["h", "Stop"], &Value::from(1)).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&made.text).unwrap()["h"]["Stop"][0], 1);
    }

    /// Put into `before`, moved about as `moved`, and taken out of that.
    #[track_caller]
    fn comes_out(before: &str, moved: &str, left: Option<&str>) {
        let place = insert_member(before, &["s"], "m", &Value::from(1)).unwrap().place.unwrap();
        assert_eq!(take_out(moved, &place).unwrap().as_deref(), left, "{moved}");
    }

    #[test]
    fn what_was_moved_about_comes_out_by_its_name() {
        let had = "{\"s\": {\"a\": 2}}";
        comes_out(
            had,
            "{\n  \"s\": {\n    \"a\": 2,\n    \"m\": 1\n  }\n}",
            Some("{\n  \"s\": {\n    \"a\": 2\n  }\n}"),
        );
        comes_out(had, "{\"s\": {\"m\": 1, \"a\": 2}, \"z\": 3}", Some("{\"s\": { \"a\": 2}, \"z\": 3}"));
        comes_out(had, "{\"s\": { \"m\": 1 }}", Some("{\"s\": {}}"));
        comes_out(had, "{\"s\": { \"m\": 2 }}", None);
        comes_out(had, "{\"s\": []}", None);
        // What was made for it goes, unless others use it.
        comes_out("{}", "{\n  \"s\": {\n    \"m\": 1\n  }\n}", Some("{}"));
        comes_out("{}", "{\"x\": 1, \"s\": {\"m\": 1}}", Some("{\"x\": 1}"));
        comes_out("{}", "{\"s\": {\"m\": 1, \"b\": 2}}", Some("{\"s\": { \"b\": 2}}"));
        let element = insert_element("{}", &["h", "Stop"], &Value::from(1)).unwrap().place.unwrap();
        assert_eq!(take_out("{\"h\": {\"Stop\": [1]}, \"a\": 2}", &element).unwrap().unwrap(), "{ \"a\": 2}");
        assert_eq!(take_out("{\"h\": {\"Stop\": [0, 1]}}", &element).unwrap().unwrap(), "{\"h\": {\"Stop\": [0]}}");
        assert_eq!(take_out("{\"h\": {\"Stop\": [0]}}", &element).unwrap(), None);
    }

    #[test]
    fn what_is_not_ours_is_not_overwritten() {
        assert!(insert_member("{ \"m\": 2 }", &[], "m", &Value::from(1)).is_err());
        assert!(insert_member("{ \"s\": 2 }", &["s"], "m", &Value::from(1)).is_err());
        assert!(insert_member("[]", &[], "m", &Value::from(1)).is_err());
        assert!(insert_member("{ \"s\": ", &["s"], "m", &Value::from(1)).is_err());
    }
}
