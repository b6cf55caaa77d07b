//! The one question about notices: no channel, the desktop, an ntfy topic, or a webhook.

use anyhow::Result;
use matsu_adapters::notify::is_address;
use serde_json::Value;

use super::Ask;

const QUESTION: &str = "Notices when work ends or asks: desktop, ntfy URL, webhook URL (empty: none): ";

/// The section of the configuration file that the answer comes to. Asks again after an answer that is none.
pub fn ask(ask: Ask) -> Result<Option<String>> {
    loop {
        match section(&ask.line(QUESTION)?) {
            Ok(section) => return Ok(section),
            Err(problem) => say!("{problem}"),
        }
    }
}

fn section(typed: &str) -> Result<Option<String>, String> {
    let words: Vec<&str> = typed.split_whitespace().collect();
    match words.as_slice() {
        [] | ["none"] => Ok(None),
        ["desktop"] => Ok(Some(written(&[("kind", "desktop")]))),
        ["webhook", url] if is_address(url) => Ok(Some(written(&[("kind", "webhook"), ("url", url)]))),
        ["ntfy", url] if is_address(url) => {
            let parts = url.trim_end_matches('/').rsplit_once('/');
            let (server, topic) = parts.filter(|(server, topic)| is_address(server) && is_topic(topic)).ok_or_else(|| {
                format!("{url:?} has no topic; type the server and the topic, such as ntfy https://ntfy.sh/a-long-secret-name")
            })?;
            Ok(Some(written(&[("kind", "ntfy"), ("url", server), ("topic", topic)])))
        }
        ["webhook" | "ntfy", url] => Err(format!("{url:?} is not an address; it must begin with http:// or https://")),
        _ => Err(format!(
            "{typed:?} is not a channel; type desktop, ntfy https://ntfy.sh/TOPIC, webhook https://HOST/PATH, or nothing"
        )),
    }
}

fn is_topic(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// JSON's strings are TOML's too.
fn written(fields: &[(&str, &str)]) -> String {
    let lines = fields.iter().map(|(name, value)| format!("{name} = {}\n", Value::from(*value)));
    format!("[notify.me]\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::section;

    #[test]
    fn an_answer_is_a_section_or_a_reason_to_ask_again() {
        assert_eq!(section(""), Ok(None));
        assert_eq!(section("desktop").unwrap().unwrap(), "[notify.me]\nkind = \"desktop\"\n");
        assert_eq!(
            section("ntfy https://ntfy.example.org/my-topic/").unwrap().unwrap(),
            "[notify.me]\nkind = \"ntfy\"\nurl = \"https://ntfy.example.org\"\ntopic = \"my-topic\"\n"
        );
        let hook = section("webhook https://example.org/a?b=\"c\"").unwrap().unwrap();
        assert_eq!(
            hook.parse::<toml::Table>().unwrap()["notify"]["me"]["url"].as_str(),
            Some("https://example.org/a?b=\"c\"")
        );
        for (wrong, why) in [
            ("mail me@example.org", "type desktop"),
            ("https://example.org", "type desktop"),
            ("ntfy https://ntfy.sh", "has no topic"),
            ("ntfy my-topic", "is not an address"),
            ("webhook example.org/a", "is not an address"),
        ] {
            let said = section(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }
}
