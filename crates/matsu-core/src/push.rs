//! Browsers that have subscribed to notices: where a push service takes messages for them, and how they are encrypted.

use crate::clock::Timestamp;
use crate::id::{SubscriptionId, TokenId};
use crate::principal::Principal;

/// What a browser says when it subscribes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSubscription {
    pub owner: Principal,
    /// What the browser was signed in with. When that token ends, the browser gets nothing any more.
    pub token: Option<TokenId>,
    /// The address at the push service. Everyone who knows it can be a nuisance, so no list shows it.
    pub endpoint: String,
    /// The browser's public key, a point of P-256 in base64url.
    pub p256dh: String,
    /// The browser's secret for the encryption, in base64url.
    pub auth: String,
    /// The public key of the sender for which the push service accepts messages.
    pub sender_key: String,
}

/// A browser that gets notices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSubscription {
    pub id: SubscriptionId,
    pub endpoint: String,
    pub p256dh: String,
    pub auth: String,
    pub sender_key: String,
    pub created_at: Timestamp,
}
