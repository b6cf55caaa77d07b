//! The models a line is for: the mentions at its beginning, whole words in any case.

/// All models of the chat.
pub const ALL: &str = "all";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressed {
    /// To these, in the order of the roster.
    Models(Vec<String>),
    /// To no model: a note that the next model called will see.
    Note,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no model @{name} here; the models are {}", known.join(", "))]
pub struct UnknownMention {
    pub name: String,
    pub known: Vec<String>,
}

/// Reads the mentions that a line begins with.
///
/// # Errors
/// One of them is not the name of a model here. It is never taken for a similar one.
pub fn read(text: &str, roster: &[&str], default: Option<&str>) -> Result<Addressed, UnknownMention> {
    let mut named: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let Some(name) = word.strip_prefix('@') else { break };
        let name = name.trim_end_matches([',', ':', ';', '.', '!', '?']);
        // An @ alone, or in the middle of something, is just text.
        if name.is_empty() {
            break;
        }
        let wanted = name.to_lowercase();
        if wanted == ALL {
            named.extend(roster.iter().map(|known| (*known).to_owned()));
        } else if let Some(known) = roster.iter().find(|known| known.to_lowercase() == wanted) {
            named.push((*known).to_owned());
        } else {
            let known = roster.iter().map(|name| format!("@{name}")).chain(["@all".to_owned()]).collect();
            return Err(UnknownMention { name: name.to_owned(), known });
        }
    }
    if named.is_empty() {
        return Ok(default.map_or(Addressed::Note, |name| Addressed::Models(vec![name.to_owned()])));
    }
    Ok(Addressed::Models(
        roster
            .iter()
            .filter(|known| named.iter().any(|name| name == *known))
            .map(|known| (*known).to_owned())
            .collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_whole_words_in_any_case() {
        let roster = ["gemini", "chatgpt", "claude"];
        let to = |names: &[&str]| Ok(Addressed::Models(names.iter().map(|name| (*name).to_owned()).collect()));
        let cases = [
            ("@gemini hello", to(&["gemini"])),
            ("  @Gemini: hello", to(&["gemini"])),
            ("@CLAUDE", to(&["claude"])),
            ("@claude @gemini both of you", to(&["gemini", "claude"])),
            ("@all hello", to(&["gemini", "chatgpt", "claude"])),
            ("@ALL, @claude", to(&["gemini", "chatgpt", "claude"])),
            ("hello @gemini", Ok(Addressed::Note)),
            ("just a note", Ok(Addressed::Note)),
            ("@ 5 pm", Ok(Addressed::Note)),
        ];
        for (text, addressed) in cases {
            assert_eq!(read(text, &roster, None), addressed, "{text}");
        }
        assert_eq!(read("hello", &roster, Some("claude")), to(&["claude"]));
        let unknown = read("@geminix hello", &roster, None).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "there is no model @geminix here; the models are @gemini, @chatgpt, @claude, @all"
        );
    }
}
