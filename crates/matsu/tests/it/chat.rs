//! `matsu chat` as its users meet it: a real process, lines on its stdin, scripted models or model servers on loopback.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use matsu_testkit::model_server::{ModelServer, Reply, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::api::until;
use crate::home::{Home, run};

const MOMENT: Duration = Duration::from_secs(30);
const KEY: &str = "sk-canary-31415926";

/// A home with models that read from a script.
fn scripted(replies: &Value) -> Home {
    let home = Home::sqlite();
    std::fs::write(home.path("script.json"), json!({ "replies": replies }).to_string()).unwrap();
    let config = "[providers.echo]\nwire = \"scripted\"\nscript = \"script.json\"\n\
                  [providers.other]\nwire = \"scripted\"\nscript = \"script.json\"\n";
    std::fs::write(home.path("config.toml"), config).unwrap();
    home
}

fn command(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(args);
    command.arg("--config").arg(home.path("config.toml"));
    command
}

/// A chat under way.
struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    log: PathBuf,
}

impl Talk {
    fn start(home: &Home, args: &[&str]) -> Self {
        let log = home.path(&format!("chat.{}.log", args.len() + usize::from(home.path("chat.1.log").exists()) * 10));
        let file = std::fs::File::create(&log).unwrap();
        let mut command = command(home, &[&["chat"], args].concat());
        command.stdin(Stdio::piped()).stdout(file.try_clone().unwrap()).stderr(file);
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        Self { child, stdin, log }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    #[track_caller]
    fn hears(&self, words: &str) {
        until(words, MOMENT, || self.printed().contains(words).then_some(()));
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Leaves; everything that was printed.
    #[track_caller]
    fn leave(mut self) -> String {
        drop(self.stdin.take());
        let status = until("the chat ends", MOMENT, || self.child.try_wait().unwrap());
        assert!(status.success(), "{}", self.printed());
        self.printed()
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn once(home: &Home, args: &[&str], question: &str) -> (i32, String, String) {
    let mut command = command(home, &[&["chat", "--once"], args].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(question.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn the_documented_commands_start() {
    let home = scripted(&json!([{ "text": ["You said: {message}"] }]));
    let mut talk = Talk::start(&home, &[]);
    for line in
        ["a note", "@echo hello", "@unknown hello", "/model echo", "without a name", "/cost", "/help", "/nonsense"]
    {
        talk.say(line);
    }
    talk.say("/exit");
    let said = talk.leave();
    for words in [
        "[echo]: You said: @echo hello",
        "there is no model @unknown here",
        "[echo]: You said: without a name",
        "tokens in",
        "/history save NAME",
        "there is no /nonsense",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (code, out, _) = once(&home, &["--model", "echo"], "from a pipe");
    assert_eq!((code, out.as_str()), (0, "You said: from a pipe\n"));
    let (code, out, _) = once(&home, &["--model", "echo", "--json"], "as json");
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(
        (code, last["text"].as_str(), last["stop_reason"].as_str()),
        (0, Some("You said: as json"), Some("end_turn"))
    );
}

/// A picture of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn an_image_goes_along_with_one_question_or_with_the_next_line() {
    let server = ModelServer::with(Box::new(|_| Reply::text("I see it."))).unwrap();
    let home = Home::sqlite();
    let provider =
        format!("wire = \"openai_chat\"\nmodel = \"m-1\"\nbase_url = \"{}/v1\"\nimages = true", server.url());
    std::fs::write(home.path("config.toml"), format!("[providers.m]\n{provider}\n")).unwrap();
    let file = home.path("pixel.png");
    std::fs::write(&file, STANDARD.decode(PNG).unwrap()).unwrap();
    let file = file.to_str().unwrap();
    let has_image = || server.requests().last().unwrap().body.to_string().contains(PNG);

    let (code, out, err) = once(&home, &["--model", "m", "--image", file], "what is this?");
    assert_eq!((code, out.as_str()), (0, "I see it.\n"), "{err}");
    assert!(has_image());
    let (code, _, err) = once(&home, &["--model", "m", "--image", home.path("config.toml").to_str().unwrap()], "this?");
    assert!(code == 1 && err.contains("config.toml cannot be sent"), "{err}");

    let mut talk = Talk::start(&home, &["--model", "m"]);
    talk.say(&format!("/attach {file}"));
    talk.say("and this?");
    talk.hears("I see it.");
    assert!(has_image());
    talk.say("/exit");
    talk.leave();
}

/// What docs/chat.md shows: the lines of its block, and the commands that it names.
#[test]
fn the_page_about_chats_shows_lines_and_commands_that_work() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/chat.md")).unwrap();
    let home = scripted(&json!([{ "text": ["You said: {message}"] }]));
    let models =
        ["claude", "gemini"].map(|name| format!("[providers.{name}]\nwire = \"scripted\"\nscript = \"script.json\"\n"));
    std::fs::write(home.path("config.toml"), models.concat()).unwrap();
    let mut talk = Talk::start(&home, &[]);
    let lines: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    for line in &lines {
        talk.say(line);
    }
    talk.say("/help");
    talk.say("/exit");
    let said = talk.leave();
    let answers: usize =
        lines.iter().map(|line| if line.contains("@all") { 2 } else { usize::from(line.starts_with('@')) }).sum();
    assert!(answers >= 3 && said.matches("]: You said: ").count() == answers, "{said}");
    let named = page.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix('/')?.split(' ').next());
    // The help does not name itself.
    for command in named.filter(|command| *command != "help") {
        assert!(said.contains(&format!("/{command}")), "/help does not name /{command}: {said}");
    }
}

#[test]
fn without_a_model_it_says_what_to_do() {
    let home = Home::sqlite();
    let ran = run(home.command(&["chat"]));
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("OPENAI_API_KEY") && ran.err.contains("[providers.NAME]"), "{}", ran.err);
}

#[test]
fn chats_are_named_loaded_and_exported() {
    let home = scripted(&json!([{ "text": ["fine"] }]));
    let file = home.path("plans.json");
    let mut talk = Talk::start(&home, &[]);
    for line in [
        "/system Be brief.",
        "@echo one",
        "/history save plans",
        "/history new",
        "@echo two",
        "/history save plans",
        "n",
    ] {
        talk.say(line);
    }
    talk.hears("not saved");
    talk.say("/history load nothing");
    talk.say("/history load plans");
    talk.say(&format!("/export json {}", file.display()));
    talk.hears("written to");
    talk.say("/system");
    let said = talk.leave();
    assert!(said.contains("there is no chat \"nothing\"") && said.contains("Be brief."), "{said}");
    let exported: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!((exported["name"].as_str(), exported["system_prompt"].as_str()), (Some("plans"), Some("Be brief.")));
    assert_eq!(exported["entries"].as_array().unwrap().len(), 2);
}

fn exported(home: &Home, chat: &str) -> Value {
    let file = home.path("export.json");
    let mut talk = Talk::start(home, &["--chat", chat]);
    talk.say(&format!("/export json {}", file.display()));
    talk.leave();
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn ctrl_c_stops_the_answer_and_keeps_what_came() {
    let pieces: Vec<String> = (0..200).map(|n| format!("{n}. ")).collect();
    let home = scripted(&json!([{ "text": pieces, "pause_ms": 100 }]));
    let mut talk = Talk::start(&home, &[]);
    talk.say("@echo count");
    talk.hears("5. ");
    talk.signal(Signal::INT);
    talk.hears("stopped");
    talk.say("/history save counted");
    talk.hears("saved as counted");
    let said = talk.leave();
    let spoken = exported(&home, "counted")["entries"][1]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(spoken.starts_with("0. 1. 2. 3. 4. 5. ") && !spoken.contains("199."), "{spoken}");
    assert!(said.contains(spoken.trim()), "what was shown is what is kept");
}

#[test]
fn a_killed_chat_is_offered_back_with_what_had_arrived() {
    let pieces: Vec<String> = (0..200).map(|n| format!("{n}. ")).collect();
    let home = scripted(&json!([{ "text": pieces, "pause_ms": 100 }]));
    let mut talk = Talk::start(&home, &[]);
    talk.say("@echo count");
    talk.hears("45. ");
    talk.signal(Signal::KILL);
    drop(talk);
    let mut after = Talk::start(&home, &["--model", "other"]);
    after.say("/exit");
    let said = after.leave();
    let id = said
        .split("--chat ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap_or_else(|| panic!("{said}"));
    let entries = exported(&home, id)["entries"].clone();
    let spoken = entries[1]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(spoken.contains("20. "), "at most two seconds are lost: {spoken}");
}

#[test]
fn several_vendors_in_one_chat_and_no_key_anywhere_it_could_be_seen() {
    let server = ModelServer::strict(Script::new().always(Reply::text("from the server"))).unwrap();
    let refusing = ModelServer::start(Script::new().always(Reply::error(401, &format!("{KEY} is unknown")))).unwrap();
    let home = Home::sqlite().with_variable("MY_KEY", KEY);
    let provider = |name: &str, wire: &str, server: &ModelServer, path: &str| {
        format!(
            "[providers.{name}]\nwire = \"{wire}\"\nmodel = \"gemini-3-m\"\nbase_url = \"{}{path}\"\nkey_env = \"MY_KEY\"\n",
            server.url()
        )
    };
    let config = [
        provider("gemini", "gemini", &server, ""),
        provider("claude", "anthropic", &server, ""),
        provider("chatgpt", "openai", &server, "/v1"),
        provider("chat", "openai_chat", &server, "/v1"),
        provider("local", "ollama", &server, ""),
        provider("broken", "openai", &refusing, "/v1"),
    ];
    std::fs::write(home.path("config.toml"), config.concat()).unwrap();
    let mut talk = Talk::start(&home, &["-v", "-v"]);
    talk.say("@all hello");
    talk.say("@all and again");
    talk.say("/exit");
    let said = talk.leave();
    assert_eq!(said.matches("from the server").count(), 10, "{said}");
    assert_eq!(said.matches("PROVIDER_AUTH").count(), 2, "{said}");
    let asked = server.asked();
    assert_eq!(asked.len(), 10);
    assert!(asked.iter().all(|request| !request.path.contains("canary")));
    assert!(asked.iter().all(|request| request.headers.values().any(|value| value.contains(KEY))));
    assert!(!said.contains("canary"), "{said}");
    let store = std::fs::read(home.data("matsu.db")).unwrap();
    assert!(!store.windows(KEY.len()).any(|window| window == KEY.as_bytes()));
}
