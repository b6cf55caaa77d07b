//! Work that another service starts: addresses that it sends to, and the loop that starts what has arrived.
//!
//! What has arrived is stored before the sender gets its answer, and the task carries the id of the delivery as its
//! idempotency key: a node that dies between the two loses nothing and doubles nothing.

mod message;
mod runner;
mod signature;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::WebhookId;
use matsu_core::limits::{WEBHOOK_TEMPLATE_BYTES_MAX, WEBHOOKS_MAX};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{
    AddWebhook, ListDeliveries, ListWebhooks, PauseWebhook, ReadWebhook, ReceiveDelivery, RemoveWebhook, StoreError,
    WebhookAt,
};
use matsu_core::principal::Principal;
use matsu_core::secret::{self, Token};
use matsu_core::webhook::{Delivery, NewDelivery, NewWebhook, Receipt, RemovedWebhook, Webhook, WebhookKind};

use crate::notify::schedules::{checked_run, start};
use crate::runtime::service;
use crate::tasks::TaskError;

pub use message::compose;
pub use runner::run;
pub use signature::{Incoming, Refused, Verified};

/// A secret with fewer bytes could be guessed.
const SECRET_BYTES_MIN: usize = 16;
const SECRET_BYTES_MAX: usize = 512;

/// What a person asks for.
pub struct WebhookWish {
    pub name: String,
    pub kind: WebhookKind,
    /// Absent: one is made.
    pub secret: Option<String>,
    /// The arguments of `use_agent`; `message` is the template.
    pub run: Map<String, Value>,
    pub directory: Option<String>,
}

/// What became of a delivery whose signature was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    Taken(Taken),
    /// It only tries the connection.
    Ping,
}

/// A delivery that is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub delivery: Delivery,
    /// It had been stored before; nothing more is started for it.
    pub is_repeated: bool,
}

service! {
    /// The webhooks of a principal.
    Webhooks
}

