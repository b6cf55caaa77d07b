//! Named tokens.

use std::path::PathBuf;
use std::time::Duration;

use matsu_core::access::Role;
use matsu_core::id::TokenId;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    ExtendToken, InsertToken, ListTokens, ListUsers, PutUser, ReadUser, RemoveUser, RevokeToken, StoreError,
    TokenByHash,
};
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
        role: Role::Admin,
        tools: None,
        created_at: t.now(),
        expires_at: None,
    }
}

pub async fn a_token_is_found_by_its_hash_until_it_is_revoked(t: TestStore) {
    let made = t.store.run(InsertToken(token(&t, "laptop", "h1"))).await.unwrap();
    assert_eq!(t.store.run(TokenByHash("h1".to_owned())).await.unwrap(), Some(made.clone()));
    assert_eq!(t.store.run(TokenByHash("h2".to_owned())).await.unwrap(), None);
    t.store.run(RevokeToken { of: Some(me()), id: made.id.clone(), now: t.now() }).await.unwrap();
    t.store.run(RevokeToken { of: Some(me()), id: made.id.clone(), now: t.now() }).await.unwrap();
    assert_eq!(t.store.run(TokenByHash("h1".to_owned())).await.unwrap(), None);
    assert!(
        t.store.run(ListTokens { of: Some(me()), page: PageRequest::default() }).await.unwrap().items[0]
            .revoked_at
            .is_some()
    );
    let unknown = TokenId::from_text("tok_nope");
    assert!(matches!(
        t.store.run(RevokeToken { of: Some(me()), id: unknown.clone(), now: t.now() }).await,
        Err(StoreError::NotFound { .. })
    ));
}

pub async fn a_live_name_is_taken(t: TestStore) {
    let first = t.store.run(InsertToken(token(&t, "laptop", "h1"))).await.unwrap();
    assert!(matches!(t.store.run(InsertToken(token(&t, "laptop", "h2"))).await, Err(StoreError::Refused { .. })));
    t.store.run(RevokeToken { of: Some(me()), id: first.id.clone(), now: t.now() }).await.unwrap();
    t.store.run(InsertToken(token(&t, "laptop", "h3"))).await.unwrap();
}

pub async fn tokens_are_listed_in_pages_and_revoked_by_their_owner(t: TestStore) {
    let other = Principal::user("other");
    let mut made = Vec::new();
    for n in 0..5 {
        made.push(t.store.run(InsertToken(token(&t, &format!("t{n}"), &format!("h{n}")))).await.unwrap());
    }
    t.store.run(PutUser { user: other.clone(), roots: vec![], now: t.now() }).await.unwrap();
    let theirs = NewToken { principal: other.clone(), ..token(&t, "theirs", "h9") };
    let theirs = t.store.run(InsertToken(theirs)).await.unwrap();
    let first = t.store.run(ListTokens { of: Some(me()), page: PageRequest::new(None, Some(3)) }).await.unwrap();
    assert_eq!((&first.items[..], first.next), (&made[..3], Some(made[2].seq)));
    let rest = t.store.run(ListTokens { of: Some(me()), page: PageRequest::new(first.next, Some(3)) }).await.unwrap();
    assert_eq!((&rest.items[..], rest.next), (&made[3..], None));
    assert_eq!(
        t.store.run(ListTokens { of: Some(other.clone()), page: PageRequest::default() }).await.unwrap().items,
        [theirs.clone()]
    );
    assert!(matches!(
        t.store.run(RevokeToken { of: Some(me()), id: theirs.id.clone(), now: t.now() }).await,
        Err(StoreError::NotFound { .. })
    ));
    assert!(t.store.run(TokenByHash("h9".to_owned())).await.unwrap().is_some());
    assert_eq!(
        t.store.run(ListTokens { of: None, page: PageRequest::default() }).await.unwrap().items.len(),
        6,
        "an admin sees all"
    );
    t.store.run(RevokeToken { of: None, id: theirs.id.clone(), now: t.now() }).await.unwrap();
    assert!(t.store.run(TokenByHash("h9".to_owned())).await.unwrap().is_none(), "and revokes all");
}

pub async fn a_user_has_folders_and_tokens_until_it_is_removed(t: TestStore) {
    let alice = Principal::user("alice");
    let hers = |t: &TestStore| NewToken {
        principal: alice.clone(),
        role: Role::Member,
        tools: Some("core".to_owned()),
        expires_at: Some(t.now().plus(Duration::from_secs(60))),
        ..token(t, "hers", "h1")
    };
    let refused = t.store.run(InsertToken(hers(&t))).await.unwrap_err();
    assert!(refused.to_string().contains("matsu user add alice"), "{refused}");
    let roots = [PathBuf::from("/srv/a"), PathBuf::from("/srv/b")];
    let user = t.store.run(PutUser { user: alice.clone(), roots: roots[..1].to_vec(), now: t.now() }).await.unwrap();
    assert_eq!((user.principal.as_user(), &user.roots[..]), (Some("alice"), &roots[..1]));
    let made = t.store.run(InsertToken(hers(&t))).await.unwrap();
    assert_eq!((made.role, made.tools.as_deref(), &made.roots[..]), (Role::Member, Some("core"), &roots[..1]));
    assert!(!made.is_expired(t.now()) && made.is_expired(t.now().plus(Duration::from_secs(60))));
    t.store.run(PutUser { user: alice.clone(), roots: roots.to_vec(), now: t.now() }).await.unwrap();
    assert_eq!(
        t.store.run(TokenByHash("h1".to_owned())).await.unwrap().unwrap().roots,
        roots,
        "folders are the user's"
    );
    t.store.run(ExtendToken { id: made.id.clone(), expires_at: t.now().plus(Duration::from_secs(90)) }).await.unwrap();
    let later = t.store.run(TokenByHash("h1".to_owned())).await.unwrap().unwrap().expires_at;
    assert_eq!(later, Some(t.now().plus(Duration::from_secs(90))));
    assert_eq!(t.store.run(ListUsers(PageRequest::default())).await.unwrap().items.len(), 1);
    let removed = t.store.run(RemoveUser { user: alice.clone(), now: t.now() }).await.unwrap();
    assert_eq!((removed.tokens, removed.sessions), (1, 0));
    assert_eq!(t.store.run(TokenByHash("h1".to_owned())).await.unwrap(), None);
    assert_eq!(t.store.run(ReadUser(alice.clone())).await.unwrap(), None);
    assert!(matches!(
        t.store.run(RemoveUser { user: alice.clone(), now: t.now() }).await,
        Err(StoreError::NotFound { .. })
    ));
}
