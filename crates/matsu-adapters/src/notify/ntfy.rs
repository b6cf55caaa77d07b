//! ntfy: a message published to a topic as JSON. Its buttons post their code to a second, secret topic, which this
//! process reads, so no port is open.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::{Value, json};

use matsu_core::clock::Clock;
use matsu_core::notify::{NoticeEvent, NoticeMessage, NoticeRules};
use matsu_core::ports::notice_channel::{NoticeChannel, Replies, Reply};

use super::{accepted, in_words, label};

const TIME_MAX: Duration = Duration::from_secs(20);

/// How long one reading of the reply topic lasts.
const READ_FOR: Duration = Duration::from_secs(50);

/// A line of the stream that is longer is not ours.
const LINE_BYTES_MAX: usize = 16 * 1024;

pub struct Ntfy {
    name: String,
    rules: NoticeRules,
    base_url: String,
    topic: String,
    token: Option<String>,
    client: reqwest::Client,
    reader: reqwest::Client,
}

impl Ntfy {
    pub fn open(
        name: String,
        rules: NoticeRules,
        base_url: &str,
        topic: String,
        token: Option<String>,
    ) -> Result<Self, String> {
        let client =
            |time_max| crate::http::service_client("matsu-notify", time_max).map_err(|error| error.to_string());
        let (client, reader) = (client(TIME_MAX)?, client(READ_FOR + TIME_MAX)?);
        Ok(Self { name, rules, base_url: base_url.trim_end_matches('/').to_owned(), topic, token, client, reader })
    }

    fn authorized(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    fn body(&self, message: &NoticeMessage, reply_topic: &str) -> Value {
        let (tag, priority) = match message.event {
            NoticeEvent::Done => ("white_check_mark", 3),
            NoticeEvent::Failed => ("x", 4),
            NoticeEvent::Budget => ("moneybag", 4),
            NoticeEvent::Quota => ("hourglass", 4),
            NoticeEvent::Asks => ("question", 4),
        };
        let mut body = json!({
            "topic": self.topic,
            "title": message.title,
            "message": message.text,
            "tags": [tag],
            "priority": priority,
        });
        if let Some(link) = &message.link {
            body["click"] = json!(link);
        }
        if !message.buttons.is_empty() {
            let url = format!("{}/{reply_topic}", self.base_url);
            let actions = message.buttons.iter().map(|button| {
                let label = label(&button.option);
                json!({ "action": "http", "label": label, "url": url, "method": "POST", "body": button.code, "clear": true })
            });
            body["actions"] = actions.collect();
        }
        body
    }
}

#[async_trait]
impl NoticeChannel for Ntfy {
    fn name(&self) -> &str {
        &self.name
    }

    fn rules(&self) -> &NoticeRules {
        &self.rules
    }

    fn has_replies(&self) -> bool {
        true
    }

    async fn send(&self, message: &NoticeMessage, reply_topic: &str) -> Result<(), String> {
        let request = self.client.post(&self.base_url).header("content-type", "application/json");
        let body = self.body(message, reply_topic).to_string();
        accepted(self.authorized(request).body(body).send().await).map(drop)
    }

    async fn replies(&self, reply_topic: &str, position: Option<&str>) -> Result<Replies, String> {
        let since = position.unwrap_or("all");
        let url = format!("{}/{reply_topic}/json?since={since}", self.base_url);
        let answer = accepted(self.authorized(self.reader.get(url)).send().await)?;
        let mut replies = Replies { codes: Vec::new(), position: position.map(str::to_owned) };
        let reading = async {
            let (mut stream, mut rest) = (answer.bytes_stream(), Vec::new());
            while let Some(part) = stream.next().await {
                rest.extend_from_slice(&part.map_err(in_words)?);
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    take(&line, &mut replies);
                }
                if rest.len() > LINE_BYTES_MAX {
                    return Err(format!("a line of the reply topic has more than {LINE_BYTES_MAX} bytes"));
                }
                if !replies.codes.is_empty() {
                    return Ok(());
                }
            }
            Ok(())
        };
        // No answer within the time is no error.
        Clock::system().within(READ_FOR, reading).await.unwrap_or(Ok(()))?;
        Ok(replies)
    }
}

/// A line of the stream: a message with a code, or one of the server's own.
fn take(line: &[u8], replies: &mut Replies) {
    let Ok(event) = serde_json::from_slice::<Value>(line) else { return };
    if event["event"] != "message" {
        return;
    }
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let (id, code) = (text("id"), text("message"));
    // The id becomes part of an address.
    if !id.is_empty() && id.chars().all(|character| character.is_ascii_alphanumeric()) {
        replies.position = Some(id.clone());
    }
    replies.codes.push(Reply { code, id });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_are_codes_and_an_odd_id_moves_nothing() {
        let mut replies = Replies::default();
        for line in [r#"{"event":"open","id":"a"}"#, "no json", r#"{"event":"message","id":"m1","message":"c1"}"#] {
            take(line.as_bytes(), &mut replies);
        }
        take(br#"{"event":"message","id":"../x","message":"c2"}"#, &mut replies);
        let codes: Vec<&str> = replies.codes.iter().map(|reply| reply.code.as_str()).collect();
        assert_eq!((codes, replies.position.as_deref()), (vec!["c1", "c2"], Some("m1")));
    }
}
