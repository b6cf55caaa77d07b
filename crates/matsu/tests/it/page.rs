//! Access to the page: signing in by a code that works once, the two halves of a session, what others may not do.

use matsu_core::clock::Clock;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::events::Events;
use crate::home::{Daemon, Home, START_MAX};

struct Page<'a> {
    api: &'a Api,
    cookie: String,
    key: String,
}

fn code(home: &Home) -> String {
    let link = home.run_json(&["open", "--print"])["link"].as_str().unwrap().to_owned();
    link.split_once("/login#code=").expect("the code stands in the fragment").1.to_owned()
}

fn log_in(api: &Api, code: &str) -> Reply {
    let origin = format!("Origin: http://{}", api.address);
    api.send_raw("POST", "/api/v1/login", &[&origin], json!({ "code": code }).to_string().as_bytes()).unwrap()
}

fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    let mut lines = reply.head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

impl<'a> Page<'a> {
    fn sign_in(home: &Home, daemon: &'a Daemon) -> Self {
        let reply = log_in(&daemon.api, &code(home));
        assert_eq!(reply.status, 201, "{reply:?}");
        let set = header(&reply, "set-cookie").unwrap();
        for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(set.contains(part), "{set}");
        }
        let cookie = set.split(';').next().unwrap().to_owned();
        assert!(cookie.starts_with(&format!("matsu_{}=", daemon.api.address.port())), "{cookie}");
        Self { api: &daemon.api, cookie, key: reply.json()["key"].as_str().unwrap().to_owned() }
    }

    fn halves(&self) -> [String; 2] {
        [format!("Cookie: {}", self.cookie), format!("X-Matsu-Key: {}", self.key)]
    }

    fn send(&self, method: &str, path: &str, more: &[&str], body: &Value) -> Reply {
        let [cookie, key] = self.halves();
        let headers = [&[cookie.as_str(), key.as_str()], more].concat();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.api.send_raw(method, path, &headers, body.as_bytes()).unwrap()
    }

    fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], &Value::Null)
    }
}

#[test]
fn a_code_signs_in_once_and_the_session_outlives_the_server() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let code = code(&home);
    assert_eq!(log_in(&daemon.api, &code).status, 201);
    let again = log_in(&daemon.api, &code);
    assert_eq!((again.status, again.json()["error_code"].as_str().unwrap()), (401, "UNAUTHORIZED"));

    let (cookie, key) = {
        let page = Page::sign_in(&home, &daemon);
        assert_eq!(page.get("/api/v1/session").json()["principal"], "user:local");
        (page.cookie, page.key)
    };
    let port = daemon.api.address.port().to_string();
    let mut process = daemon.process;
    process.signal(Signal::TERM);
    assert!(process.ends_within(START_MAX).0.success());
    let process = home.start(&["serve", "--port", &port]);
    let daemon = Daemon::announced(process, &home.data_dir());
    let page = Page { api: &daemon.api, cookie, key };
    assert_eq!(page.get("/api/v1/tasks").status, 200);
}

#[test]
fn a_page_without_a_request_for_twelve_hours_is_signed_out() {
    const IDLE_MS: i64 = 12 * 3_600 * 1_000;
    let home = Home::sqlite();
    let daemon = home.serve();
    let page = Page::sign_in(&home, &daemon);
    let store = rusqlite::Connection::open(home.data("matsu.db")).unwrap();
    store.busy_timeout(START_MAX).unwrap();
    let expires_at = || -> i64 {
        store.query_row("SELECT expires_at FROM tokens WHERE name LIKE 'page:%'", [], |row| row.get(0)).unwrap()
    };
    let now_ms = || Clock::system().now().as_millis();
    // The test moves the end and not the clock: only the time between the two counts.
    let left_ms = |left: i64| {
        store.execute("UPDATE tokens SET expires_at = ?1 WHERE name LIKE 'page:%'", [now_ms() + left]).unwrap();
    };
    let fresh = expires_at() - now_ms();
    assert!((IDLE_MS - 60_000..=IDLE_MS).contains(&fresh), "{fresh} ms");

    left_ms(60_000);
    assert_eq!(page.get("/api/v1/tasks").status, 200, "one minute is left");
    assert!(expires_at() - now_ms() > IDLE_MS - 60_000, "a request begins the time anew");

    left_ms(-1);
    assert_eq!(page.get("/api/v1/tasks").status, 401);
    left_ms(IDLE_MS);
    assert_eq!(page.get("/api/v1/tasks").status, 401, "what has ended stays ended");
}

