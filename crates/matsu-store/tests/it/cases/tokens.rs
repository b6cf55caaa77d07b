//! Named tokens.

use matsu_core::id::TokenId;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;
use matsu_core::token::NewToken;

use crate::harness::TestStore;

fn me() -> Principal {
    Principal::local_user()
}

fn token(t: &TestStore, name: &str, hash: &str) -> NewToken {
    NewToken {
        id: TokenId::mint(t.now()),
        name: name.to_owned(),
        principal: me(),
        secret_hash: hash.to_owned(),
        created_at: t.now(),
    }
}

pub async fn a_token_is_found_by_its_hash_until_it_is_revoked(t: TestStore) {
    let made = t.store.insert_token(token(&t, "laptop", "h1")).await.unwrap();
    assert_eq!(t.store.token_by_hash("h1").await.unwrap(), Some(made.clone()));
    assert_eq!(t.store.token_by_hash("h2").await.unwrap(), None);
    t.store.revoke_token(&me(), &made.id, t.now()).await.unwrap();
    t.store.revoke_token(&me(), &made.id, t.now()).await.unwrap();
    assert_eq!(t.store.token_by_hash("h1").await.unwrap(), None);
    assert!(t.store.tokens(&me(), &PageRequest::default()).await.unwrap().items[0].revoked_at.is_some());
    let unknown = TokenId::from_text("tok_nope");
    assert!(matches!(t.store.revoke_token(&me(), &unknown, t.now()).await, Err(StoreError::NotFound { .. })));
}

pub async fn a_live_name_is_taken(t: TestStore) {
    let first = t.store.insert_token(token(&t, "laptop", "h1")).await.unwrap();
    assert!(matches!(t.store.insert_token(token(&t, "laptop", "h2")).await, Err(StoreError::Refused { .. })));
    t.store.revoke_token(&me(), &first.id, t.now()).await.unwrap();
    t.store.insert_token(token(&t, "laptop", "h3")).await.unwrap();
}

pub async fn tokens_are_listed_in_pages_and_revoked_by_their_owner(t: TestStore) {
    let other = Principal::user("other");
    let mut made = Vec::new();
    for n in 0..5 {
        made.push(t.store.insert_token(token(&t, &format!("t{n}"), &format!("h{n}"))).await.unwrap());
    }
    let theirs = NewToken { principal: other.clone(), ..token(&t, "theirs", "h9") };
    let theirs = t.store.insert_token(theirs).await.unwrap();
    let first = t.store.tokens(&me(), &PageRequest::new(None, Some(3))).await.unwrap();
    assert_eq!((&first.items[..], first.next), (&made[..3], Some(made[2].seq)));
    let rest = t.store.tokens(&me(), &PageRequest::new(first.next, Some(3))).await.unwrap();
    assert_eq!((&rest.items[..], rest.next), (&made[3..], None));
    assert_eq!(t.store.tokens(&other, &PageRequest::default()).await.unwrap().items, [theirs.clone()]);
    assert!(matches!(t.store.revoke_token(&me(), &theirs.id, t.now()).await, Err(StoreError::NotFound { .. })));
    assert!(t.store.token_by_hash("h9").await.unwrap().is_some());
}
