//! Browsers that have subscribed to notices.

use crate::clock::Timestamp;
use crate::id::SubscriptionId;
use crate::principal::Principal;
use crate::push::{NewSubscription, PushSubscription};

use super::request;

/// The same address of the same owner is one subscription, which takes over what is new. Refused if the owner has
/// `SUBSCRIPTIONS_MAX` others.
#[derive(Clone, Debug)]
pub struct PutSubscription {
    pub new: NewSubscription,
    pub now: Timestamp,
}
request!(PutSubscription => PushSubscription);

/// Those whose token is valid, oldest first.
#[derive(Clone, Debug)]
pub struct ListSubscriptions(pub Principal, pub Timestamp);
request!(ListSubscriptions => Vec<PushSubscription>);

#[derive(Clone, Debug)]
pub struct RemoveSubscription(pub Principal, pub SubscriptionId);
request!(RemoveSubscription => ());
