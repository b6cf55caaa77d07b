//! Two people on one daemon: no page, claim, evidence, login, rule or correction of one is shown to the other, by any
//! tool or route. Whatever names something of the other's reads as if it had never been given out.

use std::time::Duration;

use matsu_testkit::test_site::{KEY, TestSite};
use serde_json::{Value, json};

use crate::handles::{SECRET, add_another_user, blanked};
use crate::home::{Daemon, Home, until};
use crate::http::Http;

const DIARY: &str = "The diary of Ann says that long polling reduces token use by a third.";
const MEMBERS: &str = "Only members read this sentence";
const RULE: &str = "ann-knows.example.org";

struct Installation {
    site: TestSite,
    _home: Home,
    _daemon: Daemon,
    ann: Http,
    bob: Http,
}

impl Installation {
    fn open() -> Self {
        let site = TestSite::start().unwrap();
        let mut home = Home::new();
        let documents = home.folder().join("documents");
        std::fs::create_dir(&documents).unwrap();
        std::fs::write(documents.join("diary.md"), format!("# Diary\n\n{DIARY}\n")).unwrap();
        home.set("MATSU_RESEARCH_SEARXNG", &site.searxng());
        home.set("MATSU_RESEARCH_ALLOW_HOSTS", &site.hosts().join(","));
        home.set("MATSU_RESEARCH_FOLDERS", documents.to_str().unwrap());
        home.set("MATSU_RESEARCH_BROWSER", "off");
        home.set("MATSU_RESEARCH_STEP_MS", "0");
        add_another_user(&home);
        let daemon = home.serve();
        let ann = daemon.http().clone();
        let bob = Http { token: SECRET.to_owned(), ..ann.clone() };
        Self { site, _home: home, _daemon: daemon, ann, bob }
    }

    /// A task with a page behind a login, an open auth item, a document of this machine, and public pages.
    fn research(&self, who: &Http) -> String {
        let made = who.says("create_task", &json!({ "query": "Does long polling cut token use?" }));
        let task = made["task_id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        let web = [
            format!("members read about long polling {}", self.site.url(0, "/members/0")),
            format!("a page with a login {}", self.site.url(1, "/members/2")),
            format!(
                "long polling token use {} {}",
                self.site.url(2, "/en/long-polling/0"),
                self.site.url(3, "/en/long-polling/0")
            ),
        ];
        for (queries, engine) in [(&web[..], "searxng"), (&["long polling diary".to_owned()][..], "local")] {
            let wish = json!({ "task_id": task, "queries": queries, "options": { "engines": [engine] } });
            let queued = who.says("queue_searches", &wish);
            assert_eq!(queued["ok"], true, "{queued}");
        }
        task
    }

    /// Waits until a task waits for nothing but logins; its status.
    fn rests(&self, who: &Http, task: &str, waits_for: &str) -> Value {
        until(waits_for, Duration::from_secs(60), || {
            let status = who.says("get_status", &json!({ "task_id": task }));
            (status["waiting_for"] == json!([waits_for])).then_some(status)
        })
    }
}

fn materials(who: &Http, task: &str) -> Value {
    let options = json!({ "limit": 200, "include_graph": true, "include_fragments": true, "detail": "full" });
    who.says("get_materials", &json!({ "task_id": task, "options": options }))
}

/// One name for each kind of thing that can be asked for.
struct Names {
    task: String,
    claim: String,
    edge: String,
    login: String,
}

impl Names {
    fn of(who: &Http, task: &str) -> Self {
        let found = materials(who, task);
        let claim = &found["claims"][0];
        let edges = found["claims"].as_array().unwrap().iter().flat_map(|claim| claim["evidence"].as_array().unwrap());
        let edge = edges.clone().next().unwrap_or(&claim["origin"]);
        let login = who.says("get_auth_queue", &json!({ "task_id": task }))["items"][0]["queue_id"].take();
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{found}")).to_owned();
        Self { task: task.to_owned(), claim: text(&claim["id"]), edge: text(&edge["edge_id"]), login: text(&login) }
    }