#[test]
fn neither_half_opens_anything_alone() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let page = Page::sign_in(&home, &daemon);
    let [cookie, key] = page.halves();
    for half in [cookie.as_str(), key.as_str()] {
        assert_eq!(daemon.api.send_raw("GET", "/api/v1/tasks", &[half], b"").unwrap().status, 401, "{half}");
    }
    // A client's token is no session, and a session is no client's token.
    let bearer = format!("Authorization: Bearer page:{}:{}", page.cookie.split_once('=').unwrap().1, page.key);
    assert_eq!(daemon.api.send_raw("GET", "/api/v1/tasks", &[&bearer], b"").unwrap().status, 401);
    let port = daemon.api.address.port();
    let (cookie, key) = (format!("Cookie: matsu_{port}={}", daemon.api.token), "X-Matsu-Key: x");
    assert_eq!(daemon.api.send_raw("GET", "/api/v1/tasks", &[&cookie, key], b"").unwrap().status, 401);
}

#[test]
fn a_write_must_come_from_the_page_itself() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let page = Page::sign_in(&home, &daemon);
    let ours = format!("Origin: http://{}", daemon.api.address);
    let body = json!({ "name": "from the page" });
    for refused in [
        &[][..],
        &["Origin: null"],
        &["Origin: http://127.0.0.1:1"],
        &["Origin: https://example.org"],
        &[ours.as_str(), "Sec-Fetch-Site: same-site"],
    ] {
        assert_eq!(page.send("POST", "/api/v1/tokens", refused, &body).status, 403, "{refused:?}");
    }
    let good = page.send("POST", "/api/v1/tokens", &[&ours, "Sec-Fetch-Site: same-origin"], &body);
    assert_eq!(good.status, 201, "{good:?}");
    assert_eq!(header(&good, "access-control-allow-origin"), None);
}

