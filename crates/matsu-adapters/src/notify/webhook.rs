//! A POST to an address, signed as Standard Webhooks says where there is a secret.

use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use matsu_core::clock::Clock;
use matsu_core::notify::{NoticeMessage, NoticeRules};
use matsu_core::ports::notice_channel::NoticeChannel;

/// A receiver that takes longer has not received it.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Discord refuses more than 2,000 characters.
const DISCORD_CHARS_MAX: usize = 1_900;

/// The body that the receiver expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// `{"type":"task.done","timestamp":…,"data":{…}}`.
    Standard,
    /// `{"text":…}`, with Slack's three characters escaped.
    Slack,
    /// `{"content":…}`, and no mention has an effect.
    Discord,
    /// An adaptive card, for the workflows of Teams.
    Teams,
}

impl Template {
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "standard" => Some(Self::Standard),
            "slack" => Some(Self::Slack),
            "discord" => Some(Self::Discord),
            "teams" => Some(Self::Teams),
            _ => None,
        }
    }

    fn body(self, message: &NoticeMessage) -> Value {
        let link = message.link.as_ref().map(|link| format!("\n{link}")).unwrap_or_default();
        let text = format!("{}\n{}{link}", message.title, message.text);
        match self {
            Self::Standard => json!({
                "type": format!("task.{}", message.event),
                "timestamp": message.at.to_string(),
                "data": message,
            }),
            Self::Slack => {
                let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                json!({ "text": text })
            }
            Self::Discord => {
                let content: String = text.chars().take(DISCORD_CHARS_MAX).collect();
                json!({ "content": content, "allowed_mentions": { "parse": [] } })
            }
            Self::Teams => {
                let block = |text: &str, weight: &str| json!({ "type": "TextBlock", "text": text, "weight": weight, "wrap": true });
                let open = |link: &String| json!({ "type": "Action.OpenUrl", "title": "Open", "url": link });
                let actions: Vec<Value> = message.link.iter().map(open).collect();
                let card = json!({
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [block(&message.title, "bolder"), block(&message.text, "default")],
                    "actions": actions,
                });
                json!({
                    "type": "message",
                    "attachments": [{ "contentType": "application/vnd.microsoft.card.adaptive", "content": card }],
                })
            }
        }
    }
}

pub struct Webhook {
    name: String,
    rules: NoticeRules,
    url: String,
    key: Option<Vec<u8>>,
    template: Template,
    client: reqwest::Client,
}

impl Webhook {
    pub fn open(
        name: String,
        rules: NoticeRules,
        url: String,
        secret: Option<String>,
        template: Template,
    ) -> Result<Self, String> {
        let decoded = |secret: String| {
            let text = secret.trim().strip_prefix("whsec_").unwrap_or(secret.trim()).to_owned();
            let wrong = |_| format!("the secret of notify.{name} is not base64; expected whsec_ and base64");
            BASE64_STANDARD.decode(text).map_err(wrong)
        };
        let key = secret.map(decoded).transpose()?;
        let client = crate::http::service_client("matsu-notify", TIME_MAX).map_err(|error| error.to_string())?;
        Ok(Self { name, rules, url, key, template, client })
    }
}

/// `v1,` and the base64 of the HMAC of id, time and body.
fn signature(key: &[u8], id: &str, seconds: i64, body: &str) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    Some(format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes())))
}

#[async_trait]
impl NoticeChannel for Webhook {
    fn name(&self) -> &str {
        &self.name
    }

    fn rules(&self) -> &NoticeRules {
        &self.rules
    }

    async fn send(&self, message: &NoticeMessage, _reply_topic: &str) -> Result<(), String> {
        let body = self.template.body(message).to_string();
        let seconds = Clock::system().now().as_millis() / 1_000;
        let mut request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", seconds.to_string());
        if let Some(signature) = self.key.as_ref().and_then(|key| signature(key, &message.id, seconds, &body)) {
            request = request.header("webhook-signature", signature);
        }
        super::accepted(request.body(body).send().await).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use matsu_core::clock::Timestamp;
    use matsu_core::notify::NoticeEvent;

    /// The example of the specification.
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let key = BASE64_STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = r#"{"test": 2432232314}"#;
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body).unwrap();
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn each_template_has_the_body_of_its_receiver_and_text_mentions_no_person() {
        let message = NoticeMessage {
            id: "no_1".to_owned(),
            event: NoticeEvent::Failed,
            task_id: Some("task_1".to_owned()),
            title: "failed: <!channel> & @everyone".to_owned(),
            text: "x".repeat(3_000),
            link: Some("http://h/tasks/task_1".to_owned()),
            at: Timestamp::from_millis(0),
            buttons: Vec::new(),
        };
        let body = |word| Template::parse(word).unwrap().body(&message);
        let standard = body("standard");
        assert_eq!((&standard["type"], &standard["data"]["id"]), (&json!("task.failed"), &json!("no_1")));
        let slack = body("slack")["text"].as_str().unwrap().to_owned();
        assert!(slack.starts_with("failed: &lt;!channel&gt; &amp; @everyone\nx"), "{slack}");
        let discord = body("discord");
        assert_eq!(discord["content"].as_str().unwrap().chars().count(), DISCORD_CHARS_MAX);
        assert_eq!(discord["allowed_mentions"]["parse"], json!([]));
        let card = &body("teams")["attachments"][0]["content"];
        assert_eq!((&card["type"], &card["body"][0]["text"]), (&json!("AdaptiveCard"), &json!(message.title)));
        assert_eq!(card["actions"][0]["url"], "http://h/tasks/task_1");
        assert_eq!(Template::parse("smoke"), None);
    }
}
