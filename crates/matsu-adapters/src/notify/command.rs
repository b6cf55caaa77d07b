//! Programs of this machine: a line for the shell, or `notify-send`.

use async_trait::async_trait;

use matsu_core::notify::{NoticeEvent, NoticeMessage, NoticeRules};
use matsu_core::ports::notice_channel::NoticeChannel;

use super::process;

pub struct Command {
    pub name: String,
    pub rules: NoticeRules,
    /// For the shell; `None`: `notify-send`.
    pub line: Option<String>,
}

#[async_trait]
impl NoticeChannel for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn rules(&self) -> &NoticeRules {
        &self.rules
    }

    async fn send(&self, message: &NoticeMessage, _reply_topic: &str) -> Result<(), String> {
        match &self.line {
            Some(line) => {
                // Text of a task never becomes part of the line: it comes on stdin and in variables.
                let variables = [
                    ("MATSU_NOTICE_ID", message.id.as_str()),
                    ("MATSU_NOTICE_EVENT", message.event.as_str()),
                    ("MATSU_NOTICE_TASK", message.task_id.as_deref().unwrap_or_default()),
                    ("MATSU_NOTICE_TITLE", message.title.as_str()),
                    ("MATSU_NOTICE_TEXT", message.text.as_str()),
                    ("MATSU_NOTICE_LINK", message.link.as_deref().unwrap_or_default()),
                ];
                let input = serde_json::to_vec(message).map_err(|error| error.to_string())?;
                process::run("/bin/sh", &["-c", line], &variables, &input).await
            }
            None => {
                let urgency = if message.event == NoticeEvent::Done { "normal" } else { "critical" };
                let text = match &message.link {
                    Some(link) => format!("{}\n{link}", message.text),
                    None => message.text.clone(),
                };
                // Desktops take the body for markup, and the title for text.
                let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                let arguments = ["--app-name", "Matsu", "--urgency", urgency, "--", &message.title, &text];
                process::run("notify-send", &arguments, &[], b"").await
            }
        }
    }
}
