//! Which requests are accepted, and how all others are refused.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{Api, Reply, noop, over_socket, until};
use crate::home::Home;

/// A refusal with a stable code and a sentence.
#[track_caller]
fn assert_refused(reply: &Reply, status: u16, code: &str) -> String {
    assert_eq!(reply.status, status, "{reply:?}");
    assert!(reply.head.to_lowercase().contains("content-type: application/problem+json"), "{reply:?}");
    let problem: Value = reply.json();
    assert_eq!(problem["error_code"], code, "{problem:#}");
    assert_eq!(problem["status"], status, "{problem:#}");
    assert!(problem["error_id"].as_str().unwrap().starts_with("err_"));
    problem["detail"].as_str().unwrap().to_owned()
}

fn with_headers(api: &Api, headers: &[&str]) -> Reply {
    api.send_raw("GET", "/api/v1/tasks", headers, b"").unwrap()
}

#[test]
fn health_needs_no_token_and_figures_do() {
    let home = Home::sqlite();
    let api = home.serve().api_with_task();
    for (path, text) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let reply = api.1.send_raw("GET", path, &[], b"").unwrap();
        assert_eq!((reply.status, reply.body.as_str()), (200, text));
    }
    assert_refused(&api.1.send_raw("GET", "/metrics", &[], b"").unwrap(), 401, "UNAUTHORIZED");
    let reply = api.1.send("GET", "/metrics", None).unwrap();
    assert!(reply.body.contains("matsu_jobs_finished_total{kind=\"noop\",state=\"completed\"} 1"), "{}", reply.body);
}

impl crate::home::Daemon {
    /// Itself with one finished task, so that there is something to count.
    fn api_with_task(self) -> (Self, Api) {
        let task = self.api.submit(vec![noop()]);
        self.api.ended(&task, Duration::from_secs(10));
        let api = self.api.clone();
        (self, api)
    }
}

#[test]
fn only_a_live_token_opens() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let api = &daemon.api;
    assert!(assert_refused(&with_headers(api, &[]), 401, "UNAUTHORIZED").contains("Bearer"));
    assert_refused(&with_headers(api, &["Authorization: Bearer nonsense"]), 401, "UNAUTHORIZED");
    assert_refused(&with_headers(api, &[&format!("Authorization: Basic {}", api.token)]), 401, "UNAUTHORIZED");

    let made = home.run_json(&["token", "new", "laptop"]);
    let other = Api { token: made["secret"].as_str().unwrap().to_owned(), ..api.clone() };
    assert_eq!(other.get("/api/v1/tasks")["items"], json!([]));
    home.run(&["token", "revoke", made["token"]["id"].as_str().unwrap()]).good();
    assert_refused(&other.send("GET", "/api/v1/tasks", None).unwrap(), 401, "UNAUTHORIZED");
    assert_eq!(with_headers(api, &[&format!("Authorization: Bearer {}", api.token)]).status, 200);
}

#[test]
fn a_token_revoked_without_the_daemon_is_refused_by_it_soon() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let made = home.run_json(&["token", "new", "laptop"]);
    let other = Api { token: made["secret"].as_str().unwrap().to_owned(), ..daemon.api.clone() };
    other.get("/api/v1/tasks");
    // Through a data directory where no daemon is: this command opens the store itself.
    let id = made["token"]["id"].as_str().unwrap();
    let mut command = home.bare(&["token", "revoke", id, "--store", &home.store]);
    command.arg("--data-dir").arg(home.path("elsewhere"));
    crate::home::run(command).good();
    until("the daemon refuses it", Duration::from_secs(5), || {
        (other.send("GET", "/api/v1/tasks", None).unwrap().status == 401).then_some(())
    });
}

#[test]
fn a_foreign_host_or_origin_is_refused_even_with_the_token() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let auth = format!("Authorization: Bearer {}", daemon.api.token);
    let own = format!("Origin: http://{}", daemon.api.address);
    assert_eq!(with_headers(&daemon.api, &[&auth, &own]).status, 200);
    assert_eq!(with_headers(&daemon.api, &[&auth, "Host: localhost:1"]).status, 200);
    for foreign in [
        "Host: example.org",
        "Host: 127.0.0.1.example.org",
        "Host: ",
        "Origin: https://example.org",
        "Origin: http://localhost.example.org",
        "Origin: null",
    ] {
        assert_refused(&with_headers(&daemon.api, &[&auth, foreign]), 403, "FORBIDDEN");
    }
    let health = daemon.api.send_raw("GET", "/healthz", &["Host: example.org"], b"").unwrap();
    assert_refused(&health, 403, "FORBIDDEN");
}

