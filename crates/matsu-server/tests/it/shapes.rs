//! Replies have the shape that the description names: lists as pages, refusals as problems.

use axum::http::StatusCode;
use matsu_core::access::Role;
use serde_json::json;

use crate::harness::Server;

#[tokio::test(start_paused = true)]
async fn a_read_without_an_id_answers_with_the_fields_that_its_schema_requires() {
    let server = Server::new().await;
    let admin = server.token(Role::Admin, None).await;
    let document = server.get("/api/v1/openapi.json", &admin).await;
    let mut checked = 0;
    for operation in server.operations(&admin).await {
        let has_id = operation.described["parameters"].as_array().is_some_and(|parameters| {
            parameters.iter().any(|parameter| parameter["in"] == "path" || parameter["required"] == true)
        });
        let schema = &operation.described["responses"]["200"]["content"]["application/json"]["schema"];
        if operation.method != "GET" || has_id || schema.is_null() {
            continue;
        }
        let reply = server.call("GET", &operation.path, Some(&admin), None).await;
        if reply.status == StatusCode::OK {
            let schema = schema["$ref"].as_str().map_or(schema, |named| {
                document.pointer(named.trim_start_matches('#')).expect("a schema that is referred to")
            });
            for field in schema["required"].as_array().into_iter().flatten() {
                let field = field.as_str().unwrap();
                assert!(reply.body.get(field).is_some(), "{}: no {field}: {}", operation.id, reply.body);
            }
            checked += 1;
        } else {
            // This process has no doctor, no agents and no models; it says so as a problem.
            assert_eq!(reply.kind, "application/problem+json", "{}: {reply:?}", operation.id);
            assert!(reply.body["error_code"].is_string(), "{}: {reply:?}", operation.id);
        }
    }
    assert!(checked > 15, "{checked}");
}

#[tokio::test(start_paused = true)]
async fn an_id_that_was_never_given_out_is_not_found() {
    let server = Server::new().await;
    let admin = server.token(Role::Admin, None).await;
    for path in ["tasks/task_x", "tasks/task_x/jobs", "chats/chat_x", "schedules/none", "webhooks/none"] {
        let reply = server.call("GET", &format!("/api/v1/{path}"), Some(&admin), None).await;
        assert!(matches!(reply.status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED), "{path}: {reply:?}");
    }
    let reply = server.call("GET", "/api/v1/nothing", Some(&admin), None).await;
    assert_eq!((reply.status, &reply.body["error_code"]), (StatusCode::NOT_FOUND, &json!("RESOURCE_NOT_FOUND")));
}

#[tokio::test(start_paused = true)]
async fn a_query_or_body_with_an_unknown_field_is_refused_by_name() {
    let server = Server::new().await;
    let admin = server.token(Role::Admin, None).await;
    let query = server.call("GET", "/api/v1/jobs?colour=red", Some(&admin), None).await;
    assert_eq!(query.status, StatusCode::BAD_REQUEST, "{query:?}");
    assert!(query.body["detail"].as_str().unwrap().contains("colour"), "{query:?}");
    let wish = json!({ "name": "bob", "colour": "red" });
    let body = server.call("POST", "/api/v1/users", Some(&admin), Some(&wish)).await;
    assert!(body.status.is_client_error(), "{body:?}");
    assert!(body.body["detail"].as_str().unwrap().contains("colour"), "{body:?}");
}
