//! Browsers that have subscribed to notices.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::id::SubscriptionId;
use crate::principal::Principal;
use crate::push::{NewSubscription, PushSubscription};

use super::StoreError;

#[async_trait]
pub trait PushStore {
    /// The same address of the same owner is one subscription, which takes over what is new. Refused if the owner has
    /// `SUBSCRIPTIONS_MAX` others.
    async fn put_subscription(&self, new: &NewSubscription, now: Timestamp) -> Result<PushSubscription, StoreError>;

    /// Those whose token is valid, oldest first.
    async fn subscriptions(&self, owner: &Principal, now: Timestamp) -> Result<Vec<PushSubscription>, StoreError>;

    async fn remove_subscription(&self, owner: &Principal, id: &SubscriptionId) -> Result<(), StoreError>;
}
