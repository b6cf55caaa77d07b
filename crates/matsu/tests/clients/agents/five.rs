//! The five command lines as Matsu's agents: asked, asked again, stopped in the middle, and with their users' logins.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use matsu_testkit::model_server::{Asked, ModelServer, Reply};
use serde_json::{Value, json};

use super::cases::{CASES, Case, KEY, SECRET, carries};
use super::places::{Place, places};
use crate::home::{Daemon, Home, until};

pub const RUN_MAX: Duration = Duration::from_secs(120);
/// After a cancel everything is gone within this.
const GONE_MAX: Duration = Duration::from_secs(5);

/// One agent with a daemon and a model of its own.
pub struct Bed {
    pub case: &'static Case,
    pub level: &'static str,
    pub model: ModelServer,
    pub daemon: Daemon,
    pub home: Home,
    /// What every daemon of this home has in its environment.
    settings: Vec<(String, String)>,
}

impl Bed {
    pub fn new(
        case: &'static Case,
        place: &Place,
        is_logged_in: bool,
        reply: impl FnMut(&Asked) -> Reply + Send + 'static,
    ) -> Self {
        Self::with(case, place, is_logged_in, "", reply)
    }

    /// With more lines in the user's definition.
    pub fn with(
        case: &'static Case,
        place: &Place,
        is_logged_in: bool,
        more: &str,
        reply: impl FnMut(&Asked) -> Reply + Send + 'static,
    ) -> Self {
        Self::with_keys(case, place, is_logged_in, "", more, reply)
    }

    /// With more keys at the top of the user's definition, and more lines at its end.
    pub fn with_keys(
        case: &'static Case,
        place: &Place,
        is_logged_in: bool,
        keys: &str,
        more: &str,
        reply: impl FnMut(&Asked) -> Reply + Send + 'static,
    ) -> Self {
        let home = place.user.map_or_else(Home::new, Home::of_user);
        let model = ModelServer::with(Box::new(reply)).unwrap();
        let programs = &place.programs;
        case.configure(home.folder(), programs, &model.url(), is_logged_in, keys, more);
        let work = home.folder().join("work");
        std::fs::create_dir_all(&work).unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let roots = work.display().to_string();
        home.give_away();
        let mut settings = vec![
            ("PATH", path.as_str()),
            ("MATSU_AGENTS_ROOTS", &roots),
            ("MATSU_AGENTS_MODE_MAX", "full"),
            ("MATSU_AGENTS_CONFINE", place.level),
        ];
        settings.extend(place.environment.iter().map(|(name, value)| (*name, value.as_str())));
        if !is_logged_in {
            settings.push((case.key, KEY));
        }
        let daemon = home.serve_with(&settings);
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { case, level: place.level, model, daemon, home, settings }
    }

    /// Another daemon in the same home, after the first one was killed.
    pub fn serve_again(&mut self, more: &[(&str, &str)]) {
        let settings = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let settings: Vec<(&str, &str)> = settings.chain(more.iter().copied()).collect();
        self.daemon = self.home.serve_with(&settings);
    }

    /// Starts a run; its task.
    pub fn start(&self, more: Value) -> String {
        let begun = self.begin(more);
        begun["task_id"].as_str().unwrap_or_else(|| panic!("{}: {begun}", self.case.name)).to_owned()
    }

    /// Starts a run, which must be confined as this place asks; the whole reply.
    pub fn begin(&self, more: Value) -> Value {
        let mut arguments = json!({ "cli_name": self.case.name, "run_async": true, "timeout": 300 });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let said = self.daemon.http().call("use_agent", &arguments);
        let begun = said["result"]["structuredContent"].clone();
        assert_eq!(begun["confinement"], self.level, "{}: {said}", self.case.name);
        begun
    }

    /// How a run ended.
    pub fn ended(&self, task: &str) -> Value {
        until("the run has ended", RUN_MAX, || {
            let said = self
                .daemon
                .http()
                .call("get_task_status", &json!({ "task_id": task, "timeout": 30, "wait_for": "all" }));
            let said = said["result"]["structuredContent"].clone();
            let status = said["status"].as_str().unwrap_or_default();
            assert_ne!(status, "input_required", "{}: it asks: {said:#}", self.case.name);
            ["completed", "failed", "cancelled"].contains(&status).then_some(said)
        })
    }

    /// Whatever was started in this home and is not the daemon itself: a program, its tools and servers, the shim.
    fn processes(&self) -> Vec<String> {
        let home = format!("HOME={}", self.home.folder().display());
        let daemon = self.home.relayed().0.to_string();
        let others = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| *entry.file_name() != *daemon);
        let ours = others.filter(|entry| {
            let environment = std::fs::read_to_string(entry.path().join("environ")).unwrap_or_default();
            environment.split('\0').any(|line| line == home)
        });
        ours.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok()).collect()
    }

    #[track_caller]
    pub fn completes(&self, task: &str, text: &str) {
        let ended = self.ended(task);
        assert_eq!(ended["status"], "completed", "{}: {ended:#}", self.case.name);
        assert!(ended["result"].as_str().unwrap_or_default().contains(text), "{}: {ended:#}", self.case.name);
    }
}

