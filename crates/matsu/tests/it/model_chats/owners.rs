//! Two people on one daemon: a chat with models is its owner's, and the other does not learn that it exists.

use matsu_core::access::Role;
use matsu_core::clock::Clock;
use matsu_core::id::TokenId;
use matsu_core::ports::store::{InsertToken, PutUser};
use matsu_core::principal::Principal;
use matsu_core::token::NewToken;
use matsu_store::{OpenOptions, Synchronous};
use serde_json::json;

use super::{hears, home, open, say, serve};
use crate::api::Api;
use crate::events::Events;
use crate::home::Home;

const SECRET: &str = "the secret of another user";

/// A token of another person, put into the store while no daemon serves it.
fn add_another_user(home: &Home) {
    std::fs::create_dir_all(home.data_dir()).unwrap();
    let url = format!("sqlite:{}", home.data("matsu.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = OpenOptions { synchronous: Synchronous::Full, clock: Clock::system() };
        let opened = matsu_store::open(&url, options).await.unwrap();
        let now = Clock::system().now();
        let (name, principal) = ("another user".to_owned(), Principal::from_text("user:another"));
        let secret_hash = matsu_server::auth::hash(SECRET);
        opened.store.run(PutUser { user: principal.clone(), roots: vec![], now }).await.unwrap();
        let token = NewToken {
            id: TokenId::mint(now),
            name,
            principal,
            secret_hash,
            role: Role::Member,
            tools: None,
            created_at: now,
            expires_at: None,
        };
        opened.store.run(InsertToken(token)).await.unwrap();
    });
}

#[test]
fn a_chat_with_models_is_known_to_its_owner_only() {
    let home = home();
    add_another_user(&home);
    let daemon = serve(&home);
    let other = Api { token: SECRET.to_owned(), ..daemon.api.clone() };
    let follow = |api: &Api| Events::open(api, "/api/v1/events", &[&format!("Authorization: Bearer {}", api.token)]);
    let (mut own, mut foreign) = (follow(&daemon.api), follow(&other));
    let chat = open(&daemon, &["echo"]);
    say(&daemon, &chat, "@echo hello");
    hears(&daemon, &chat, "completed", "You said");
    let topic = format!("chat/{chat}");
    own.until("the chat", |event| event.name == "chat" && event.data["topic"] == topic);
    assert!(daemon.api.all("chats").iter().any(|listed| listed["chat_id"] == *chat));
    assert_eq!(other.all("chats").len(), 0);
    for path in ["", "/messages"] {
        let path = format!("/api/v1/chats/{chat}{path}");
        assert_eq!(other.send("GET", &path, None).unwrap().status, 404, "{path}");
        assert_eq!(daemon.api.send("GET", &path, None).unwrap().status, 200, "{path}");
    }
    // Events of chats come in order: a client that gets a later one will not get the first.
    let theirs = other.post("/api/v1/chats", &json!({ "models": ["echo"] }))["chat_id"].clone();
    let theirs = format!("chat/{}", theirs.as_str().unwrap());
    foreign.until("their own chat", |event| {
        assert_ne!(event.data["topic"], topic, "{event:?}");
        event.data["topic"] == theirs
    });
}
