//! The port of browsers that have subscribed, on top of the transitions.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::SubscriptionId;
use matsu_core::ports::store::{PushStore, StoreError};
use matsu_core::principal::Principal;
use matsu_core::push::{NewSubscription, PushSubscription};

use super::SqlStore;
use crate::transitions::push::{ListSubscriptions, PutSubscription, RemoveSubscription};

#[async_trait]
impl PushStore for SqlStore {
    async fn put_subscription(&self, new: &NewSubscription, now: Timestamp) -> Result<PushSubscription, StoreError> {
        self.write(PutSubscription { new: new.clone(), now }).await
    }

    async fn subscriptions(&self, owner: &Principal, now: Timestamp) -> Result<Vec<PushSubscription>, StoreError> {
        self.read(ListSubscriptions(owner.clone(), now)).await
    }

    async fn remove_subscription(&self, owner: &Principal, id: &SubscriptionId) -> Result<(), StoreError> {
        self.write(RemoveSubscription(owner.clone(), id.clone())).await
    }
}
