//! The one question about the model of research: asked on a terminal where the setting is `auto` and nothing was chosen.

use anyhow::Result;
use serde_json::{Value, json};

use super::prompt;
use crate::client::Client;

/// Asks until one of the options was named. A person who ends the input has chosen nothing, and nothing is sent to a
/// model.
pub async fn ask_once(client: &Client) -> Result<()> {
    if !prompt::is_possible() {
        return Ok(());
    }
    let state = client.get("/api/v1/research/model").await?;
    if state["asks"] != true {
        return Ok(());
    }
    let options = state["options"].as_array().cloned().unwrap_or_default();
    eprintln!("Which model may research send questions and passages to? The answer is stored.");
    for (at, option) in options.iter().enumerate() {
        let text = |name: &str| crate::terminal::plain_text::plain(option[name].as_str().unwrap_or_default());
        eprintln!("  {}  {:<20} {}", at + 1, text("name"), text("meaning"));
    }
    while let Some(line) = prompt::line("Number or name: ").await {
        if let Some(model) = named(&line, &options) {
            client.post("/api/v1/research/model", json!({ "model": model })).await?;
            return Ok(());
        }
        eprintln!("{line} is not one of these models; type a number from 1 to {}, or a name", options.len());
    }
    Ok(())
}

fn named(line: &str, options: &[Value]) -> Option<String> {
    let number = line.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
    let option = number.or_else(|| options.iter().find(|option| option["name"] == line))?;
    option["name"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_named_by_its_number_or_its_name() {
        let options = [json!({ "name": "agent:claude" }), json!({ "name": "embedded" })];
        for (line, expected) in [
            ("1", Some("agent:claude")),
            ("2", Some("embedded")),
            ("embedded", Some("embedded")),
            ("0", None),
            ("3", None),
            ("", None),
            ("claude", None),
        ] {
            assert_eq!(named(line, &options).as_deref(), expected, "{line}");
        }
    }
}