    /// Names of the same shape that were never given out.
    fn with_unknown_ids(&self) -> Self {
        let other = |name: &str| {
            let (kind, rest) = name.split_once('_').unwrap();
            format!("{kind}_{}", "0".repeat(rest.len()))
        };
        Self { task: other(&self.task), claim: other(&self.claim), edge: other(&self.edge), login: other(&self.login) }
    }

    fn blank(&self, reply: &Value) -> String {
        let all = [&self.task, &self.claim, &self.edge, &self.login];
        let mut reply = reply.clone();
        reply["error_id"] = Value::Null;
        all.iter().fold(blanked(&reply, &self.task), |text, name| text.replace(name.as_str(), "ID"))
    }

    /// The answers of every tool of research to these names, and of the two that take any task.
    fn tools(&self, who: &Http) -> Vec<(String, Value)> {
        let Self { task, claim, edge, login } = self;
        let calls = [
            ("queue_searches", json!({ "task_id": task, "queries": ["more"] })),
            ("get_status", json!({ "task_id": task, "wait": 5 })),
            ("get_materials", json!({ "task_id": task })),
            ("get_materials", json!({ "task_id": task, "options": { "format": "narrative" } })),
            ("get_auth_queue", json!({ "task_id": task })),
            ("resolve_auth", json!({ "queue_id": login, "action": "skip" })),
            ("resolve_auth", json!({ "queue_id": login, "action": "complete" })),
            ("feedback", json!({ "action": "claim_reject", "claim_id": claim, "reason": "mine now" })),
            ("feedback", json!({ "action": "claim_restore", "claim_id": claim })),
            ("feedback", json!({ "action": "edge_correct", "edge_id": edge, "correct_relation": "refutes" })),
            ("stop_task", json!({ "task_id": task, "mode": "immediate" })),
            ("cancel_task", json!({ "task_id": task })),
            ("get_task_status", json!({ "task_id": task })),
        ];
        calls.into_iter().map(|(tool, arguments)| (tool.to_owned(), who.says(tool, &arguments))).collect()
    }

    /// The answers of every route that takes a task to this one: as the server's own description lists them.
    fn routes(&self, who: &Http) -> Vec<(String, Value)> {
        let described = who.rest("GET", "/openapi.json", &Value::Null).json();
        let mut said = Vec::new();
        for (path, methods) in described["paths"].as_object().unwrap() {
            let path = path.trim_start_matches("/api/v1");
            if !path.starts_with("/tasks/{id}") {
                continue;
            }
            for method in methods.as_object().unwrap().keys().filter(|key| key.as_str() != "parameters") {
                let method = method.to_uppercase();
                let body = match (method.as_str(), path) {
                    ("GET", _) | (_, "/tasks/{id}/retry" | "/tasks/{id}/apply" | "/tasks/{id}/verify") => Value::Null,
                    (_, "/tasks/{id}/undo-apply" | "/tasks/{id}/discard") => Value::Null,
                    ("POST", "/tasks/{id}/send-back") => json!({ "comment": "again" }),
                    ("PATCH", "/tasks/{id}") => json!({ "status": "cancelled" }),
                    ("POST", "/tasks/{id}/searches") => json!({ "queries": ["more"] }),
                    ("POST", "/tasks/{id}/answer") => json!({ "id": "q1", "text": "yes" }),
                    _ => panic!("{method} {path} is new: write what another user would send it"),
                };
                let reply = who.rest(&method, &path.replace("{id}", &self.task), &body);
                assert_eq!(reply.status, 404, "{method} {path}: {reply:?}");
                said.push((format!("{method} {path}"), reply.json()));
            }
        }
        assert!(said.len() >= 10, "{said:?}");
        let claim = json!({ "action": "claim_reject", "claim_id": self.claim, "reason": "mine now" });
        let edge = json!({ "action": "edge_correct", "edge_id": self.edge, "correct_relation": "refutes" });
        let login = json!({ "queue_id": self.login, "action": "skip" });
        for (method, path, body) in [
            ("POST", "/feedback", claim),
            ("POST", "/feedback", edge),
            ("POST", "/auth-queue/resolve", login),
            ("GET", &format!("/auth-queue?task_id={}", self.task), Value::Null),
        ] {
            let reply = who.rest(method, path, &body);
            assert_eq!(reply.status, 404, "{method} {path}: {reply:?}");
            said.push((format!("{method} {path}"), reply.json()));
        }
        said
    }
}

