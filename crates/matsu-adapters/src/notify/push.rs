//! Web push: a message to every browser of a user that has subscribed, through the push service that the browser names.
//!
//! The address of a push service comes from a user, so it passes the address guard like the address of a page.

mod encryption;
mod sender_key;

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::json;
use sha2::{Digest, Sha256};
use url::Url;

use matsu_core::clock::Clock;
use matsu_core::id::SubscriptionId;
use matsu_core::notify::{NoticeEvent, NoticeMessage, NoticeRules};
use matsu_core::ports::notice_channel::{NoticeChannel, Subscribing};
use matsu_core::ports::store::{ListSubscriptions, RemoveSubscription, Store};
use matsu_core::push::PushSubscription;

use crate::http::guard::{AddressGuard, Exception};
use crate::http::names::{GuardedNames, SystemNames};
use encryption::{PLAIN_BYTES_MAX, Receiver};
use sender_key::SenderKey;

const TIME_MAX: Duration = Duration::from_secs(20);

/// How long a push service keeps a message for a browser that is away, in seconds: as long as we would try ourselves.
const KEPT_SECONDS: u64 = 3 * 24 * 3600;

const ENDPOINT_BYTES_MAX: usize = 2_048;

/// A message is repeated only while a browser is missing, so few are remembered.
const REACHED_MAX: usize = 10_000;

pub struct Push {
    name: String,
    rules: NoticeRules,
    key: SenderKey,
    contact: Option<String>,
    guard: Arc<AddressGuard>,
    client: reqwest::Client,
    store: Arc<dyn Store>,
    /// What was sent to which browser, so that one that cannot be reached does not repeat it to the others.
    reached: Mutex<HashSet<(String, SubscriptionId)>>,
}

impl Push {
    pub fn open(
        name: String,
        rules: NoticeRules,
        key_file: &Path,
        contact: Option<String>,
        exceptions: Vec<Exception>,
        store: Arc<dyn Store>,
    ) -> Result<Self, String> {
        let key = SenderKey::open(key_file)?;
        let guard = Arc::new(AddressGuard::new(exceptions));
        let names = GuardedNames::new(Arc::new(SystemNames), Arc::clone(&guard));
        let client = crate::http::page_client(names, "matsu-notify", TIME_MAX).map_err(|error| error.to_string())?;
        Ok(Self { name, rules, key, contact, guard, client, store, reached: Mutex::default() })
    }

    fn address(&self, endpoint: &str) -> Result<Url, String> {
        if endpoint.len() > ENDPOINT_BYTES_MAX {
            return Err(format!("the endpoint has more than {ENDPOINT_BYTES_MAX} bytes"));
        }
        let url = Url::parse(endpoint).map_err(|error| format!("the endpoint is not an address: {error}"))?;
        self.guard.check_url(&url).map_err(|refusal| format!("the endpoint cannot be used: {refusal}"))?;
        // What the operator has excepted by its number may be on this machine.
        if url.scheme() != "https" && AddressGuard::default().check_url(&url).is_ok() {
            return Err(format!("the endpoint begins with {}:, expected https:", url.scheme()));
        }
        Ok(url)
    }

    /// `false`: the browser has unsubscribed.
    async fn push(&self, to: &PushSubscription, message: &NoticeMessage, plain: &[u8]) -> Result<bool, String> {
        if to.sender_key != self.key.public() {
            return Err("a browser subscribed with another key; subscribe again, or give all daemons of this store \
                        the same file push-key"
                .to_owned());
        }
        let url = self.address(&to.endpoint)?;
        let sealed = Receiver::parse(&to.p256dh, &to.auth)?.seal(plain);
        let sealed = sealed.map_err(|_| "a push message could not be encrypted".to_owned())?;
        let signed = self.key.authorization(&url, self.contact.as_deref(), Clock::system().now())?;
        let urgency = if message.event == NoticeEvent::Done { "normal" } else { "high" };
        let request = self
            .client
            .post(url)
            .header("authorization", signed)
            .header("content-type", "application/octet-stream")
            .header("content-encoding", "aes128gcm")
            .header("ttl", KEPT_SECONDS.to_string())
            .header("urgency", urgency)
            // A repetition takes the place of one that the browser has not fetched yet.
            .header("topic", topic(&message.id));
        let answer = request.body(sealed).send().await.map_err(super::in_words)?;
        match answer.status().as_u16() {
            200..=299 => Ok(true),
            404 | 410 => Ok(false),
            status => Err(format!("the push service answered {status}")),
        }
    }

