//! Incoming webhooks and their deliveries.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::id::{DeliveryId, TaskId, WebhookId};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::webhook::{Delivery, NewDelivery, NewWebhook, Receipt, Webhook};

use super::StoreError;

#[async_trait]
pub trait WebhookStore {
    /// Refused if the owner has one of that name.
    async fn add_webhook(&self, new: &NewWebhook, now: Timestamp) -> Result<Webhook, StoreError>;

    /// By its id or its name.
    async fn webhook(&self, owner: &Principal, key: &str) -> Result<Webhook, StoreError>;

    /// The one that a sender has named, of any owner.
    async fn webhook_at(&self, id: &WebhookId) -> Result<Option<Webhook>, StoreError>;

    /// Oldest first.
    async fn webhooks(&self, owner: &Principal, page: &PageRequest) -> Result<Page<Webhook>, StoreError>;

    /// Pauses it for a reason, or lets it go on.
    async fn pause_webhook(&self, id: &WebhookId, paused: Option<&str>) -> Result<(), StoreError>;

    /// With its deliveries. Tasks stay.
    async fn remove_webhook(&self, owner: &Principal, key: &str) -> Result<Webhook, StoreError>;

    /// Whether there is one that takes deliveries.
    async fn has_webhooks(&self) -> Result<bool, StoreError>;

    /// Stores a delivery once, over all nodes, with the time of its start: at most one of a webhook in each
    /// `WEBHOOK_GAP_MIN`.
    async fn receive_delivery(&self, new: &NewDelivery, now: Timestamp) -> Result<Receipt, StoreError>;

    /// Deliveries that are to be started, oldest first, with their payload. They are not taken again before
    /// `again_at`, so that one node starts each, and a node that dies meanwhile loses none.
    async fn take_deliveries(
        &self,
        now: Timestamp,
        again_at: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<(Delivery, String, Webhook)>, StoreError>;

    /// Notes the task that was started, or why none was. The payload is forgotten.
    async fn settle_delivery(&self, id: &DeliveryId, begun: &Result<TaskId, String>) -> Result<(), StoreError>;

    /// Newest first.
    async fn deliveries(&self, webhook: &WebhookId, page: &PageRequest) -> Result<Page<Delivery>, StoreError>;

    /// When a delivery is to be looked at next.
    async fn next_delivery_at(&self) -> Result<Option<Timestamp>, StoreError>;
}
