//! The port of incoming webhooks on top of the transitions.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::{DeliveryId, TaskId, WebhookId};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{StoreError, WebhookStore};
use matsu_core::principal::Principal;
use matsu_core::webhook::{Delivery, NewDelivery, NewWebhook, Receipt, Webhook};

use super::SqlStore;
use crate::transitions::webhooks::{
    AddWebhook, Deliveries, HasWebhooks, ListWebhooks, NextDeliveryAt, PauseWebhook, ReadWebhook, ReceiveDelivery,
    RemoveWebhook, SettleDelivery, TakeDeliveries, WebhookAt,
};

#[async_trait]
impl WebhookStore for SqlStore {
    async fn add_webhook(&self, new: &NewWebhook, now: Timestamp) -> Result<Webhook, StoreError> {
        self.write(AddWebhook { new: new.clone(), now }).await
    }

    async fn webhook(&self, owner: &Principal, key: &str) -> Result<Webhook, StoreError> {
        self.read(ReadWebhook(owner.clone(), key.to_owned())).await
    }

    async fn webhook_at(&self, id: &WebhookId) -> Result<Option<Webhook>, StoreError> {
        self.read(WebhookAt(id.clone())).await
    }

    async fn webhooks(&self, owner: &Principal, page: &PageRequest) -> Result<Page<Webhook>, StoreError> {
        self.read(ListWebhooks(owner.clone(), page.clone())).await
    }

    async fn pause_webhook(&self, id: &WebhookId, paused: Option<&str>) -> Result<(), StoreError> {
        self.write(PauseWebhook(id.clone(), paused.map(str::to_owned))).await
    }

    async fn remove_webhook(&self, owner: &Principal, key: &str) -> Result<Webhook, StoreError> {
        self.write(RemoveWebhook(owner.clone(), key.to_owned())).await
    }

    async fn has_webhooks(&self) -> Result<bool, StoreError> {
        self.read(HasWebhooks).await
    }

    async fn receive_delivery(&self, new: &NewDelivery, now: Timestamp) -> Result<Receipt, StoreError> {
        self.write(ReceiveDelivery { new: new.clone(), now }).await
    }

    async fn take_deliveries(
        &self,
        now: Timestamp,
        again_at: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<(Delivery, String, Webhook)>, StoreError> {
        self.write(TakeDeliveries { now, again_at, rows_max }).await
    }

    async fn settle_delivery(&self, id: &DeliveryId, begun: &Result<TaskId, String>) -> Result<(), StoreError> {
        self.write(SettleDelivery { id: id.clone(), begun: begun.clone() }).await
    }

    async fn deliveries(&self, webhook: &WebhookId, page: &PageRequest) -> Result<Page<Delivery>, StoreError> {
        self.read(Deliveries(webhook.clone(), page.clone())).await
    }

    async fn next_delivery_at(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(NextDeliveryAt).await
    }
}
