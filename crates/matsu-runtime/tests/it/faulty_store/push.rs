//! The same faults for browsers that have subscribed.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::SubscriptionId;
use matsu_core::ports::store::{PushStore, StoreError};
use matsu_core::principal::Principal;
use matsu_core::push::{NewSubscription, PushSubscription};

use super::FaultyStore;

#[async_trait]
impl PushStore for FaultyStore {
    async fn put_subscription(&self, new: &NewSubscription, now: Timestamp) -> Result<PushSubscription, StoreError> {
        self.pass("put_subscription", self.inner.put_subscription(new, now)).await
    }

    async fn subscriptions(&self, owner: &Principal, now: Timestamp) -> Result<Vec<PushSubscription>, StoreError> {
        self.pass("subscriptions", self.inner.subscriptions(owner, now)).await
    }

    async fn remove_subscription(&self, owner: &Principal, id: &SubscriptionId) -> Result<(), StoreError> {
        self.pass("remove_subscription", self.inner.remove_subscription(owner, id)).await
    }
}