#[test]
fn signing_out_ends_the_streams_too() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let page = Page::sign_in(&home, &daemon);
    let [cookie, key] = page.halves();
    let mut events = Events::open(&daemon.api, "/api/v1/events", &[&cookie, &key]);
    assert_eq!(events.next().unwrap().name, "hello");
    let ours = format!("Origin: http://{}", daemon.api.address);
    let reply = page.send("DELETE", "/api/v1/session", &[&ours], &Value::Null);
    assert_eq!(reply.status, 204, "{reply:?}");
    assert!(header(&reply, "set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(page.get("/api/v1/tasks").status, 401);
    let bye = events.until("goodbye", |event| event.name == "bye");
    assert_eq!(bye.data["reason"], "signed out");
}

#[test]
fn the_page_comes_under_a_strict_policy_and_shows_nothing_by_itself() {
    let home = Home::sqlite();
    let daemon = home.serve();
    for path in ["/", "/inbox", "/tasks/task_1", "/login"] {
        let reply = daemon.api.send_raw("GET", path, &[], b"").unwrap();
        assert_eq!(reply.status, 200, "{path}");
        let policy = header(&reply, "content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(header(&reply, "x-content-type-options"), Some("nosniff"));
        assert!(reply.body.contains("<title>Matsu</title>"), "{}", reply.body);
    }
    for path in ["/assets/gone.js", "/elsewhere"] {
        let status = daemon.api.send_raw("GET", path, &[], b"").unwrap().status;
        assert!(matches!(status, 401 | 404), "{path}: {status}");
    }
    assert_eq!(daemon.api.send_raw("GET", "/", &["Host: example.org"], b"").unwrap().status, 403);
}

#[test]
fn beyond_loopback_only_under_names_that_were_said() {
    let home = Home::sqlite();
    let refused = home.run(&["serve", "--port", "0", "--listen", "0.0.0.0"]);
    assert!(refused.code == 1 && refused.err.contains("server.names"), "{refused:?}");
    let home = home.with_variable("MATSU_SERVER_NAMES", "build.example.org");
    let daemon = home.serve_with(&["--listen", "127.0.0.1"]);
    let ask = |host: &str| {
        let (host, auth) = (format!("Host: {host}"), format!("Authorization: Bearer {}", daemon.api.token));
        daemon.api.send_raw("GET", "/api/v1/tasks", &[&host, &auth], b"").unwrap().status
    };
    assert_eq!((ask("build.example.org:7878"), ask("127.0.0.1")), (200, 200));
    assert_eq!(ask("evil.example.org"), 403);
}

#[test]
fn behind_a_proxy_the_public_address_is_accepted_and_its_cookies_are_secure() {
    let home = Home::sqlite().with_variable("MATSU_SERVER_PUBLIC_URL", "https://matsu.invalid");
    let daemon = home.serve();
    let sign_in = |headers: &[&str], code: &str| {
        daemon.api.send_raw("POST", "/api/v1/login", headers, json!({ "code": code }).to_string().as_bytes()).unwrap()
    };
    let (host, origin) = ("Host: matsu.invalid", "Origin: https://matsu.invalid");
    for foreign in
        ["Origin: http://matsu.invalid", "Origin: https://matsu.invalid.evil.org", "Origin: https://evil.org"]
    {
        assert_eq!(sign_in(&[host, foreign], "any").status, 403, "{foreign}");
    }
    let begun = sign_in(&[host, origin], &code(&home));
    assert_eq!(begun.status, 201, "{begun:?}");
    let set = header(&begun, "set-cookie").unwrap();
    assert!(set.starts_with("matsu_443=") && set.ends_with("; Secure"), "{set}");
    let (cookie, key) = (set.split(';').next().unwrap(), begun.json()["key"].as_str().unwrap().to_owned());
    let (cookie, key) = (format!("Cookie: {cookie}"), format!("X-Matsu-Key: {key}"));
    let write = |origin: &str| {
        let headers = [host, origin, &cookie, &key, "Sec-Fetch-Site: same-origin"];
        let body = json!({ "name": "remote" }).to_string();
        daemon.api.send_raw("POST", "/api/v1/tokens", &headers, body.as_bytes()).unwrap().status
    };
    assert_eq!((write("Origin: http://matsu.invalid"), write(origin)), (403, 201));
    // On this machine itself nothing changes.
    let here = log_in(&daemon.api, &code(&home));
    assert!(!header(&here, "set-cookie").unwrap().contains("Secure"), "{here:?}");
}

#[test]
fn open_prints_only_an_address_that_answers() {
    let home = Home::sqlite().with_variable("MATSU_SERVER_PUBLIC_URL", "https://matsu.invalid");
    let daemon = home.serve();
    let opened = home.run(&["open", "--print"]).good();
    assert!(opened.out.starts_with(&format!("http://{}/login#code=", daemon.api.address)), "{opened:?}");
    assert!(opened.err.contains("https://matsu.invalid") && opened.err.contains("does not answer"), "{opened:?}");
    drop(daemon);
    let home = Home::sqlite();
    let daemon = home.serve_with(&["--listen", "127.0.0.1"]);
    let public = format!("http://localhost:{}", daemon.api.address.port());
    let home = home.with_variable("MATSU_SERVER_PUBLIC_URL", public.as_str());
    let opened = home.run(&["open", "--print"]).good();
    assert!(opened.out.starts_with(&format!("{public}/login#code=")), "{opened:?}");
}

#[test]
fn the_document_names_every_route_and_its_answers_fit() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let document = daemon.api.get("/api/v1/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    for path in ["/tasks", "/tasks/{id}", "/jobs", "/events", "/metrics/summary", "/tokens", "/openapi.json", "/doctor"]
    {
        assert!(paths.contains_key(path), "{path}");
    }
    let mut ids = std::collections::BTreeSet::new();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{method} {path}: {id} is taken");
        }
        // Whatever can be read without an argument answers as promised.
        if let Some(read) = methods.get("get").filter(|_| !path.contains('{') && path != "/events") {
            let answer = daemon.api.get(&format!("/api/v1{path}"));
            let schema = &read["responses"]["200"]["content"]["application/json"]["schema"];
            assert_fits(&document, schema, &answer, path);
        }
    }
}

/// Required fields are there, and their types are among those named.
fn assert_fits(document: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let target = document.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("{name} leads nowhere"));
        return assert_fits(document, target, value, at);
    }
    for field in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(field.as_str().unwrap()).is_some(), "{at} lacks {field}: {value}");
    }
    if let Some(properties) = schema["properties"].as_object() {
        for (name, schema) in properties {
            if let Some(value) = value.get(name).filter(|value| !value.is_null()) {
                assert_fits(document, schema, value, &format!("{at}.{name}"));
            }
        }
    }
    for (nth, value) in value.as_array().into_iter().flatten().enumerate() {
        assert_fits(document, &schema["items"], value, &format!("{at}[{nth}]"));
    }
}

#[test]
fn the_doctor_says_the_same_to_the_page() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let text = daemon.api.get("/api/v1/doctor");
    let printed = home.run_json(&["doctor"]);
    let names = |report: &Value| -> Vec<Value> {
        report["findings"].as_array().unwrap().iter().map(|finding| finding["what"].clone()).collect()
    };
    assert_eq!(text["ok"], true, "{text}");
    assert_eq!(names(&text), names(&printed));
}