#[test]
fn a_body_of_five_mebibytes_is_refused() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let auth = format!("Authorization: Bearer {}", daemon.api.token);
    let body = vec![b' '; 5 * 1024 * 1024];
    let reply = daemon.api.send_raw("POST", "/test/tasks", &[&auth], &body).unwrap();
    assert!(assert_refused(&reply, 413, "LIMIT_EXCEEDED").contains("4194304"));
    // The server goes on.
    daemon.api.submit(vec![noop()]);
}

#[test]
fn what_cannot_be_read_is_named() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let send = |method: &str, path: &str, body: Value| daemon.api.send(method, path, Some(&body)).unwrap();
    let unknown = send("POST", "/test/tasks", json!({ "jobs": [], "jbos": 1 }));
    assert!(assert_refused(&unknown, 422, "INVALID_PARAMS").contains("unknown field `jbos`"));
    let kind = send("POST", "/test/tasks", json!({ "jobs": [{ "kind": "dance" }] }));
    assert!(assert_refused(&kind, 422, "INVALID_PARAMS").contains("dance"));
    let query = daemon.api.send("GET", "/api/v1/tasks?limt=3", None).unwrap();
    assert!(assert_refused(&query, 400, "INVALID_PARAMS").contains("limt"));
    let auth = format!("Authorization: Bearer {}", daemon.api.token);
    let half = daemon.api.send_raw("POST", "/test/tasks", &[&auth], b"{\"jobs\":").unwrap();
    assert_refused(&half, 400, "INVALID_PARAMS");
    let many = send("POST", "/test/tasks", json!({ "jobs": vec![noop(); 101] }));
    assert!(assert_refused(&many, 429, "LIMIT_EXCEEDED").contains("at most 100 jobs"));
    assert_refused(&daemon.api.send("GET", "/api/v1/nothing", None).unwrap(), 404, "RESOURCE_NOT_FOUND");
    assert_refused(&send("DELETE", "/api/v1/tasks", json!({})), 405, "INVALID_PARAMS");
}

#[test]
fn an_unknown_task_is_a_clear_answer_everywhere() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let id = "task_01aaaaaaaaaaaaaaaaaaaaaaaa";
    for path in [format!("/api/v1/tasks/{id}"), format!("/test/wait?task={id}&timeout=30")] {
        assert_refused(&daemon.api.send("GET", &path, None).unwrap(), 404, "TASK_NOT_FOUND");
    }
    let stop = daemon.api.send("PATCH", &format!("/api/v1/tasks/{id}"), Some(&json!({ "status": "cancelled" })));
    assert_refused(&stop.unwrap(), 404, "TASK_NOT_FOUND");
}

#[test]
fn a_repeated_key_makes_one_task() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let body = json!({ "jobs": [noop()], "idempotency_key": "once" });
    let [first, second] = [0, 1].map(|_| daemon.api.post("/test/tasks", &body));
    assert_eq!(first["task"]["task_id"], second["task"]["task_id"]);
    assert_eq!((&first["existed"], &second["existed"]), (&json!(false), &json!(true)));
}

#[test]
fn the_control_routes_are_not_on_the_network() {
    let home = Home::sqlite();
    let daemon = home.serve();
    assert_refused(&daemon.api.send("GET", "/control/info", None).unwrap(), 404, "RESOURCE_NOT_FOUND");
    let info = over_socket(&home.data("matsu.sock"), "GET", "/control/info", None).unwrap().json();
    assert_eq!(info["pid"], daemon.process.pid());
    assert_eq!(info["store"], home.store);
}

#[test]
fn without_test_jobs_the_test_routes_are_not_there() {
    let home = Home::sqlite();
    let process = home.start(&["serve", "--port", "0"]);
    let daemon = crate::home::Daemon::announced(process, &home.data_dir());
    let made = daemon.api.send("POST", "/test/tasks", Some(&json!({ "jobs": [noop()] }))).unwrap();
    assert_refused(&made, 404, "RESOURCE_NOT_FOUND");
}
