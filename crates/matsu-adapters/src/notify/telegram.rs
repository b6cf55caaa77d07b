//! Telegram: a bot that writes to one chat, and reads the presses of its buttons by long polling, so no port is open.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use matsu_core::notify::{NoticeMessage, NoticeRules};
use matsu_core::ports::notice_channel::{NoticeChannel, Replies, Reply};

use super::{accepted, in_words, label};

const TIME_MAX: Duration = Duration::from_secs(20);

/// How long the server holds a request for updates, in seconds.
const POLL_SECONDS: u64 = 50;

/// Telegram refuses messages of more than 4,096 characters.
const TEXT_CHARS_MAX: usize = 4_000;

const ANSWER_BYTES_MAX: usize = 1024 * 1024;

pub struct Telegram {
    name: String,
    rules: NoticeRules,
    /// With the token of the bot, so it is never shown.
    base_url: String,
    chat: String,
    client: reqwest::Client,
    poller: reqwest::Client,
}

impl Telegram {
    pub fn open(name: String, rules: NoticeRules, base_url: &str, chat: String, token: &str) -> Result<Self, String> {
        let client =
            |time_max| crate::http::service_client("matsu-notify", time_max).map_err(|error| error.to_string());
        let (client, poller) = (client(TIME_MAX)?, client(Duration::from_secs(POLL_SECONDS) + TIME_MAX)?);
        let base_url = format!("{}/bot{token}", base_url.trim_end_matches('/'));
        Ok(Self { name, rules, base_url, chat, client, poller })
    }

    async fn call(&self, client: &reqwest::Client, method: &str, body: &Value) -> Result<Value, String> {
        let request = client.post(format!("{}/{method}", self.base_url)).header("content-type", "application/json");
        let mut answer = accepted(request.body(body.to_string()).send().await)?;
        let mut bytes = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(in_words)? {
            bytes.extend_from_slice(&part);
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err(format!("the answer to {method} has more than {ANSWER_BYTES_MAX} bytes"));
            }
        }
        let answer: Value =
            serde_json::from_slice(&bytes).map_err(|_| format!("the answer to {method} is not JSON"))?;
        if answer["ok"] == true {
            return Ok(answer["result"].clone());
        }
        Err(format!("{method} was refused: {}", answer["description"].as_str().unwrap_or("no reason was given")))
    }
}

#[async_trait]
impl NoticeChannel for Telegram {
    fn name(&self) -> &str {
        &self.name
    }

    fn rules(&self) -> &NoticeRules {
        &self.rules
    }

    fn has_replies(&self) -> bool {
        true
    }

    async fn send(&self, message: &NoticeMessage, _reply_topic: &str) -> Result<(), String> {
        let link = message.link.as_ref().map(|link| format!("\n{link}")).unwrap_or_default();
        let text = format!("{}\n{}{link}", message.title, message.text);
        let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
        let mut body = json!({ "chat_id": self.chat, "text": text });
        if !message.buttons.is_empty() {
            let buttons = message.buttons.iter();
            let row: Vec<Value> =
                buttons.map(|button| json!({ "text": label(&button.option), "callback_data": button.code })).collect();
            body["reply_markup"] = json!({ "inline_keyboard": [row] });
        }
        self.call(&self.client, "sendMessage", &body).await.map(drop)
    }

    async fn replies(&self, _reply_topic: &str, position: Option<&str>) -> Result<Replies, String> {
        let mut body = json!({ "timeout": POLL_SECONDS, "allowed_updates": ["callback_query"] });
        let offset = position.and_then(|position| position.parse::<i64>().ok());
        if let Some(offset) = offset {
            body["offset"] = json!(offset);
        }
        let updates = self.call(&self.poller, "getUpdates", &body).await?;
        let mut replies = Replies { codes: Vec::new(), position: position.map(str::to_owned) };
        for update in updates.as_array().into_iter().flatten() {
            if let Some(id) = update["update_id"].as_i64() {
                replies.position = Some((id + 1).to_string());
            }
            replies.codes.extend(self.press(&update["callback_query"]));
        }
        Ok(replies)
    }

    async fn acknowledge(&self, reply: &Reply, text: &str) {
        let body = json!({ "callback_query_id": reply.id, "text": text });
        if let Err(error) = self.call(&self.client, "answerCallbackQuery", &body).await {
            tracing::debug!(channel = self.name, error, "the press of a button could not be acknowledged");
        }
    }
}

impl Telegram {
    /// A press of a button in the configured chat. What comes from another chat is not an answer.
    fn press(&self, query: &Value) -> Option<Reply> {
        let (id, code) = (query["id"].as_str()?, query["data"].as_str()?);
        let chat = &query["message"]["chat"];
        let is_ours = chat["id"].as_i64().is_some_and(|id| id.to_string() == self.chat)
            || chat["username"].as_str().is_some_and(|name| self.chat.strip_prefix('@') == Some(name));
        if !is_ours {
            tracing::warn!(channel = self.name, "a button was pressed in another chat; it was ignored");
            return None;
        }
        Some(Reply { code: code.to_owned(), id: id.to_owned() })
    }
}
