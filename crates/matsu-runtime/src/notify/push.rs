//! Browsers that get notices: they subscribe, are listed and are removed, each by its own user.

use matsu_core::id::{SubscriptionId, TokenId};
use matsu_core::ports::notice_channel::Subscribing;
use matsu_core::ports::store::{ListSubscriptions, PutSubscription, RemoveSubscription};
use matsu_core::principal::Principal;
use matsu_core::push::{NewSubscription, PushSubscription};

use crate::runtime::service;
use crate::tasks::TaskError;

/// What a browser says about itself.
pub struct BrowserKeys {
    pub endpoint: String,
    pub p256dh: String,
    pub auth: String,
}

service! {
    /// Browsers that get notices.
    Push
}

impl Push<'_> {
    /// A browser gets the notices of this user from now on, until the token that it is signed in with ends.
    ///
    /// # Errors
    /// An address or a key that cannot be used; too many browsers.
    pub async fn subscribe_push(
        self,
        owner: &Principal,
        token: Option<TokenId>,
        browser: BrowserKeys,
        channel: &dyn Subscribing,
    ) -> Result<PushSubscription, TaskError> {
        let BrowserKeys { endpoint, p256dh, auth } = browser;
        channel.check(&endpoint, &p256dh, &auth).map_err(TaskError::Invalid)?;
        let sender_key = channel.public_key().to_owned();
        let new = NewSubscription { owner: owner.clone(), token, endpoint, p256dh, auth, sender_key };
        Ok(self.runtime.store().run(PutSubscription { new, now: self.runtime.clock().now() }).await?)
    }

    /// Oldest first.
    ///
    /// # Errors
    /// The store's own.
    pub async fn push_subscriptions(self, owner: &Principal) -> Result<Vec<PushSubscription>, TaskError> {
        Ok(self.runtime.store().run(ListSubscriptions(owner.clone(), self.runtime.clock().now())).await?)
    }

    /// # Errors
    /// There is no such subscription of this user.
    pub async fn unsubscribe_push(self, owner: &Principal, id: &str) -> Result<(), TaskError> {
        Ok(self.runtime.store().run(RemoveSubscription(owner.clone(), SubscriptionId::from_text(id))).await?)
    }
}
