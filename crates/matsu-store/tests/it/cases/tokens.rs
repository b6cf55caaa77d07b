//! Named tokens.

use matsu_core::id::TokenId;
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;
use matsu_core::token::NewToken;

use crate::harness::TestStore;

fn token(t: &TestStore, name: &str, hash: &str) -> NewToken {
    NewToken {
        id: TokenId::mint(t.now()),
        name: name.to_owned(),
        principal: Principal::local_user(),
        secret_hash: hash.to_owned(),
        created_at: t.now(),
    }
}

pub async fn a_token_is_found_by_its_hash_until_it_is_revoked(t: TestStore) {
    let made = t.store.insert_token(token(&t, "laptop", "h1")).await.unwrap();
    assert_eq!(t.store.token_by_hash("h1").await.unwrap(), Some(made.clone()));
    assert_eq!(t.store.token_by_hash("h2").await.unwrap(), None);
    t.store.revoke_token(&made.id, t.now()).await.unwrap();
    t.store.revoke_token(&made.id, t.now()).await.unwrap();
    assert_eq!(t.store.token_by_hash("h1").await.unwrap(), None);
    assert!(t.store.tokens().await.unwrap()[0].revoked_at.is_some());
    let unknown = TokenId::from_text("tok_nope");
    assert!(matches!(t.store.revoke_token(&unknown, t.now()).await, Err(StoreError::NotFound { .. })));
}

pub async fn a_live_name_is_taken(t: TestStore) {
    let first = t.store.insert_token(token(&t, "laptop", "h1")).await.unwrap();
    assert!(matches!(t.store.insert_token(token(&t, "laptop", "h2")).await, Err(StoreError::Refused { .. })));
    t.store.revoke_token(&first.id, t.now()).await.unwrap();
    t.store.insert_token(token(&t, "laptop", "h3")).await.unwrap();
}
