//! Another's handle is not there: the same answer as for an id that was never given out.

use std::time::Duration;

use matsu_core::access::Role;
use matsu_core::clock::Clock;
use matsu_core::id::TokenId;
use matsu_core::ports::store::{InsertToken, PutUser};
use matsu_core::principal::Principal;
use matsu_core::token::NewToken;
use matsu_store::{OpenOptions, Synchronous};
use serde_json::{Value, json};

use crate::home::{Home, until};
use crate::http::{Http, modern};

pub const SECRET: &str = "the secret of another user";

/// A token of another principal, put into the store while no daemon serves it.
pub fn add_another_user(home: &Home) {
    let url = format!("sqlite:{}", home.data_dir().join("matsu.db").display());
    std::fs::create_dir_all(home.data_dir()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let opened = matsu_store::open(&url, OpenOptions { synchronous: Synchronous::Full, clock: Clock::system() })
            .await
            .unwrap();
        let now = Clock::system().now();
        let principal = Principal::from_text("user:another");
        opened.store.run(PutUser { user: principal.clone(), roots: vec![], now }).await.unwrap();
        let token = NewToken {
            id: TokenId::mint(now),
            name: "another user".to_owned(),
            principal,
            secret_hash: matsu_server::auth::hash(SECRET),
            role: Role::Member,
            tools: None,
            created_at: now,
            expires_at: None,
        };
        opened.store.run(InsertToken(token)).await.unwrap();
    });
}

/// An answer with this id blanked out, and what differs from call to call.
pub fn blanked(reply: &Value, id: &str) -> String {
    let mut reply = reply.clone();
    if reply["result"].is_object() {
        reply["result"]["structuredContent"]["error_id"] = Value::Null;
        reply["result"]["content"] = Value::Null;
    }
    reply.to_string().replace(id, "ID")
}

#[test]
fn anothers_handle_reads_as_not_found() {
    let home = Home::new();
    add_another_user(&home);
    let daemon = home.serve();
    let owner = daemon.http();
    let other_user = Http { token: SECRET.to_owned(), ..owner.clone() };
    let task = owner.submit(600_000);
    until("the task runs", Duration::from_secs(10), || (owner.status_of(&task) == "running").then_some(()));

    let asks = |http: &Http, id: &str| {
        let follows = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let native = |method: &str| {
            let mut body = modern(method, json!({ "taskId": id, "inputResponses": {} }));
            body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = follows.clone();
            http.mcp(&body, &[]).json()
        };
        vec![
            http.call("get_task_status", &json!({ "task_id": id, "timeout": 5 })),
            http.call("get_task_status", &json!({ "task_ids": [id] })),
            http.call("cancel_task", &json!({ "task_id": id, "mode": "immediate" })),
            native("tasks/get"),
            native("tasks/update"),
            native("tasks/cancel"),
        ]
    };
    let missing = "task_00000000000000000000000000";
    let (foreign, unknown) = (asks(&other_user, &task), asks(&other_user, missing));
    for (foreign, unknown) in foreign.iter().zip(&unknown) {
        assert_eq!(blanked(foreign, &task), blanked(unknown, missing));
    }
    assert_eq!(foreign[0]["result"]["structuredContent"]["status"], "not_found", "{}", foreign[0]);
    assert_eq!(foreign[2]["result"]["structuredContent"]["error_code"], "TASK_NOT_FOUND", "{}", foreign[2]);
    assert!(foreign[3..].iter().all(|reply| reply["error"]["code"] == -32602), "{foreign:?}");
    let listed = other_user.call("get_task_status", &json!({}));
    assert_eq!(listed["result"]["structuredContent"]["tasks"], json!([]), "{listed}");
    assert_eq!(owner.status_of(&task), "running");
}
