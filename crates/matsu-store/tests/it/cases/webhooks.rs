//! Incoming webhooks: each delivery counts once, and a node that dies loses none.

use std::time::Duration;

use matsu_core::id::{TaskId, WebhookId};
use matsu_core::limits::{WEBHOOK_DELIVERIES_KEPT, WEBHOOK_GAP_MIN, WEBHOOK_WAITING_MAX};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    AddWebhook, HasWebhooks, ListDeliveries, ListWebhooks, NextDeliveryAt, PauseWebhook, ReadWebhook, ReceiveDelivery,
    RemoveWebhook, SettleDelivery, TakeDeliveries, WebhookAt,
};
use matsu_core::principal::Principal;
use matsu_core::secret::Token;
use matsu_core::webhook::{DeliveryState, NewDelivery, NewWebhook, Receipt, Webhook, WebhookKind};

use super::schedules::unstarted;
use crate::harness::TestStore;

fn new(name: &str) -> NewWebhook {
    let run = serde_json::json!({ "message": "look" }).as_object().unwrap().clone();
    NewWebhook {
        owner: Principal::local_user(),
        name: name.to_owned(),
        kind: WebhookKind::Github,
        secret: Token::new("a secret"),
        run,
        directory: Some("/work".to_owned()),
    }
}

async fn added(t: &TestStore, name: &str) -> Webhook {
    t.store.run(AddWebhook { new: new(name), now: t.now() }).await.unwrap()
}

fn delivery(webhook: &Webhook, key: &str, digest: Option<&str>) -> NewDelivery {
    let digest = digest.map(str::to_owned);
    NewDelivery { webhook: webhook.id.clone(), key: key.to_owned(), digest, payload: "{\"a\":1}".to_owned() }
}

pub async fn a_delivery_is_stored_once_by_its_key_and_by_its_body(t: TestStore) {
    let (webhook, other) = (added(&t, "triage").await, added(&t, "other").await);
    let now = t.now();
    let receive =
        async |new: NewDelivery, at| t.store.run(ReceiveDelivery { new: new.clone(), now: at }).await.unwrap();
    let Receipt::Stored(first) = receive(delivery(&webhook, "d1", Some("x")), now).await else { panic!("not stored") };
    assert_eq!((first.state, first.received_at), (DeliveryState::Waiting, now));
    assert_eq!(receive(delivery(&webhook, "d1", Some("y")), now).await, Receipt::Repeated(first.clone()), "the key");
    assert_eq!(receive(delivery(&webhook, "d2", Some("x")), now).await, Receipt::Repeated(first.clone()), "the body");
    for (key, digest) in [("d3", Some("z")), ("d4", None), ("d5", None)] {
        assert!(matches!(receive(delivery(&webhook, key, digest), now).await, Receipt::Stored(_)), "{key}");
    }
    assert!(matches!(receive(delivery(&other, "d1", Some("x")), now).await, Receipt::Stored(_)), "another webhook");
    // It is known for as long as was promised, also after it was started.
    t.store.run(SettleDelivery { id: first.id.clone(), begun: Err(unstarted(&t, "no")) }).await.unwrap();
    let (late, later) = (now.plus(WEBHOOK_DELIVERIES_KEPT), now.plus(WEBHOOK_DELIVERIES_KEPT * 2));
    assert!(matches!(receive(delivery(&webhook, "d6", None), late).await, Receipt::Stored(_)));
    assert!(matches!(receive(delivery(&webhook, "d1", None), late).await, Receipt::Repeated(_)), "still known");
    assert!(matches!(receive(delivery(&webhook, "d7", None), later).await, Receipt::Stored(_)));
    assert!(matches!(receive(delivery(&webhook, "d1", None), later).await, Receipt::Stored(_)), "forgotten");
    let gone = NewDelivery { webhook: WebhookId::from_text("hook_none"), ..delivery(&webhook, "d9", None) };
    assert!(t.store.run(ReceiveDelivery { new: gone.clone(), now }).await.is_err());
}

