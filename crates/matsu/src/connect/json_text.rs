//! Putting a member into JSON text without touching the rest of it. Comments and trailing commas, which editors allow,
//! are stepped over; the text is never parsed and written anew.

use anyhow::{Result, bail};

/// Where a value stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

/// The text with one more piece, and the piece as it was put in.
#[derive(Debug, PartialEq, Eq)]
pub struct Inserted {
    pub text: String,
    pub piece: String,
}

/// Puts `"key": value` first into the object at `path`, making what is missing on the way there.
pub fn insert_member(text: &str, path: &[&str], key: &str, value: &str) -> Result<Inserted> {
    if text.trim().is_empty() {
        let piece = format!("{{\n  {}\n}}\n", nested(path, key, value));
        return Ok(Inserted { text: format!("{text}{piece}"), piece });
    }
    let mut object = root(text)?;
    for (depth, name) in path.iter().enumerate() {
        match member(text, object, name)? {
            Some(found) if text.as_bytes()[found.start] == b'{' => object = found,
            Some(_) => bail!("{name:?} is not an object"),
            None => return Ok(put(text, object, &nested(&path[depth..], key, value))),
        }
    }
    if member(text, object, key)?.is_some() {
        bail!("there is a {key:?} already that is not ours; remove it first");
    }
    Ok(put(text, object, &format!("{}: {value}", quoted(key))))
}

/// Puts a value first into the array at `path`; makes the array if there is none.
pub fn insert_element(text: &str, path: &[&str], value: &str) -> Result<Inserted> {
    let Some((last, above)) = path.split_last() else { bail!("no path") };
    if !text.trim().is_empty() {
        let mut object = Some(root(text)?);
        for name in above {
            object = match object {
                Some(span) => member(text, span, name)?,
                None => None,
            };
        }
        if let Some(object) = object
            && let Some(array) = member(text, object, last)?
        {
            if text.as_bytes()[array.start] != b'[' {
                bail!("{last:?} is not an array");
            }
            return Ok(put(text, array, value));
        }
    }
    insert_member(text, above, last, &format!("[{value}]"))
}

fn nested(path: &[&str], key: &str, value: &str) -> String {
    let inner = format!("{}: {value}", quoted(key));
    path.iter().rev().fold(inner, |inner, name| format!("{}: {{ {inner} }}", quoted(name)))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Right after the opening bracket, on a line of its own, with a comma if something follows.
fn put(text: &str, container: Span, what: &str) -> Inserted {
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
    Inserted { text: format!("{}{piece}{}", &text[..at], &text[at..]), piece }
}

fn root(text: &str) -> Result<Span> {
    let start = skip(text, text.len() - text.trim_start_matches('\u{feff}').len());
    if text.as_bytes().get(start) != Some(&b'{') {
        bail!("this is not a JSON object");
    }
    Ok(Span { start, end: value_end(text, start)? })
}

/// The value of a member of the object.
fn member(text: &str, object: Span, name: &str) -> Result<Option<Span>> {
    let mut at = skip(text, object.start + 1);
    while at < object.end - 1 {
        let key_end = value_end(text, at)?;
        let key: String = serde_json::from_str(&text[at..key_end])?;
        at = skip(text, key_end);
        if text.as_bytes().get(at) != Some(&b':') {
            bail!("the JSON is broken near {key:?}");
        }
        let start = skip(text, at + 1);
        let end = value_end(text, start)?;
        if key == name {
            return Ok(Some(Span { start, end }));
        }
        at = skip(text, end);
        if text.as_bytes().get(at) == Some(&b',') {
            at = skip(text, at + 1);
        }
    }
    Ok(None)
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
    bail!("the JSON breaks off")
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
    bail!("a string in the JSON does not end")
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
        let inserted = insert_member(text, path, "m", "1").unwrap();
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
        let inserted = insert_element("{\"h\": {\"Stop\": [ 2 ]}}", &["h", "Stop"], "1").unwrap();
        assert_eq!(inserted.text, "{\"h\": {\"Stop\": [ 1, 2 ]}}");
        let made = insert_element("{ \"h\": {} }", &["h", "Stop"], "1").unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&made.text).unwrap()["h"]["Stop"][0], 1);
    }

    #[test]
    fn what_is_not_ours_is_not_overwritten() {
        assert!(insert_member("{ \"m\": 2 }", &[], "m", "1").is_err());
        assert!(insert_member("{ \"s\": 2 }", &["s"], "m", "1").is_err());
        assert!(insert_member("[]", &[], "m", "1").is_err());
        assert!(insert_member("{ \"s\": ", &["s"], "m", "1").is_err());
    }
}
