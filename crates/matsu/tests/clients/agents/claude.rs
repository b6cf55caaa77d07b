//! Claude Code in a terminal: its waits become native tasks, and an idle session is woken when one ends.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use matsu_testkit::model_server::{Asked, Fate, ModelServer, Recorded, Reply};
use serde_json::{Value, json};

use super::programs;
use super::terminal::Terminal;
use super::wire::{Wire, quoted};
use crate::home::{Home, kill, until};
use crate::http::Http;

/// A start of the program, and a turn of its model, on a busy machine.
const SOON: Duration = Duration::from_secs(90);
/// Five of the client's own intervals: a client that polls on does it within this.
const FIVE_POLLS: Duration = Duration::from_secs(5);
const NOTICE: &str = "<task-notification>";

/// What the model does, for as long as the test says nothing else.
#[derive(Default)]
struct Plan {
    /// The task it waits for when its message asks for that.
    task: Option<String>,
    /// What it stops, by the client's own name for it, when its message asks for that.
    stop: Option<String>,
}

impl Plan {
    fn reply(&mut self, asked: &Asked) -> Reply {
        let got_text = |words: &str| asked.messages.iter().any(|message| message.contains(words));
        if got_text(NOTICE) {
            return Reply::text("I was woken.");
        }
        if got_text("please stop it")
            && let Some(id) = self.stop.take()
        {
            return Reply::tool("TaskStop", json!({ "task_id": id }));
        }
        if got_text("please wait")
            && let Some(task) = self.task.take()
        {
            let wait = json!({ "task_id": task, "timeout": 600, "since": 1 });
            return Reply::tool("mcp__matsu__get_task_status", wait);
        }
        Reply::text("My turn is over.")
    }
}

struct Session {
    terminal: Terminal,
    model: ModelServer,
    plan: Arc<Mutex<Plan>>,
    /// What the model received instead of the answer it waited for.
    given: String,
    wire: Wire,
    http: Http,
    home: Home,
}

impl Session {
    /// A session at its prompt, connected to a daemon that its own relay has started.
    fn start(programs: &std::path::Path) -> Self {
        let home = Home::new();
        let plan = Arc::new(Mutex::new(Plan::default()));
        let for_model = Arc::clone(&plan);
        let model = ModelServer::with(Box::new(move |asked| for_model.lock().unwrap().reply(asked))).unwrap();
        let wire = Wire::new(&home);
        let (config, work) = (home.folder().join("claude"), home.folder().join("work"));
        for folder in [&config, &work] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let key = format!("sk-ant-api03-{}", "0".repeat(60));
        // What a person answers at the first start: the colours, the key, and that this folder may be trusted.
        let answers = json!({ "hasCompletedOnboarding": true, "theme": "dark", "projects":
            { work.to_str().unwrap(): { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true } },
            "customApiKeyResponses": { "approved": [&key[key.len() - 20..]], "rejected": [] } });
        std::fs::write(config.join(".claude.json"), answers.to_string()).unwrap();
        let servers = json!({ "mcpServers": { "matsu": wire.server(&home) } });
        std::fs::write(config.join("mcp.json"), servers.to_string()).unwrap();
        let environment = BTreeMap::from([
            ("HOME".to_owned(), home.folder().display().to_string()),
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("CLAUDE_CONFIG_DIR".to_owned(), config.display().to_string()),
            ("ANTHROPIC_BASE_URL".to_owned(), model.url()),
            ("ANTHROPIC_API_KEY".to_owned(), key),
            ("DISABLE_AUTOUPDATER".to_owned(), "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC".to_owned(), "1".to_owned()),
        ]);
        let (program, servers): (PathBuf, PathBuf) = (programs.join("claude"), config.join("mcp.json"));
        let flags = format!("--strict-mcp-config --mcp-config {} --allowedTools mcp__matsu", quoted(&servers));
        let terminal = Terminal::start(&format!("{} {flags}", quoted(&program)), &work, &environment);
        terminal.wait_for("❯", SOON);
        let (_, http) = home.relayed();
        until("the tools are listed", SOON, || wire.requests("tools/list").pop()?.1);
        Self { terminal, model, plan, given: String::new(), wire, http, home }
    }