    /// Sends to one browser, unless it has this message already. `true`: it has it now.
    async fn reach(&self, to: &PushSubscription, message: &NoticeMessage, plain: &[u8]) -> Result<bool, String> {
        let mark = (message.id.clone(), to.id.clone());
        if self.reached.lock().unwrap_or_else(PoisonError::into_inner).contains(&mark) {
            return Ok(true);
        }
        if !self.push(to, message, plain).await? {
            tracing::info!(channel = self.name, "a browser has unsubscribed; it gets no more notices");
            let removed = self.store.run(RemoveSubscription(self.rules.owner.clone(), to.id.clone())).await;
            removed.map_err(|error| error.to_string())?;
            return Ok(false);
        }
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if reached.len() >= REACHED_MAX {
            reached.clear();
        }
        reached.insert(mark);
        Ok(true)
    }
}

/// 32 characters of the alphabet that the header allows.
fn topic(id: &str) -> String {
    let digest = Sha256::digest(id.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What the service worker of the page shows.
fn plain(message: &NoticeMessage) -> Vec<u8> {
    let path = message.task_id.as_ref().map_or_else(|| "/inbox".to_owned(), |task| format!("/tasks/{task}"));
    let mut text: Vec<char> = message.text.chars().collect();
    loop {
        let shown: String = text.iter().collect();
        let body = json!({
            "id": message.id, "event": message.event, "title": message.title, "text": shown, "path": path,
        });
        let body = body.to_string().into_bytes();
        if body.len() <= PLAIN_BYTES_MAX || text.is_empty() {
            return body;
        }
        text.truncate(text.len() / 2);
    }
}

impl Subscribing for Push {
    fn public_key(&self) -> &str {
        self.key.public()
    }

    fn check(&self, endpoint: &str, p256dh: &str, auth: &str) -> Result<(), String> {
        self.address(endpoint)?;
        Receiver::parse(p256dh, auth).map(drop)
    }
}

#[async_trait]
impl NoticeChannel for Push {
    fn name(&self) -> &str {
        &self.name
    }

    fn rules(&self) -> &NoticeRules {
        &self.rules
    }

    async fn send(&self, message: &NoticeMessage, _reply_topic: &str) -> Result<(), String> {
        let known = self.store.run(ListSubscriptions(self.rules.owner.clone(), Clock::system().now())).await;
        let known = known.map_err(|error| error.to_string())?;
        let plain = plain(message);
        let sent = join_all(known.iter().map(|to| self.reach(to, message, &plain))).await;
        if let Some(error) = sent.iter().find_map(|sent| sent.as_ref().err()) {
            return Err(error.clone());
        }
        if sent.iter().all(|sent| *sent == Ok(false)) {
            return Err("no browser has subscribed; turn push on in the settings of the page".to_owned());
        }
        Ok(())
    }

    fn subscribing(&self) -> Option<&dyn Subscribing> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use matsu_core::clock::Timestamp;

    #[test]
    fn a_long_text_is_cut_until_it_fits() {
        let message = NoticeMessage {
            id: "no_1".to_owned(),
            event: NoticeEvent::Asks,
            task_id: Some("task_1".to_owned()),
            title: "asks: x".to_owned(),
            text: "\u{1f332}\"".repeat(2_000),
            link: None,
            at: Timestamp::from_millis(0),
            buttons: Vec::new(),
        };
        let body = plain(&message);
        assert!(body.len() <= PLAIN_BYTES_MAX && body.len() > PLAIN_BYTES_MAX / 3, "{}", body.len());
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&body["path"], &body["event"]), (&json!("/tasks/task_1"), &json!("asks")));
        assert_eq!(topic("no_1").len(), 32);
    }
}
