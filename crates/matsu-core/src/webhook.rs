//! Incoming webhooks: addresses that other services send to, and what came of each delivery.

use std::fmt;

use serde_json::{Map, Value};

use crate::clock::Timestamp;
use crate::id::{DeliveryId, TaskId, WebhookId};
use crate::principal::Principal;
use crate::secret::Token;
use crate::words::words;

words! {
    /// How deliveries are signed.
    pub enum WebhookKind {
        /// `webhook-id`, `webhook-timestamp` and `webhook-signature`, as Standard Webhooks says.
        Standard = "standard",
        /// `X-Hub-Signature-256`: an HMAC of the body.
        Github = "github",
        /// `X-Gitlab-Token`: the secret itself.
        Gitlab = "gitlab",
    }
}

words! {
    /// What came of a delivery.
    pub enum DeliveryState {
        /// It is to be started.
        Waiting = "waiting",
        /// A task was started.
        Started = "started",
        /// The task could not be started.
        Failed = "failed",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWebhook {
    pub owner: Principal,
    /// Unique among the webhooks of its owner.
    pub name: String,
    pub kind: WebhookKind,
    /// Kept as it is: a signature cannot be checked against a hash of its key.
    pub secret: Token,
    /// The arguments of `use_agent`; `message` is the template.
    pub run: Map<String, Value>,
    /// The folder that it works in.
    pub directory: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    pub seq: i64,
    pub id: WebhookId,
    pub owner: Principal,
    pub name: String,
    pub kind: WebhookKind,
    pub secret: Token,
    pub run: Map<String, Value>,
    pub directory: Option<String>,
    /// Why it takes nothing at the moment; absent: it does.
    pub paused: Option<String>,
    pub created_at: Timestamp,
}

/// A webhook that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedWebhook {
    pub webhook: Webhook,
    /// Deliveries that were taken and not started yet. They are not started any more.
    pub dropped: u32,
}

/// What has arrived, with a signature that was right.
#[derive(Clone, PartialEq, Eq)]
pub struct NewDelivery {
    pub webhook: WebhookId,
    /// The sender's id of the delivery; a second one with the same key is the same delivery.
    pub key: String,
    /// The hash of the body, where the signature does not cover the key: a second one with another key is a copy.
    pub digest: Option<String>,
    /// What is given to the agent: JSON.
    pub payload: String,
}

// The payload is another's text and may be long.
impl fmt::Debug for NewDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewDelivery({}, {}, {} bytes)", self.webhook, self.key, self.payload.len())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub seq: i64,
    pub id: DeliveryId,
    pub webhook_id: WebhookId,
    pub key: String,
    pub received_at: Timestamp,
    pub state: DeliveryState,
    pub task_id: Option<TaskId>,
    /// Why nothing was started.
    pub note: Option<String>,
}

/// What became of something that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    Stored(Delivery),
    /// It was there already.
    Repeated(Delivery),
    /// Too many wait.
    Full,
}