impl Webhooks<'_> {
    /// # Errors
    /// What is asked for cannot be started, or the store refuses.
    pub async fn add_webhook(self, owner: &Principal, wish: WebhookWish) -> Result<Webhook, TaskError> {
        if wish.name.is_empty() || wish.name.len() > 64 {
            return Err(TaskError::Invalid("the name of a webhook must have 1 to 64 bytes".to_owned()));
        }
        let template = wish.run.get("message").and_then(Value::as_str).unwrap_or_default();
        if template.len() > WEBHOOK_TEMPLATE_BYTES_MAX {
            let message = format!("the template must have at most {WEBHOOK_TEMPLATE_BYTES_MAX} bytes");
            return Err(TaskError::Invalid(message));
        }
        message::check(template).map_err(TaskError::Invalid)?;
        let secret = secret_of(wish.kind, wish.secret)?;
        let run = checked_run(self.runtime, owner, wish.directory.as_deref(), wish.run).await?;
        let have =
            self.runtime.store().run(ListWebhooks(owner.clone(), PageRequest::new(None, Some(WEBHOOKS_MAX)))).await?;
        if have.items.len() >= WEBHOOKS_MAX as usize {
            return Err(TaskError::LimitExceeded(format!("one user has at most {WEBHOOKS_MAX} webhooks")));
        }
        let (name, kind, directory) = (wish.name, wish.kind, wish.directory);
        let new = NewWebhook { owner: owner.clone(), name, kind, secret, run, directory };
        Ok(self.runtime.store().run(AddWebhook { new: new.clone(), now: self.runtime.clock().now() }).await?)
    }

    /// # Errors
    /// As the store's.
    pub async fn webhooks(self, owner: &Principal, page: &PageRequest) -> Result<Page<Webhook>, TaskError> {
        Ok(self.runtime.store().run(ListWebhooks(owner.clone(), page.clone())).await?)
    }

    /// The webhook that a sender has named.
    ///
    /// # Errors
    /// As the store's.
    pub async fn webhook_at(self, id: &str) -> Result<Option<Webhook>, TaskError> {
        // What is no id is not looked for: PostgreSQL refuses some of it.
        if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Ok(None);
        }
        Ok(self.runtime.store().run(WebhookAt(WebhookId::from_text(id))).await?)
    }

    /// Pauses a webhook, or lets it go on. What waits for its start waits meanwhile.
    ///
    /// # Errors
    /// There is none of that name.
    pub async fn pause_webhook(self, owner: &Principal, key: &str, is_paused: bool) -> Result<Webhook, TaskError> {
        let found = self.runtime.store().run(ReadWebhook(owner.clone(), key.to_owned())).await?;
        self.runtime
            .store()
            .run(PauseWebhook(found.id.clone(), is_paused.then_some("paused by its owner").map(str::to_owned)))
            .await?;
        Ok(self.runtime.store().run(ReadWebhook(owner.clone(), found.id.as_str().to_owned())).await?)
    }

    /// Removes a webhook. What waits for its start is not started any more.
    ///
    /// # Errors
    /// There is none of that name.
    pub async fn remove_webhook(self, owner: &Principal, key: &str) -> Result<RemovedWebhook, TaskError> {
        Ok(self.runtime.store().run(RemoveWebhook(owner.clone(), key.to_owned())).await?)
    }

    /// What came of its deliveries, newest first.
    ///
    /// # Errors
    /// There is none of that name.
    pub async fn deliveries(
        self,
        owner: &Principal,
        key: &str,
        page: &PageRequest,
    ) -> Result<Page<Delivery>, TaskError> {
        let found = self.runtime.store().run(ReadWebhook(owner.clone(), key.to_owned())).await?;
        Ok(self.runtime.store().run(ListDeliveries(found.id.clone(), page.clone())).await?)
    }

    /// Takes what has arrived with a signature that was right.
    ///
    /// # Errors
    /// It cannot be read, too much waits, or the webhook is paused.
    pub async fn receive(self, webhook: &Webhook, verified: Verified, body: &[u8]) -> Result<Arrival, TaskError> {
        if verified.is_ping {
            return Ok(Arrival::Ping);
        }
        let payload: Value = serde_json::from_slice(body).map_err(|error| {
            TaskError::Invalid(format!(
                "the body is not JSON: {error}; let the sender use the content type application/json"
            ))
        })?;
        let payload = json!({ "event": verified.event, "payload": payload }).to_string();
        let (key, digest) = (verified.key, verified.digest);
        let new = NewDelivery { webhook: webhook.id.clone(), key, digest, payload };
        Ok(Arrival::Taken(self.store_delivery(webhook, new).await?))
    }

    /// Takes a delivery of the owner's own, as if it had arrived.
    ///
    /// # Errors
    /// As those of [`Webhooks::receive`], or there is none of that name.
    pub async fn test_webhook(self, owner: &Principal, key: &str, payload: &Value) -> Result<Delivery, TaskError> {
        let webhook = self.runtime.store().run(ReadWebhook(owner.clone(), key.to_owned())).await?;
        let payload = json!({ "event": "test", "payload": payload }).to_string();
        let key = format!("test-{}", secret::code());
        let new = NewDelivery { webhook: webhook.id.clone(), key, digest: None, payload };
        Ok(self.store_delivery(&webhook, new).await?.delivery)
    }

    async fn store_delivery(self, webhook: &Webhook, new: NewDelivery) -> Result<Taken, TaskError> {
        if !start::has_owner(self.runtime, &webhook.owner).await? {
            self.runtime
                .store()
                .run(PauseWebhook(webhook.id.clone(), Some("its owner was removed".to_owned())))
                .await?;
            return Err(paused("its owner was removed"));
        }
        if let Some(why) = &webhook.paused {
            return Err(paused(why));
        }
        match self.runtime.store().run(ReceiveDelivery { new: new.clone(), now: self.runtime.clock().now() }).await? {
            Receipt::Stored(delivery) => Ok(Taken { delivery, is_repeated: false }),
            Receipt::Repeated(delivery) => Ok(Taken { delivery, is_repeated: true }),
            Receipt::Full => {
                let message = "too many deliveries of this webhook wait for their start; send it again later";
                Err(TaskError::LimitExceeded(message.to_owned()))
            }
        }
    }
}

fn paused(why: &str) -> TaskError {
    TaskError::Store(StoreError::Refused {
        code: ErrorCode::Forbidden,
        message: format!("the webhook is paused: {why}"),
    })
}

/// The secret of a new webhook, in the form that its kind has.
fn secret_of(kind: WebhookKind, given: Option<String>) -> Result<Token, TaskError> {
    let Some(given) = given else {
        let made = secret::mint();
        return Ok(match kind {
            WebhookKind::Standard => Token::new(&format!("whsec_{}", BASE64_STANDARD.encode(made))),
            WebhookKind::Github | WebhookKind::Gitlab => Token::new(&made),
        });
    };
    let is_printed = given.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_printed || !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&given.len()) {
        return Err(TaskError::Invalid(format!(
            "the secret must have {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} printed ASCII characters without spaces; \
             leave it out, and Matsu creates one"
        )));
    }
    if kind == WebhookKind::Standard {
        signature::standard_key(&given).ok_or_else(|| {
            TaskError::Invalid("the secret must be whsec_ followed by at least 16 bytes in base64".to_owned())
        })?;
    }
    Ok(Token::new(&given))
}

/// Who has sent this, and what it says about itself.
///
/// # Errors
/// The signature is missing or wrong, or is that of another time.
pub fn verify(webhook: &Webhook, incoming: &Incoming<'_>, now: Timestamp) -> Result<Verified, Refused> {
    signature::verify(webhook.kind, webhook.secret.reveal(), incoming, now)
}
