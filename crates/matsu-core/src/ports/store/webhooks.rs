//! Incoming webhooks and their deliveries.

use crate::clock::Timestamp;
use crate::id::{DeliveryId, TaskId, WebhookId};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::unstarted::Unstarted;
use crate::webhook::{Delivery, NewDelivery, NewWebhook, Receipt, RemovedWebhook, Webhook};

use super::request;

/// Refused if the owner has one of that name.
#[derive(Clone, Debug)]
pub struct AddWebhook {
    pub new: NewWebhook,
    pub now: Timestamp,
}
request!(AddWebhook => Webhook);

/// By its id or its name.
#[derive(Clone, Debug)]
pub struct ReadWebhook(pub Principal, pub String);
request!(ReadWebhook => Webhook);

/// The one that a sender has named, of any owner.
#[derive(Clone, Debug)]
pub struct WebhookAt(pub WebhookId);
request!(WebhookAt => Option<Webhook>);

/// Oldest first.
#[derive(Clone, Debug)]
pub struct ListWebhooks(pub Principal, pub PageRequest);
request!(ListWebhooks => Page<Webhook>);

/// Pauses it for a reason, or lets it go on.
#[derive(Clone, Debug)]
pub struct PauseWebhook(pub WebhookId, pub Option<String>);
request!(PauseWebhook => ());

/// With its deliveries; those that wait for their start are dropped. Tasks stay.
#[derive(Clone, Debug)]
pub struct RemoveWebhook(pub Principal, pub String);
request!(RemoveWebhook => RemovedWebhook);

/// Whether there is one that takes deliveries.
#[derive(Clone, Debug)]
pub struct HasWebhooks;
request!(HasWebhooks => bool);

/// Stores a delivery once, over all nodes, with the time of its start: at most one of a webhook in each
/// `WEBHOOK_GAP_MIN`.
#[derive(Clone, Debug)]
pub struct ReceiveDelivery {
    pub new: NewDelivery,
    pub now: Timestamp,
}
request!(ReceiveDelivery => Receipt);

/// Deliveries that are to be started, oldest first, with their payload. They are not taken again before
/// `again_at`, so that one node starts each, and a node that dies meanwhile loses none.
#[derive(Clone, Debug)]
pub struct TakeDeliveries {
    pub now: Timestamp,
    pub again_at: Timestamp,
    pub rows_max: u32,
}
request!(TakeDeliveries => Vec<(Delivery, String, Webhook)>);

/// Notes the task that was started, or makes one that has failed with the reason. The payload is forgotten.
#[derive(Clone, Debug)]
pub struct SettleDelivery {
    pub id: DeliveryId,
    pub begun: Result<TaskId, Box<Unstarted>>,
}
request!(SettleDelivery => ());

/// Newest first.
#[derive(Clone, Debug)]
pub struct ListDeliveries(pub WebhookId, pub PageRequest);
request!(ListDeliveries => Page<Delivery>);

/// When a delivery is to be looked at next.
#[derive(Clone, Debug)]
pub struct NextDeliveryAt;
request!(NextDeliveryAt => Option<Timestamp>);
