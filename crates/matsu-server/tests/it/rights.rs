//! Who may call which route, for all routes of the API's own description.

use axum::http::{StatusCode, header};
use matsu_core::access::Role;
use serde_json::json;

use crate::harness::{Server, request};

#[tokio::test(start_paused = true)]
async fn every_route_asks_for_a_token_that_holds() {
    let server = Server::new().await;
    let admin = server.token(Role::Admin, None).await;
    for operation in server.operations(&admin).await.iter().filter(|operation| !operation.is_open) {
        for token in [None, Some("matsu_unknown")] {
            let reply = server.call(&operation.method, &operation.path, token, Some(&json!({}))).await;
            assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{}: {reply:?}", operation.id);
            assert_eq!(reply.body["error_code"], "UNAUTHORIZED", "{}: {reply:?}", operation.id);
            assert_eq!(reply.kind, "application/problem+json", "{}", operation.id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_that_an_operation_does_not_name_is_refused() {
    let server = Server::new().await;
    let admin = server.token(Role::Admin, None).await;
    let tokens = [
        ("viewer", server.token(Role::Viewer, None).await),
        ("member", server.token(Role::Member, Some("alice")).await),
    ];
    let mut refused = 0;
    for operation in server.operations(&admin).await {
        for (role, token) in &tokens {
            if operation.roles.iter().any(|named| named == role) {
                continue;
            }
            let reply = server.call(&operation.method, &operation.path, Some(token), Some(&json!({}))).await;
            assert_eq!(reply.status, StatusCode::FORBIDDEN, "{} as {role}: {reply:?}", operation.id);
            assert_eq!(reply.body["error_code"], "FORBIDDEN", "{} as {role}", operation.id);
            refused += 1;
        }
    }
    assert!(refused > 20, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_request_for_another_server_is_refused_before_its_token_is_read() {
    let server = Server::new().await;
    let admin = server.token(Role::Admin, None).await;
    for (name, value) in [(header::HOST, "matsu.example"), (header::ORIGIN, "https://evil.example")] {
        let mut foreign = request("GET", "/api/v1/tasks", Some(&admin), None);
        foreign.headers_mut().insert(name.clone(), value.parse().unwrap());
        let reply = server.send(foreign).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{name}: {reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_opens_nothing_from_the_next_request_on() {
    let server = Server::new().await;
    let admin = server.token(Role::Admin, None).await;
    let other = server.token(Role::Viewer, None).await;
    server.get("/api/v1/tasks", &other).await;
    let listed = server.get("/api/v1/tokens", &admin).await;
    let id = listed["items"].as_array().unwrap().iter().find(|token| token["name"] == "viewer-owner").unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let revoked = server.call("DELETE", &format!("/api/v1/tokens/{id}"), Some(&admin), None).await;
    assert!(revoked.status.is_success(), "{revoked:?}");
    let reply = server.call("GET", "/api/v1/tasks", Some(&other), None).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{reply:?}");
}
