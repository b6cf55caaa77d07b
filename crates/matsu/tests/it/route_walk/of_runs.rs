//! The operations on a run of an agent: each answers its owner with 200 for an id that another member gets 404 for.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::text;
use crate::api::{Api, until};
use crate::home::{Daemon, Home};

const MOMENT: Duration = Duration::from_secs(30);

fn git(root: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
    let done = Command::new("git").arg("-C").arg(root).args(identity).args(args).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

struct Stage {
    _home: Home,
    daemon: Daemon,
    member: Api,
}

impl Stage {
    fn new() -> Self {
        let home = Home::sqlite();
        let root = home.path("project");
        std::fs::create_dir(&root).unwrap();
        git(&root, &["init", "-q", "-b", "main"]);
        std::fs::write(root.join("a.txt"), "a\n").unwrap();
        git(&root, &["add", "."]);
        git(&root, &["commit", "-q", "-m", "begin"]);
        matsu_testkit::fake_agents::write(&home.path("agents")).unwrap();
        let config = format!("[agents]\nroots = \"{}\"\nmode_max = \"workspace-write\"\n", root.display());
        std::fs::write(home.path("config.toml"), config).unwrap();
        let daemon = home.serve_with(&["--config", &home.path("config.toml").display().to_string()]);
        home.run_json(&["user", "add", "bob"]);
        let made = home.run_json(&["token", "new", "bob's", "--user", "bob", "--role", "member"]);
        let member = Api { token: text(&made["secret"]), ..daemon.api.clone() };
        Self { _home: home, daemon, member }
    }

    fn start(&self, wish: &Value) -> String {
        let said = self.daemon.api.post("/api/v1/tools/use_agent", wish);
        text(&said["task_id"])
    }

    fn reaches(&self, task: &str, status: &str) {
        until(&format!("the task is {status}"), MOMENT, || {
            let now = self.daemon.api.task(task)["status"].clone();
            assert!(now == status || now != "failed", "{:#}", self.daemon.api.task(task));
            (now == status).then_some(())
        });
    }

    /// 404 for the other member, 200 for its owner.
    #[track_caller]
    fn walk(&self, method: &str, task: &str, what: &str, body: Option<&Value>) -> Value {
        let path = format!("/api/v1/tasks/{task}/{what}");
        let foreign = self.member.send(method, &path, body).unwrap();
        assert_eq!(foreign.status, 404, "{method} {what}: {foreign:?}");
        let own = self.daemon.api.send(method, &path, body).unwrap();
        assert!((200..=202).contains(&own.status), "{method} {what}: {own:?}");
        own.json()
    }
}

#[test]
fn what_a_run_has_left_is_there_for_its_owner_alone() {
    let stage = Stage::new();
    let wish = json!({
        "cli_name": "script", "mode": "workspace-write", "run_async": true, "check": "test -e b.txt",
        "message": "echo b > b.txt; echo written",
    });
    let task = stage.start(&wish);
    stage.reaches(&task, "completed");
    stage.walk("GET", &task, "log", None);
    let diff = stage.walk("GET", &task, "diff", None);
    assert!(diff.to_string().contains("b.txt"), "{diff}");
    let files = stage.walk("GET", &task, "files", None);
    assert_eq!(files["files"][0]["path"], "b.txt", "{files}");
    let one = stage.walk("GET", &task, "diff?path=b.txt", None);
    assert!(text(&one["patch"]).contains("+b"), "{one}");
    stage.walk("GET", &task, "receipt", None);
    stage.walk("GET", &task, "questions", None);
    let verified = stage.walk("POST", &task, "verify", None);
    stage.reaches(&text(&verified["task_id"]), "completed");
    stage.walk("POST", &task, "apply", Some(&json!({})));
    stage.walk("POST", &task, "undo-apply", Some(&json!({})));
    stage.walk("POST", &task, "send-back", Some(&json!({ "comment": "once more" })));
    stage.walk("POST", &task, "discard", Some(&json!({})));
}

#[test]
fn what_a_run_asks_is_answered_by_its_owner_alone() {
    let stage = Stage::new();
    let script = "echo '{\"type\":\"question\",\"id\":\"q1\",\"text\":\"Go on?\",\"options\":[\"yes\",\"no\"]}'\n\
                  read answer\necho '{\"type\":\"text\",\"text\":\"went on\"}'\necho '{\"type\":\"result\"}'";
    let task = stage.start(&json!({ "cli_name": "events", "run_async": true, "message": script }));
    stage.reaches(&task, "input_required");
    let asked = stage.walk("GET", &task, "questions", None);
    assert_eq!(asked["items"][0]["text"], "Go on?", "{asked}");
    stage.walk("POST", &task, "answer", Some(&json!({ "id": "q1", "option": "yes" })));
    stage.reaches(&task, "completed");
}
