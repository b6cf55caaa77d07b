//! Runs from a shell: `matsu run`, `status`, `logs`, `result`, `answer`, `tasks` and `watch` show what came out, in a
//! terminal and in a pipe.

mod full_screen;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Bench, SOON};
use crate::agents::terminal::Terminal;
use crate::home::{kill, until};

const WORKS: &str = r#"echo '{"type":"text","text":"looking around"}'
echo '{"type":"result","text":"all is well"}'"#;

const ASKS: &str = r#"echo '{"type":"question","id":"q1","text":"Go on?","options":["yes","no"]}'
read answer
case "$answer" in *'"option":"yes"'*) echo '{"type":"result","text":"went on"}';; *) echo "{\"type\":\"result\",\"error\":\"stopped\"}";; esac
"#;

/// What a command printed and how it ended.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

fn ran(output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

impl Bench {
    pub(super) fn shell(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    pub(super) fn run(&self, args: &[&str]) -> Ran {
        ran(self.shell(args).output().unwrap())
    }

    /// The same command at a terminal.
    fn terminal(&self, args: &[&str]) -> Terminal {
        let command = self.home.command(args);
        let text = |part: &std::ffi::OsStr| part.to_str().unwrap().to_owned();
        let quoted = |part: &std::ffi::OsStr| format!("'{}'", text(part).replace('\'', "'\\''"));
        let words = std::iter::once(command.get_program()).chain(command.get_args()).map(quoted);
        let environment: BTreeMap<String, String> =
            command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect();
        Terminal::start(&words.collect::<Vec<_>>().join(" "), &self.root, &environment)
    }

    /// Starts a run in the background and returns its task.
    fn detached(&self, agent: &str, script: &str) -> String {
        let ran = self.run(&["run", agent, script, "--detach"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out.trim().to_owned()
    }
}

#[test]
fn a_run_without_a_daemon_starts_one_and_ends_with_its_result() {
    let bench = Bench::new();
    let ran = bench.run(&["run", "events", WORKS]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "all is well\n"), "{ran:?}");
    assert!(ran.err.contains("looking around") && ran.err.contains("Ctrl-C ends only this display"), "{ran:?}");
    let task = ran.err.split_whitespace().next().unwrap();
    let shown = bench.run(&["result", task]);
    assert_eq!((shown.code, shown.out.as_str()), (0, "all is well\n"), "{shown:?}");
    let status = bench.run(&["status", task]);
    assert!(status.out.contains("status    completed") && status.out.ends_with("all is well\n"), "{status:?}");
    let logs = bench.run(&["logs", task]);
    assert_eq!(logs.out, "looking around\nall is well\n", "{logs:?}");
    // What a program prints is its result where it keeps no log, and is shown once.
    let plain = bench.run(&["run", "script", "echo one; echo two"]);
    assert_eq!((plain.code, plain.out.as_str()), (0, "one\ntwo\n"), "{plain:?}");
}

#[test]
fn a_failed_run_ends_with_its_error_and_what_to_do() {
    let bench = Bench::new();
    let ran = bench.run(&["run", "script", "echo because >&2; exit 7"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    for words in ["failed: script exited with code 7 (AGENT_EXIT)", "because", "Next: Read `exit_code`"] {
        assert!(ran.err.contains(words), "{words}: {ran:?}");
    }
    let task = ran.err.split_whitespace().next().unwrap();
    let status = bench.run(&["status", task, "--json"]);
    let status: Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!((&status["error_code"], &status["exit_code"]), (&json!("AGENT_EXIT"), &json!(7)), "{status}");
    assert!(bench.run(&["logs", task]).err.contains("AGENT_EXIT"));
}

#[test]
fn in_a_pipe_a_question_ends_the_command_and_another_command_answers_it() {
    let bench = Bench::new();
    let ran = bench.run(&["run", "events", ASKS]);
    assert_eq!(ran.code, 6, "{ran:?}");
    let task = ran.err.split_whitespace().next().unwrap();
    let how = format!("Answer with: matsu answer {task} yes");
    assert!(ran.err.contains("events asks: Go on?\n  1) yes\n  2) no") && ran.err.contains(&how), "{ran:?}");
    for command in ["status", "logs", "result"] {
        assert!(bench.run(&[command, task]).err.contains(&how), "{command}");
    }
    let waited = bench.run(&["status", task, "--wait"]);
    assert_eq!(waited.code, 6, "{waited:?}");
    let unclear = bench.run(&["answer", task]);
    assert!(unclear.code == 1 && unclear.err.contains("stdin is not a terminal"), "{unclear:?}");
    let wrong = bench.run(&["answer", task, "perhaps"]);
    assert!(wrong.code == 1 && wrong.err.contains("not one of the options: yes, no"), "{wrong:?}");
    let answered = bench.run(&["answer", task, "1"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let end = bench.run(&["status", task, "--wait"]);
    assert!(end.code == 0 && end.out.ends_with("went on\n"), "{end:?}");
    let late = bench.run(&["answer", task, "yes"]);
    assert!(late.code == 1 && late.err.contains("asks no question"), "{late:?}");
}

#[test]
fn at_a_terminal_a_question_is_asked_there() {
    let bench = Bench::new();
    let mut terminal = bench.terminal(&["run", "events", ASKS]);
    terminal.wait_for("2) no", SOON);
    terminal.wait_for("Answer (number or option): ", SOON);
    terminal.say("never");
    terminal.wait_for("not one of the options", SOON);
    terminal.say("1");
    terminal.wait_for("went on", SOON);
    assert_eq!(terminal.code(SOON), Some(0));
}

#[test]
fn a_question_that_is_answered_elsewhere_is_asked_no_longer() {
    let bench = Bench::new();
    let mut terminal = bench.terminal(&["run", "events", ASKS]);
    terminal.wait_for("Answer (number or option): ", SOON);
    let shown = terminal.shown();
    let task = shown.split_whitespace().find(|word| word.contains("task_")).unwrap();
    let task = &task[task.find("task_").unwrap()..];
    assert_eq!(bench.run(&["answer", task, "yes"]).code, 0);
    terminal.wait_for("The question is closed", SOON);
    terminal.wait_for("went on", SOON);
    assert_eq!(terminal.code(SOON), Some(0));
}

#[test]
fn the_time_of_a_run_ends_the_wait_although_it_asks() {
    let bench = Bench::new();
    let began = Instant::now();
    let mut terminal = bench.terminal(&["run", "events", ASKS, "--timeout", "1"]);
    terminal.wait_for("Answer (number or option): ", SOON);
    terminal.wait_for("Time is up; task_", SOON);
    assert_eq!(terminal.code(SOON), Some(5));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn who_leaves_is_shown_how_to_come_back_and_the_work_goes_on() {
    let bench = Bench::new();
    let may_end = bench.home.signal("may_end");
    let script = format!("echo begun; until [ -e {} ]; do sleep 0.05; done; echo ended", may_end.display());
    let mut terminal = bench.terminal(&["run", "script", &script]);
    terminal.wait_for("begun", SOON);
    terminal.press(3);
    terminal.wait_for("continues. Follow it again: matsu status task_", SOON);
    assert_eq!(terminal.code(SOON), Some(5));
    let shown = terminal.shown();
    let at = shown.find("matsu status ").unwrap() + "matsu status ".len();
    let task = shown[at..].split_whitespace().next().unwrap().to_owned();
    std::fs::write(may_end, "").unwrap();
    let end = bench.run(&["status", &task, "--wait"]);
    assert!(end.code == 0 && end.out.ends_with("begun\nended\n"), "{end:?}");
}

#[test]
fn who_follows_a_run_follows_it_under_the_next_daemon() {
    let bench = Bench::new();
    let may_end = bench.home.signal("may_end");
    let script = format!("echo begun; until [ -e {} ]; do sleep 0.05; done; echo ended", may_end.display());
    let mut command = bench.shell(&["run", "script", &script]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(out.next().unwrap().unwrap(), "begun");
    kill(bench.home.relayed().0);
    std::fs::write(may_end, "").unwrap();
    // Another command starts the next daemon; without one the run does so itself, after a while.
    let listed = bench.run(&["run", "script", "true"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert_eq!(out.next().unwrap().unwrap(), "ended");
    let end = ran(child.wait_with_output().unwrap());
    assert_eq!(end.code, 0, "{end:?}");
}

#[test]
fn who_follows_a_run_is_shown_how_to_come_back_when_a_person_ends_the_daemon() {
    let bench = Bench::new();
    let may_end = bench.home.signal("may_end");
    let script = format!("echo begun; until [ -e {} ]; do sleep 0.05; done; echo ended", may_end.display());
    let mut terminal = bench.terminal(&["run", "script", &script]);
    terminal.wait_for("begun", SOON);
    assert_eq!(bench.run(&["shutdown"]).code, 0);
    terminal.wait_for("is kept. Follow it again: matsu status task_", SOON);
    assert_eq!(terminal.code(SOON), Some(5));
    std::fs::write(may_end, "").unwrap();
}

#[test]
fn what_an_agent_prints_cannot_act_on_the_terminal() {
    let bench = Bench::new();
    let script = r"printf 'safe\033]52;c;aGVsbG8=\007\033[2Jtext\n'";
    let ran = bench.run(&["run", "script", script]);
    assert_eq!(ran.out, "safetext\n", "{ran:?}");
    let task = ran.err.split_whitespace().next().unwrap();
    for command in ["logs", "result", "status"] {
        let shown = bench.run(&[command, task]);
        assert!(shown.out.contains("safetext") && !shown.out.contains('\u{1b}'), "{shown:?}");
    }
}

#[test]
fn a_long_result_is_printed_whole_and_json_is_one_object_or_lines() {
    let bench = Bench::new();
    let task = bench.detached("script", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done");
    assert_eq!(bench.run(&["status", &task, "--wait", "--json"]).code, 0);
    let result = bench.run(&["result", &task]);
    assert_eq!((result.out.lines().count(), result.out.lines().last()), (20_000, Some("line 19999")));
    let lines = bench.run(&["run", "events", WORKS, "--json"]);
    let events: Vec<Value> = lines.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names[0], names[1], names.last().copied()), ("started", "log", Some("end")), "{events:?}");
    assert_eq!(events.last().unwrap()["task"]["result"], "all is well");
}

#[test]
fn the_list_of_tasks_fits_the_terminal() {
    let bench = Bench::new();
    let task = bench.detached("events", &format!("# {}\n{ASKS}", "a long title ".repeat(30)));
    assert_eq!(bench.run(&["status", &task, "--wait"]).code, 6);
    let mut terminal = bench.terminal(&["tasks"]);
    assert_eq!(terminal.code(SOON), Some(0));
    let shown = terminal.shown();
    let line = shown.lines().find(|line| line.contains(&task)).unwrap();
    assert!(line.contains("your answer") && line.contains(" s  events") && line.contains('…'), "{shown}");
    // The terminal has 140 columns; the rest are colours.
    assert!(line.chars().count() < 160, "{line}");
    let piped = bench.run(&["tasks"]);
    assert!(piped.out.contains("CREATED") && !piped.out.contains('\u{1b}'), "{piped:?}");
    let wrong = bench.run(&["tasks", "--status", "bogus"]);
    assert!(wrong.code == 2 && wrong.err.contains("input_required"), "{wrong:?}");
}

/// Lines of a program as they come.
pub(super) fn lines_of(child: &mut Child) -> Receiver<String> {
    let (lines, read) = channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    // Ends with the child's output.
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    read
}

pub(super) struct Watching(pub(super) Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_empty_id_of_a_task_is_refused_with_where_ids_are_listed() {
    let bench = Bench::new();
    for command in ["result", "status", "logs", "answer", "stop", "retry", "apply", "diff", "merge"] {
        let ran = bench.run(&[command, ""]);
        assert!(ran.code == 2 && ran.err.contains("the id of the task is empty"), "{command}: {ran:?}");
        assert!(ran.err.contains("`matsu tasks` lists them"), "{command}: {ran:?}");
    }
}

#[test]
fn a_watch_prints_one_line_per_piece_of_news_and_outlives_the_daemon() {
    let bench = Bench::new();
    let mut watching = Watching(bench.shell(&["watch", "--lines"]).stdout(Stdio::piped()).spawn().unwrap());
    let lines = lines_of(&mut watching.0);
    let next = || lines.recv_timeout(SOON).unwrap();
    let first = bench.detached("script", "echo done");
    assert_eq!(
        next(),
        format!("{first} completed: script: echo done. Read it with get_task_status or: matsu result {first}")
    );
    let asks = bench.detached("events", ASKS);
    let line = next();
    assert!(line.starts_with(&format!("{asks} asks (events): Go on? [yes, no]. Answer with: matsu answer")), "{line}");
    let (pid, _) = bench.home.relayed();
    kill(pid);
    // Who waits for a task reads it, and it is no news.
    let read = bench.run(&["run", "script", "echo read at once"]);
    assert_eq!(read.code, 0, "{read:?}");
    let last = bench.detached("script", "exit 3");
    assert!(next().starts_with(&format!("{last} failed: script: exit 3")));
    assert!(lines.recv_timeout(Duration::from_millis(100)).is_err(), "everything is printed once");
    until("the list has them", SOON, || bench.run(&["tasks"]).out.contains(&last).then_some(()));
}

#[test]
fn a_log_that_is_followed_ends_with_the_exit_code_of_what_happened() {
    let bench = Bench::new();
    let task = bench.detached("events", ASKS);
    let asked = bench.run(&["logs", "-f", &task]);
    assert!(asked.code == 6 && asked.err.contains("Go on?"), "{asked:?}");
    let task = bench.detached("script", "echo line 1; sleep 60");
    let following = bench.shell(&["logs", "-f", &task]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it runs", SOON, || bench.run(&["logs", &task]).out.contains("line 1").then_some(()));
    bench.run(&["shutdown"]);
    let left = ran(following.wait_with_output().unwrap());
    assert!(left.code == 5 && left.err.contains(&format!("matsu status {task} --wait")), "{left:?}");
    // Without a daemon nothing says more than is known.
    for command in ["result", "logs"] {
        assert!(bench.run(&[command, &task]).err.contains("No daemon runs"), "{command}");
    }
    let status: Value = serde_json::from_str(&bench.run(&["status", &task, "--json"]).out).unwrap();
    let tasks: Value = serde_json::from_str(&bench.run(&["tasks", "--json"]).out).unwrap();
    assert_eq!((&status["daemon"], &tasks["daemon"]), (&json!(false), &json!(false)), "{status}");
    bench.run(&["stop", "--now", &task]);
}

#[test]
fn a_tool_call_and_a_stop_that_wait_outlive_their_daemon() {
    let bench = Bench::new();
    let go_on = bench.home.signal("go_on");
    let script =
        format!("trap '' TERM; echo line 1; while [ ! -e {} ]; do sleep 0.05; done; echo done", go_on.display());
    let (waited, stopped) = (bench.detached("script", &script), bench.detached("script", &script));
    let wait = json!({ "task_id": waited, "timeout": 40, "wait_for": "all", "since": 99 }).to_string();
    let piped = |words: &[&str]| bench.shell(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (call, stop) = (piped(&["call", "get_task_status", &wait]), piped(&["stop", &stopped]));
    until("both run", SOON, || (super::survival::supervisors(&bench) == 2).then_some(()));
    std::thread::sleep(Duration::from_secs(1));
    kill(bench.home.relayed().0);
    std::thread::sleep(Duration::from_secs(1));
    std::fs::write(&go_on, "").unwrap();
    let (call, stop) = (ran(call.wait_with_output().unwrap()), ran(stop.wait_with_output().unwrap()));
    let report: Value = serde_json::from_str(&call.out).unwrap_or_else(|_| panic!("{call:?}"));
    assert_eq!((call.code, report["status"].as_str()), (0, Some("completed")), "{call:?}");
    assert_eq!(stop.code, 0, "{stop:?}");
}

#[test]
fn an_agent_whose_definition_cannot_be_read_is_refused_with_the_reason() {
    let bench = Bench::new();
    std::fs::write(bench.home.path(".config/matsu/agents/odd.toml"), "name = 5\n").unwrap();
    let ran = bench.run(&["run", "odd", "x"]);
    assert!(ran.code != 0 && ran.err.contains("cannot be read") && ran.err.contains("odd.toml"), "{ran:?}");
}