pub async fn a_webhook_starts_at_most_one_task_a_minute_and_few_wait(t: TestStore) {
    let (webhook, now) = (added(&t, "triage").await, t.now());
    for number in 0..WEBHOOK_WAITING_MAX {
        let new = delivery(&webhook, &number.to_string(), None);
        assert!(
            matches!(t.store.run(ReceiveDelivery { new: new.clone(), now }).await.unwrap(), Receipt::Stored(_)),
            "{number}"
        );
    }
    let more = delivery(&webhook, "more", None);
    assert_eq!(t.store.run(ReceiveDelivery { new: more.clone(), now }).await.unwrap(), Receipt::Full);
    let lease = Duration::from_secs(24 * 3_600);
    for number in 0..3 {
        let at = now.plus(WEBHOOK_GAP_MIN * number);
        let taken = t.store.run(TakeDeliveries { now: at, again_at: at.plus(lease), rows_max: 50 }).await.unwrap();
        assert_eq!(taken.len(), 1, "minute {number}");
        assert_eq!((taken[0].0.key.as_str(), taken[0].1.as_str()), (&*number.to_string(), "{\"a\":1}"));
    }
    // A clock that was set back by a day delays the next one by a minute for each that waits, not by a day.
    let back = now.minus(lease);
    let webhook = added(&t, "clock").await;
    t.store.run(ReceiveDelivery { new: delivery(&webhook, "first", None), now }).await.unwrap();
    t.store.run(ReceiveDelivery { new: delivery(&webhook, "second", None), now: back }).await.unwrap();
    assert_eq!(t.store.run(NextDeliveryAt).await.unwrap(), Some(back.plus(WEBHOOK_GAP_MIN * 2)));
}

pub async fn a_delivery_of_a_node_that_died_is_taken_again_and_settled_once(t: TestStore) {
    let (webhook, now) = (added(&t, "triage").await, t.now());
    let later = now.plus(Duration::from_secs(60));
    t.store.run(ReceiveDelivery { new: delivery(&webhook, "d1", None), now }).await.unwrap();
    assert_eq!(t.store.run(NextDeliveryAt).await.unwrap(), Some(now));
    let taken = t.store.run(TakeDeliveries { now, again_at: later, rows_max: 10 }).await.unwrap();
    assert_eq!((taken.len(), &taken[0].2), (1, &webhook));
    assert_eq!(t.store.run(TakeDeliveries { now, again_at: later, rows_max: 10 }).await.unwrap(), [], "it is taken");
    let again = t.store.run(TakeDeliveries { now: later, again_at: later, rows_max: 10 }).await.unwrap();
    assert_eq!((again[0].0.id.clone(), again[0].1.as_str()), (taken[0].0.id.clone(), "{\"a\":1}"));
    let task = TaskId::from_text("task_1");
    t.store.run(SettleDelivery { id: again[0].0.id.clone(), begun: Ok(task.clone()) }).await.unwrap();
    t.store.run(SettleDelivery { id: again[0].0.id.clone(), begun: Err(unstarted(&t, "late")) }).await.unwrap();
    let all = t.store.run(ListDeliveries(webhook.id.clone(), PageRequest::default())).await.unwrap().items;
    assert_eq!((all.len(), all[0].state, &all[0].task_id), (1, DeliveryState::Started, &Some(task)));
    assert_eq!(t.store.run(NextDeliveryAt).await.unwrap(), None);
}

pub async fn webhooks_are_their_owners_and_found_by_name(t: TestStore) {
    assert!(!t.store.run(HasWebhooks).await.unwrap());
    let (webhook, owner, now) = (added(&t, "triage").await, Principal::local_user(), t.now());
    let refused = t.store.run(AddWebhook { new: new("triage"), now }).await.unwrap_err();
    assert!(refused.to_string().contains("triage"), "the name is taken: {refused}");
    assert_eq!(t.store.run(ReadWebhook(owner.clone(), "triage".to_owned())).await.unwrap(), webhook);
    assert_eq!(t.store.run(ReadWebhook(owner.clone(), webhook.id.as_str().to_owned())).await.unwrap(), webhook);
    assert_eq!(t.store.run(WebhookAt(webhook.id.clone())).await.unwrap(), Some(webhook.clone()));
    assert_eq!(t.store.run(WebhookAt(WebhookId::from_text("triage"))).await.unwrap(), None, "a name is no address");
    assert_eq!(webhook.secret, Token::new("a secret"));
    let other = Principal::user("eve");
    assert!(t.store.run(ReadWebhook(other.clone(), "triage".to_owned())).await.is_err());
    assert!(t.store.run(RemoveWebhook(other.clone(), "triage".to_owned())).await.is_err());
    assert!(t.store.run(HasWebhooks).await.unwrap());
    t.store.run(ReceiveDelivery { new: delivery(&webhook, "d1", None), now }).await.unwrap();
    t.store.run(PauseWebhook(webhook.id.clone(), Some("paused by its owner".to_owned()))).await.unwrap();
    assert_eq!(t.store.run(TakeDeliveries { now, again_at: now, rows_max: 10 }).await.unwrap(), [], "it is paused");
    assert!(!t.store.run(HasWebhooks).await.unwrap());
    let removed = t.store.run(RemoveWebhook(owner.clone(), "triage".to_owned())).await.unwrap();
    assert_eq!((&removed.webhook.id, removed.dropped), (&webhook.id, 1), "one was taken and not started");
    assert_eq!(t.store.run(ListWebhooks(owner.clone(), PageRequest::default())).await.unwrap().items, []);
    assert_eq!(t.store.run(NextDeliveryAt).await.unwrap(), None, "its deliveries are gone");
}
