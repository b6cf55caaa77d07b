//! A chat as a file for people (Markdown) and for programs (JSON).

use std::fmt::Write;

use matsu_core::history::{Entry, Item, Role};
use matsu_core::transcript::Transcript;
use serde_json::{Value, json};

/// Everything, and in a shape that can be read back.
#[must_use]
pub fn to_json(transcript: &Transcript, entries: &[Entry]) -> Value {
    json!({
        "name": transcript.name,
        "models": transcript.models(),
        "system_prompt": transcript.system_prompt,
        "created_at": transcript.chat.created_at.to_string(),
        "entries": entries,
    })
}

#[must_use]
pub fn to_markdown(transcript: &Transcript, entries: &[Entry]) -> String {
    let mut text = format!("# {}\n", transcript.name.as_deref().unwrap_or("Chat"));
    if let Some(prompt) = &transcript.system_prompt {
        let _ = write!(text, "\n> {}\n", prompt.replace('\n', "\n> "));
    }
    for entry in entries {
        let who = match entry.role {
            Role::User => "You",
            Role::Assistant => entry.model.as_deref().unwrap_or("model"),
            Role::Tool => "Tools",
            Role::System => "System",
        };
        let _ = write!(text, "\n## {who} ({})\n", entry.at);
        for item in &entry.content {
            write_item(&mut text, item);
        }
    }
    text
}

fn write_item(text: &mut String, item: &Item) {
    let _ = match item {
        Item::Text { text: said, .. } => write!(text, "\n{said}\n"),
        Item::ToolCall { name, arguments, .. } => write!(text, "\n`{name}` with `{arguments}`\n"),
        Item::ToolResult { name, content, is_error, images, .. } => {
            let failed = if *is_error { ", failed" } else { "" };
            let fence = fence(content);
            let shown: String = images.iter().map(|image| format!("\n(an image: {})\n", image.title())).collect();
            write!(text, "\n`{name}`{failed}:\n\n{fence}\n{content}\n{fence}\n{shown}")
        }
        Item::Image(image) => write!(text, "\n(an image: {})\n", image.title()),
        Item::Thinking { .. } => Ok(()),
    };
}

/// Longer than any row of backticks inside.
fn fence(content: &str) -> String {
    let longest = content.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use matsu_core::chat::{Chat, ChatKind, ChatState};
    use matsu_core::clock::Timestamp;
    use matsu_core::history::{Image, parse};
    use matsu_core::id::{ChatId, ProjectId};
    use matsu_core::principal::Principal;
    use matsu_core::transcript::ChatPlace;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_794_704_523_000);

    #[test]
    fn both_forms_hold_what_was_said() {
        let chat = Chat {
            id: ChatId::from_text("chat_1"),
            kind: ChatKind::Models(vec!["m".into()]),
            project_id: ProjectId::from_text("default"),
            state: ChatState::Open,
            last_seq: 3,
            acked_seq: 0,
            handed_seq: 0,
            last_person_seq: 0,
            last_reply_seq: 0,
            connecting_since: None,
            last_message_at: NOW,
            created_at: NOW,
            ended_at: None,
            seq: 1,
        };
        let transcript = Transcript {
            chat,
            owner: Principal::local_user(),
            name: Some("Plans".into()),
            system_prompt: Some("Be brief.\nBe kind.".into()),
            place: ChatPlace::Terminal,
            run_id: None,
            updated_at: NOW,
        };
        let call = Item::ToolCall { id: "c".into(), name: "look".into(), arguments: json!({"q": 1}), signature: None };
        let image = Image { media_type: "image/png".to_owned(), data: "A".repeat(4_000) };
        let result = Item::ToolResult {
            id: "c".into(),
            name: "look".into(),
            content: "```x```".into(),
            is_error: true,
            images: vec![image.clone()],
        };
        let entries = [
            Entry::new(Role::User, vec![Item::text("hi"), Item::Image(image)], NOW),
            Entry::assistant("m", vec![Item::text("ok"), call], NOW),
            Entry::tool(vec![result], NOW),
        ];
        let markdown = to_markdown(&transcript, &entries);
        for part in [
            "# Plans",
            "> Be brief.\n> Be kind.",
            "## You (2026-11-15T01:02:03Z)\n\nhi\n\n(an image: image/png, 3 kB)",
            "## m",
            "`look` with",
            "failed:\n\n````\n```x```\n````\n\n(an image: image/png, 3 kB)",
        ] {
            assert!(markdown.contains(part), "{part}: {markdown}");
        }
        let json = to_json(&transcript, &entries);
        assert_eq!(parse(&json["entries"], NOW).unwrap(), entries);
    }
}