#[test]
fn nothing_of_one_owner_reaches_another() {
    let installation = Installation::open();
    let (ann, bob) = (&installation.ann, &installation.bob);
    let kept = ann.rest("POST", "/auth-queue/cookies", &json!({ "domain": "127.0.0.1", "cookies": KEY }));
    assert_eq!(kept.status, 200, "{kept:?}");
    let block = json!({ "action": "domain_block", "domain_pattern": RULE, "reason": "for the test" });
    assert_eq!(ann.says("feedback", &block)["ok"], true);
    let of_ann = installation.research(ann);
    installation.rests(ann, &of_ann, "1 search awaiting a login");
    let before = materials(ann, &of_ann);
    let text = before.to_string();
    assert!(text.contains(MEMBERS) && text.contains(DIARY), "{before:#}");

    // The same questions by another user, on the same sites: what Ann sees for her cookies or on her disk is not there.
    let of_bob = installation.research(bob);
    installation.rests(bob, &of_bob, "2 searches awaiting a login");
    let seen = materials(bob, &of_bob);
    assert!(seen["total"].as_u64().unwrap() > 0 && seen.to_string().contains("/en/long-polling/0"), "{seen}");
    let visits = installation.site.visits_to("/members/0");
    let has_key = |with: bool| visits.iter().any(|visit| visit.headers.contains_key("cookie") == with);
    assert!(has_key(true) && has_key(false), "each asked for itself: {visits:?}");
    let lists = ["/tasks", "/jobs", "/auth-queue", "/feedback", "/rules", "/metrics/summary"];
    let mut shown = lists.map(|path| bob.rest("GET", path, &Value::Null).body).concat();
    for tool in ["get_auth_queue", "get_task_status"] {
        shown.push_str(&bob.says(tool, &json!({})).to_string());
    }
    shown.push_str(&seen.to_string());
    let names = Names::of(ann, &of_ann);
    for never in [MEMBERS, "diary of Ann", RULE, &names.task, &names.claim, &names.edge, &names.login] {
        assert!(!shown.contains(never), "{never}: {shown}");
    }

    // A user who knows the names learns no more than from names that were never given out.
    let unknown_names = names.with_unknown_ids();
    for (foreign, unknown) in
        [(names.tools(bob), unknown_names.tools(bob)), (names.routes(bob), unknown_names.routes(bob))]
    {
        for ((asked, foreign), (_, unknown)) in foreign.iter().zip(&unknown) {
            assert_eq!(names.blank(foreign), unknown_names.blank(unknown), "{asked}");
        }
    }
    let of_domain = json!({ "target": "domain", "domain": "127.0.0.2", "action": "skip" });
    assert_eq!(bob.says("resolve_auth", &of_domain)["resolved_count"], 1, "his own");

    // And nothing of all that has touched what is Ann's.
    assert_eq!(materials(ann, &of_ann), before);
    let status = installation.rests(ann, &of_ann, "1 search awaiting a login");
    assert_eq!(
        (&status["status"], &status["auth_queue"]["pending_count"]),
        (&json!("exploring"), &json!(1)),
        "{status}"
    );
}
