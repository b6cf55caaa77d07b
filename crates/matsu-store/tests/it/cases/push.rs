//! Browsers that get notices: one row for each address of a user, for as long as its token is valid.

use std::time::Duration;

use matsu_core::access::Role;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{SubscriptionId, TokenId};
use matsu_core::limits::SUBSCRIPTIONS_MAX;
use matsu_core::ports::store::{
    InsertToken, ListSubscriptions, PutSubscription, RemoveSubscription, RevokeToken, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::push::NewSubscription;
use matsu_core::token::NewToken;

use crate::harness::TestStore;

fn browser(endpoint: &str, token: Option<&TokenId>) -> NewSubscription {
    NewSubscription {
        owner: Principal::local_user(),
        token: token.cloned(),
        endpoint: endpoint.to_owned(),
        p256dh: "point".to_owned(),
        auth: "auth".to_owned(),
        sender_key: "key".to_owned(),
    }
}

async fn token(t: &TestStore, name: &str, expires_in: Option<Duration>) -> TokenId {
    let new = NewToken {
        id: TokenId::mint(t.now()),
        name: name.to_owned(),
        principal: Principal::local_user(),
        secret_hash: name.to_owned(),
        role: Role::Admin,
        tools: None,
        created_at: t.now(),
        expires_at: expires_in.map(|after| t.now().plus(after)),
    };
    t.store.run(InsertToken(new)).await.unwrap().id
}

pub async fn a_browser_is_one_subscription_of_its_user(t: TestStore) {
    let local = Principal::local_user();
    let first = t.store.run(PutSubscription { new: browser("https://a/1", None), now: t.now() }).await.unwrap();
    let renewed = NewSubscription { auth: "new".to_owned(), ..browser("https://a/1", None) };
    let again = t.store.run(PutSubscription { new: renewed, now: t.now() }).await.unwrap();
    assert_eq!((&again.id, again.auth.as_str()), (&first.id, "new"), "the same browser");
    let other = NewSubscription { owner: Principal::user("ada"), ..browser("https://a/1", None) };
    let other = t.store.run(PutSubscription { new: other, now: t.now() }).await.unwrap();
    assert_ne!(other.id, first.id, "another user takes nothing over");
    assert_eq!(t.store.run(ListSubscriptions(local.clone(), t.now())).await.unwrap(), [again]);
    let foreign = t.store.run(RemoveSubscription(local.clone(), other.id.clone())).await;
    assert!(matches!(foreign, Err(StoreError::NotFound { .. })), "{foreign:?}");
    t.store.run(RemoveSubscription(local.clone(), first.id.clone())).await.unwrap();
    assert_eq!(t.store.run(ListSubscriptions(local.clone(), t.now())).await.unwrap(), []);
    let nowhere = t.store.run(RemoveSubscription(local.clone(), SubscriptionId::from_text("sub_1"))).await;
    assert!(matches!(nowhere, Err(StoreError::NotFound { .. })), "{nowhere:?}");
}

pub async fn a_subscription_ends_with_its_token_and_few_are_kept(t: TestStore) {
    let (local, hour) = (Principal::local_user(), Duration::from_secs(3_600));
    let (phone, laptop) = (token(&t, "phone", None).await, token(&t, "laptop", Some(hour)).await);
    t.store.run(PutSubscription { new: browser("https://a/phone", Some(&phone)), now: t.now() }).await.unwrap();
    t.store.run(PutSubscription { new: browser("https://a/laptop", Some(&laptop)), now: t.now() }).await.unwrap();
    let known = async |at| {
        let known = t.store.run(ListSubscriptions(local.clone(), at)).await.unwrap();
        known.into_iter().map(|one| one.endpoint).collect::<Vec<_>>()
    };
    assert_eq!(known(t.now()).await, ["https://a/phone", "https://a/laptop"]);
    assert_eq!(known(t.now().plus(hour)).await, ["https://a/phone"], "the session of the laptop has expired");
    t.store.run(RevokeToken { of: None, id: phone.clone(), now: t.now() }).await.unwrap();
    assert_eq!(known(t.now()).await, ["https://a/laptop"], "a lost phone gets nothing");

    for n in 1..SUBSCRIPTIONS_MAX {
        t.store.run(PutSubscription { new: browser(&format!("https://a/{n}"), None), now: t.now() }).await.unwrap();
    }
    let refused = t.store.run(PutSubscription { new: browser("https://a/more", None), now: t.now() }).await;
    let Err(StoreError::Refused { code, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(code, ErrorCode::LimitExceeded);
    t.store.run(PutSubscription { new: browser("https://a/1", None), now: t.now() }).await.unwrap();
    let later = t.now().plus(hour);
    t.store.run(PutSubscription { new: browser("https://a/more", None), now: later }).await.unwrap();
    assert_eq!(known(later).await.len(), SUBSCRIPTIONS_MAX as usize, "the one that has expired made space");
}