    /// Lets the model wait for a task of this length. Returns the task and the native task that the wait became, when
    /// the turn is over and the session idle.
    fn wait_natively(&mut self, ms: u64) -> (String, String) {
        let task = self.http.submit(ms);
        self.plan.lock().unwrap().task = Some(task.clone());
        self.terminal.say("please wait");
        let native = until("the wait became a native task", SOON, || {
            let (_, answer) = self.wire.requests("tools/call").pop()?;
            answer?["result"]["taskId"].as_str().map(str::to_owned)
        });
        let given = self.asked(|asked| asked.results.iter().any(|result| result.contains(&native)));
        self.given = given.asked.unwrap().results.join(" ");
        println!("the model gets: {}", self.given);
        until("the turn is over", SOON, || (self.model.asked().last()?.fate != Fate::Open).then_some(()));
        (task, native)
    }

    #[track_caller]
    fn asked(&self, wanted: impl Fn(&Asked) -> bool) -> Recorded {
        self.model.wait_for(SOON, |request| request.asked.as_ref().is_some_and(&wanted)).expect("the model is asked")
    }

    /// The session was idle, and its model is asked again with what came. Nothing was asked in between.
    #[track_caller]
    fn is_woken_for(&self, task: &str, asked_before: usize) {
        let has_notice = |message: &String| message.contains(NOTICE) && message.contains(task);
        let woken = self.asked(|asked| asked.messages.iter().any(has_notice));
        let notice = woken.asked.unwrap().messages.into_iter().find(has_notice).unwrap();
        println!("the model is woken with: {notice}");
        assert!(notice.contains("returned_because") && notice.contains("slept_ms"), "the result itself: {notice}");
        assert_eq!(self.model.asked().len(), asked_before + 1, "waiting costs no turn");
    }

    fn polls(&self, native: &str) -> Vec<(Value, Option<Value>)> {
        let all = self.wire.requests("tasks/get");
        all.into_iter().filter(|(request, _)| request["params"]["taskId"] == native).collect()
    }

    #[track_caller]
    fn polls_no_more(&self, native: &str) {
        let polls = self.polls(native).len();
        std::thread::sleep(FIVE_POLLS);
        assert_eq!(self.polls(native).len(), polls, "it asks on for ever");
    }
}

#[test]
fn an_idle_session_is_woken_by_a_finished_wait() {
    let Some(programs) = programs("claude is woken") else { return };
    let mut session = Session::start(&programs);
    let (task, native) = session.wait_natively(12_000);
    let asked = session.model.asked().len();
    session.is_woken_for(&task, asked);
    assert_ne!(task, native, "a wait has an id of its own");
    session.polls_no_more(&native);
    println!("result: an idle session is woken by a wait that ended, without a turn in between | claude | yes");
}

#[test]
fn a_wait_that_is_stopped_leaves_the_work_alone() {
    let Some(programs) = programs("claude stops a wait") else { return };
    let mut session = Session::start(&programs);
    let (task, native) = session.wait_natively(600_000);
    let (_, words) = session.given.split_once("TaskStop with task_id \"").expect("how to stop it");
    session.plan.lock().unwrap().stop = words.split('"').next().map(str::to_owned);
    session.terminal.say("please stop it");
    until("the wait is cancelled", SOON, || session.wire.requests("tasks/cancel").pop()?.1);
    session.polls_no_more(&native);
    let cancels = session.wire.requests("tasks/cancel");
    println!("tasks/cancel came {} times", cancels.len());
    for (request, answer) in cancels {
        assert_eq!(request["params"]["taskId"], native.as_str());
        assert!(answer.as_ref().is_some_and(|answer| answer["result"].is_object()), "{answer:?}");
    }
    assert_eq!(session.http.status_of(&task), "running");
    println!("result: stopping a wait does not stop the work | claude | yes");
}

#[test]
fn a_wait_outlives_the_daemon_and_no_client_polls_for_ever() {
    let Some(programs) = programs("claude and a killed daemon") else { return };
    let mut session = Session::start(&programs);
    let (task, native) = session.wait_natively(25_000);
    let asked = session.model.asked().len();
    let (old, _) = session.home.relayed();
    // As a power cut would.
    kill(old);
    until("another daemon", SOON, || session.home.announced().filter(|(pid, _)| *pid != old));
    session.is_woken_for(&task, asked);
    let polls = session.polls(&native);
    let refused = polls.iter().filter(|(_, answer)| answer.as_ref().is_some_and(|answer| answer["error"].is_object()));
    println!("tasks/get came {} times, {} of them while no daemon was there", polls.len(), refused.count());
    session.polls_no_more(&native);
    println!("result: a wait outlives the daemon, and no client polls for ever | claude | yes");
}
