//! Files of AI clients, which `matsu connect` changes: what was there stays there, and undoing restores it to the byte.

use serde_json::{Value, json};

use crate::connect::clients::Timeout;
use crate::connect::json_text::{Inserted, insert_element, insert_member, take_out};
use crate::connect::pieces::{Piece, insert_table};
use crate::input::choice;

pub fn run(data: &[u8]) {
    let (which, data) = choice(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    match which % 3 {
        0 => member(text),
        1 => element(text),
        _ => table(text),
    }
}

fn member(text: &str) {
    let value = json!({ "command": "/bin/matsu", "args": ["mcp"] });
    let Ok(inserted) = insert_member(text, &["mcpServers"], "matsu", &value) else { return };
    is_only_longer(text, &inserted);
    let Ok(after) = serde_json::from_str::<Value>(&inserted.text) else { return is_no_json(text) };
    assert_eq!(after["mcpServers"]["matsu"], value, "it is not there");
    comes_out(text, inserted, |before| before);
}

fn element(text: &str) {
    let value = json!({ "hooks": [{ "type": "command", "command": "/bin/matsu hook stop" }] });
    let Ok(inserted) = insert_element(text, &["hooks", "Stop"], &value) else { return };
    is_only_longer(text, &inserted);
    let Ok(after) = serde_json::from_str::<Value>(&inserted.text) else { return is_no_json(text) };
    assert_eq!(after["hooks"]["Stop"][0], value, "it is not there");
    comes_out(text, inserted, |before| before);
}

/// One piece more, in one place.
fn is_only_longer(text: &str, inserted: &Inserted) {
    let Inserted { text: after, piece, .. } = inserted;
    assert_eq!(after.len(), text.len() + piece.len(), "more was changed than put in");
    let fits =
        |at: usize| after.get(at..at + piece.len()) == Some(piece) && text.get(at..) == after.get(at + piece.len()..);
    assert!((0..=text.len()).any(|at| text.get(..at) == after.get(..at) && fits(at)), "something else was changed");
}

fn is_no_json(text: &str) {
    let before = serde_json::from_str::<Value>(text);
    assert!(
        before.is_err() && !text.trim_matches([' ', '\t', '\r', '\n']).is_empty(),
        "JSON that is none any more: {text:?}"
    );
}

/// Letter for letter, and by its place after a client has written the file anew.
fn comes_out(text: &str, inserted: Inserted, expected: impl Fn(Value) -> Value) {
    let Ok(after) = serde_json::from_str::<Value>(&inserted.text) else { return };
    let piece = Piece { text: inserted.piece, place: inserted.place };
    assert_eq!(piece.taken_out_of(&inserted.text).as_deref(), Some(text), "undoing does not restore the file");
    let Some(place) = &piece.place else { panic!("JSON has places") };
    let before = if text.trim_ascii().is_empty() { json!({}) } else { serde_json::from_str(text).unwrap_or_default() };
    // Writing a number anew may change its last digit.
    let written_anew: Value = serde_json::from_str(&before.to_string()).unwrap_or_default();
    for (written, before) in
        [(after.to_string(), &written_anew), (format!("{after:#}"), &written_anew), (inserted.text, &before)]
    {
        let Ok(Some(left)) = take_out(&written, place) else { panic!("it is not found in {written}") };
        let left = serde_json::from_str::<Value>(&left);
        assert_eq!(left.ok(), Some(expected(before.clone())), "taken out of {written}");
    }
}

fn table(text: &str) {
    let args = ["mcp".to_owned(), "--root".to_owned()];
    let Ok(inserted) = insert_table(text, "/bin/matsu", &args, Timeout::Ours(1_800)) else { return };
    is_only_longer(text, &inserted);
    let (before, after) = (text.parse::<toml::Table>(), inserted.text.parse::<toml::Table>());
    let Ok(mut after) = after else { panic!("TOML that is none any more: {text:?}") };
    let servers = after.get_mut("mcp_servers").and_then(toml::Value::as_table_mut);
    let Some(servers) = servers else { panic!("no servers in {}", inserted.text) };
    let ours = servers.remove("matsu");
    assert!(ours.is_some_and(|ours| ours["command"].as_str() == Some("/bin/matsu")), "it is not there");
    let is_empty = servers.is_empty();
    let mut before = before.unwrap_or_default();
    if is_empty && !before.contains_key("mcp_servers") {
        after.remove("mcp_servers");
    }
    // Times and numbers that are no number are not equal to themselves.
    assert_eq!(format!("{after:?}"), format!("{:?}", std::mem::take(&mut before)), "something else was changed");
    let piece = Piece { text: inserted.piece, place: None };
    assert_eq!(piece.taken_out_of(&inserted.text).as_deref(), Some(text), "undoing does not restore the file");
}
