//! Tags without the attributes that no reader looks at: a third of the bytes of a page without code. Names that only one
//! site has (`data-…`) are the slowest part of parsing.

use std::ops::Range;

/// What `blocks.rs`, `declared.rs`, `dom_smoothie` and the rules of parsing look at.
const READ: [&str; 28] = [
    "class",
    "id",
    "role",
    "itemprop",
    "data-testid",
    "data-component",
    "hidden",
    "aria-hidden",
    "aria-modal",
    "style",
    "href",
    "rel",
    "src",
    "data-src",
    "lang",
    "dir",
    "name",
    "property",
    "content",
    "type",
    "charset",
    "http-equiv",
    "colspan",
    "rowspan",
    "summary",
    "color",
    "face",
    "size",
];
/// Any attribute of these may name a film, which counts.
const WHOLE: [&str; 4] = ["iframe", "embed", "object", "annotation-xml"];

/// A tag that begins a text.
pub struct Tag {
    /// Where it ends.
    pub end: usize,
    /// What need not be parsed.
    pub unread: Vec<Range<usize>>,
}

/// The opening tag that `rest` begins with, as HTML divides it into attributes; `Ok(None)` if there is none.
///
/// # Errors
/// If it is not closed.
pub fn tag_of(rest: &str) -> Result<Option<Tag>, Unclosed> {
    let bytes = rest.as_bytes();
    if !bytes.get(1).is_some_and(u8::is_ascii_alphabetic) {
        return Ok(None);
    }
    let mut at = until(bytes, 1, |byte| is_space(byte) || matches!(byte, b'/' | b'>'));
    let is_whole = WHOLE.iter().any(|name| name.eq_ignore_ascii_case(&rest[1..at]));
    let mut unread = Vec::new();
    loop {
        at = until(bytes, at, |byte| !is_space(byte) && byte != b'/');
        match bytes.get(at) {
            None => return Err(Unclosed),
            Some(b'>') => return Ok(Some(Tag { end: at + 1, unread })),
            Some(_) => {}
        }
        let first = at;
        // A name may begin with the sign that ends it.
        at = until(bytes, at + 1, |byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'='));
        let is_read = is_whole || READ.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(&bytes[first..at]));
        at = end_of_value(bytes, at)?;
        if !is_read {
            unread.push(first..at);
        }
    }
}

/// No sign of the text closes a tag that was opened.
#[derive(Debug)]
pub struct Unclosed;

/// Where the value of a name that ends at `name_end` ends; the same place if it has none.
fn end_of_value(bytes: &[u8], name_end: usize) -> Result<usize, Unclosed> {
    let equals = until(bytes, name_end, |byte| !is_space(byte));
    if bytes.get(equals) != Some(&b'=') {
        return Ok(name_end);
    }
    let first = until(bytes, equals + 1, |byte| !is_space(byte));
    match bytes.get(first) {
        Some(quote @ (b'"' | b'\'')) => {
            let length = bytes[first + 1..].iter().position(|byte| byte == quote).ok_or(Unclosed)?;
            Ok(first + 1 + length + 1)
        }
        _ => Ok(until(bytes, first, |byte| is_space(byte) || byte == b'>')),
    }
}

/// The first place from `at` on that holds such a byte, or the end.
fn until(bytes: &[u8], at: usize, is_end: impl Fn(u8) -> bool) -> usize {
    bytes[at.min(bytes.len())..].iter().position(|byte| is_end(*byte)).map_or(bytes.len(), |length| at + length)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}
