//! The same faults for incoming webhooks.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::{DeliveryId, TaskId, WebhookId};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{StoreError, WebhookStore};
use matsu_core::principal::Principal;
use matsu_core::webhook::{Delivery, NewDelivery, NewWebhook, Receipt, Webhook};

use super::FaultyStore;

#[async_trait]
impl WebhookStore for FaultyStore {
    async fn add_webhook(&self, new: &NewWebhook, now: Timestamp) -> Result<Webhook, StoreError> {
        self.pass("add_webhook", self.inner.add_webhook(new, now)).await
    }

    async fn webhook(&self, owner: &Principal, key: &str) -> Result<Webhook, StoreError> {
        self.pass("webhook", self.inner.webhook(owner, key)).await
    }

    async fn webhook_at(&self, id: &WebhookId) -> Result<Option<Webhook>, StoreError> {
        self.pass("webhook_at", self.inner.webhook_at(id)).await
    }

    async fn webhooks(&self, owner: &Principal, page: &PageRequest) -> Result<Page<Webhook>, StoreError> {
        self.pass("webhooks", self.inner.webhooks(owner, page)).await
    }

    async fn pause_webhook(&self, id: &WebhookId, paused: Option<&str>) -> Result<(), StoreError> {
        self.pass("pause_webhook", self.inner.pause_webhook(id, paused)).await
    }

    async fn remove_webhook(&self, owner: &Principal, key: &str) -> Result<Webhook, StoreError> {
        self.pass("remove_webhook", self.inner.remove_webhook(owner, key)).await
    }

    async fn has_webhooks(&self) -> Result<bool, StoreError> {
        self.pass("has_webhooks", self.inner.has_webhooks()).await
    }

    async fn receive_delivery(&self, new: &NewDelivery, now: Timestamp) -> Result<Receipt, StoreError> {
        self.pass("receive_delivery", self.inner.receive_delivery(new, now)).await
    }

    async fn take_deliveries(
        &self,
        now: Timestamp,
        again_at: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<(Delivery, String, Webhook)>, StoreError> {
        self.pass("take_deliveries", self.inner.take_deliveries(now, again_at, rows_max)).await
    }

    async fn settle_delivery(&self, id: &DeliveryId, begun: &Result<TaskId, String>) -> Result<(), StoreError> {
        self.pass("settle_delivery", self.inner.settle_delivery(id, begun)).await
    }

    async fn deliveries(&self, webhook: &WebhookId, page: &PageRequest) -> Result<Page<Delivery>, StoreError> {
        self.pass("deliveries", self.inner.deliveries(webhook, page)).await
    }

    async fn next_delivery_at(&self) -> Result<Option<Timestamp>, StoreError> {
        self.pass("next_delivery_at", self.inner.next_delivery_at()).await
    }
}