/// Runs a check for every agent and prints for each how it went; the first failure is the test's own.
pub fn for_each(what: &str, check: impl Fn(&'static Case, &Place)) {
    for_each_of(what, |_| true, check);
}

/// As [`for_each`], for those that can do it at all.
pub fn for_each_of(what: &str, can: impl Fn(&Case) -> bool, check: impl Fn(&'static Case, &Place)) {
    let places = places(what);
    if places.is_empty() {
        return;
    }
    let wanted = std::env::var("MATSU_TEST_AGENT").ok();
    let mut failed = Vec::new();
    let is_wanted = |case: &&Case| can(case) && wanted.as_ref().is_none_or(|wanted| wanted == case.name);
    for case in CASES.iter().filter(is_wanted) {
        let before = failed.len();
        for place in &places {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(case, place)));
            println!("place: {}: {what}: {}: {}", place.show(), case.name, if outcome.is_ok() { "yes" } else { "no" });
            if outcome.is_err() {
                failed.push(format!("{} {}", case.name, place.show()));
            }
        }
        println!("result: {what} | {} | {}", case.name, if failed.len() == before { "yes" } else { "**no**" });
    }
    assert!(failed.is_empty(), "{what}: {failed:?}");
}

#[test]
fn a_prompt_goes_in_and_the_text_comes_out_and_the_conversation_goes_on() {
    for_each("prompt in, text out, session resumed twice", |case, place| {
        let bed = Bed::new(case, place, false, |asked| {
            let knows = |words: &str| asked.messages.iter().any(|text| text.contains(words));
            match (knows("third-question"), knows("second-question")) {
                (true, _) => Reply::text("the third answer"),
                (false, true) => Reply::text("the second answer"),
                (false, false) => Reply::text("the first answer"),
            }
        });
        bed.completes(&bed.start(json!({ "message": "the first-question", "session_id": "talk" })), "the first answer");
        // What a resumed run adds to its conversation is kept as well, so the third run knows both.
        for (question, answer) in [("second", "the second answer"), ("third", "the third answer")] {
            let again = json!({ "message": format!("the {question}-question"), "session_id": "talk", "resume": true });
            bed.completes(&bed.start(again), answer);
        }
        let all = bed.model.wait_for(Duration::ZERO, |request| {
            let knows = |words: &str| {
                request.asked.as_ref().is_some_and(|asked| asked.messages.iter().any(|text| text.contains(words)))
            };
            knows("first-question") && knows("second-question") && knows("third-question")
        });
        assert!(all.is_some(), "{}: the third run does not know the others", case.name);
        assert!(bed.model.asked().iter().all(|request| carries(request, KEY)), "{}: another key", case.name);
    });
}

#[test]
fn a_run_that_is_cancelled_leaves_no_process() {
    for_each("cancelled during a run, no process left", |case, place| {
        // A `sleep` of another program on this machine never has this length.
        let nap = format!("{}.{}", 70_000 + std::process::id() % 10_000, case.name.len());
        let command = format!("setsid sleep {nap} & sleep {nap}");
        let tools = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&tools);
        let bed = Bed::with(case, place, false, case.unbound, move |asked| {
            seen.lock().unwrap().clone_from(&asked.tools);
            match (case.shell)(&command, &asked.tools) {
                Some((name, arguments)) if asked.results.is_empty() => Reply::tool(&name, arguments),
                _ => Reply::text("no shell"),
            }
        });
        let task = bed.start(json!({ "message": "sleep", "mode": "workspace-write" }));
        until("the shell runs", RUN_MAX, || {
            let naps = naps(&nap);
            assert_ne!(bed.daemon.http().status_of(&task), "completed", "{}: {:?}", case.name, tools.lock().unwrap());
            (naps.len() >= 2).then_some(())
        });
        let said = bed.daemon.http().call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
        assert_eq!(said["result"]["structuredContent"]["status"], "cancelled", "{said}");
        until("every process is gone", GONE_MAX, || naps(&nap).is_empty().then_some(()));
        let left = bed.processes();
        assert_eq!(left, Vec::<String>::new(), "{}: only the daemon itself is left", case.name);
        println!("{}: {}", case.name, said["result"]["structuredContent"]);
    });
}

/// Processes that sleep so long.
fn naps(length: &str) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = lines.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with("sleep\0") && line.contains(length)).collect()
}

#[test]
fn a_tool_of_ours_is_called_from_inside_a_run() {
    for_each("a tool call back into Matsu", |case, place| {
        let received = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&received);
        let bed = Bed::new(case, place, false, move |asked| {
            if asked.results.is_empty() {
                return Reply::tool(&(case.ours)("get_next_action"), json!({}));
            }
            hears.lock().unwrap().extend(asked.results.clone());
            Reply::text("called back")
        });
        let task = bed.start(json!({ "message": "call back" }));
        bed.completes(&task, "called back");
        // It received what only the run's own session receives.
        let received = received.lock().unwrap();
        assert!(received.iter().any(|result| result.contains(&task)), "{}: {received:?}", case.name);
    });
}

#[test]
fn a_login_is_used_where_it_lies() {
    for_each("the user's login is used and not copied", |case, place| {
        let bed = Bed::new(case, place, true, |_| Reply::text("logged in"));
        bed.completes(&bed.start(json!({ "message": "who am I" })), "logged in");
        assert!(
            bed.model.asked().iter().any(|request| carries(request, SECRET)),
            "{}: the login was not used",
            case.name
        );
        let copies = files_with(&bed.home.data_dir(), SECRET);
        assert_eq!(copies, Vec::<String>::new(), "{}: the login was copied", case.name);
    });
}

pub fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_with(&path, text));
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}
