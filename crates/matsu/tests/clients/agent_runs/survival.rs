//! Runs that outlive their daemon: killed, shut down, replaced. The program is started once, every byte is stored
//! once, and the result reaches the client that waits.

use std::path::Path;

use serde_json::{Value, json};

use super::{Bench, SOON, end_of, processes, reaches, start, start_with, unique_sleep};
use crate::home::{kill, supervisors_in, until};
use crate::stdio::Client;

/// A program that prints numbered lines until a file says go on, and then some more.
pub fn counting(go_on: &Path, lines: u32) -> String {
    counting_every("0.01", go_on, lines)
}

/// As [`counting`], with a pause of this many seconds between two lines.
pub fn counting_every(pause: &str, go_on: &Path, lines: u32) -> String {
    let go_on = go_on.display();
    format!(
        "echo started
         n=0
         while [ ! -e {go_on} ]; do n=$((n+1)); echo line $n; sleep {pause}; done
         echo after $n
         seq 1 {lines}
         echo the end"
    )
}

/// A program that asks, and goes on when the answer is yes.
pub const ASKS: &str = r#"echo '{"type":"text","text":"before"}'
echo '{"type":"question","id":"q1","text":"Go on?","options":["yes","no"]}'
read answer
case "$answer" in *'"option":"yes"'*) echo '{"type":"text","text":" after"}'; echo '{"type":"result"}';; esac
"#;

/// What such a program must have said.
#[track_caller]
pub fn assert_whole(said: &str, lines: u32) {
    let mut rest = said.lines();
    assert_eq!(rest.next(), Some("started"), "it was started once");
    let mut n = 0;
    let after = loop {
        let line = rest.next().unwrap_or_else(|| panic!("it ends early, after line {n}: {said}"));
        if let Some(after) = line.strip_prefix("after ") {
            break after;
        }
        n += 1;
        assert_eq!(line, format!("line {n}"), "each line once, in order");
    };
    assert_eq!(after, n.to_string());
    for n in 1..=lines {
        assert_eq!(rest.next(), Some(n.to_string().as_str()));
    }
    assert_eq!((rest.next(), rest.next()), (Some("the end"), None));
}

/// The whole result, however long it is. A part that is not the last one ends with a note about the rest.
pub fn whole_result(client: &mut Client, task: &str) -> String {
    let mut text = String::new();
    loop {
        let said = client.call("get_task_status", &json!({ "task_id": task, "output_offset": text.len() }));
        let part = said["result"].as_str().unwrap_or_else(|| panic!("{said}"));
        let Some(next) = said["next_output_offset"].as_u64() else { return text + part };
        let bytes = usize::try_from(next).unwrap() - text.len();
        text.push_str(&part[..bytes]);
    }
}

pub fn said_something(client: &mut Client, task: &str) {
    until("it has said something that is stored", SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task, "tail": 3 }));
        said["tail"].as_str().filter(|tail| tail.contains("line ")).map(drop)
    });
}

fn a_run_goes_on_without_its_daemon(end_daemon: impl Fn(u32)) {
    let bench = Bench::new();
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let task = start(&mut client, &counting(&go_on, 30_000));
    for _ in 0..3 {
        said_something(&mut client, &task);
        let (daemon, _) = bench.home.relayed();
        end_daemon(daemon);
        client = bench.client();
        let said = client.call("get_task_status", &json!({ "task_id": task }));
        assert_eq!(said["status"], "running", "{said}");
        until("another daemon serves", SOON, || (bench.home.relayed().0 != daemon).then_some(()));
    }
    std::fs::write(&go_on, "").unwrap();
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    assert_whole(&whole_result(&mut client, &task), 30_000);
}

#[test]
fn a_run_goes_on_when_its_daemon_is_killed() {
    a_run_goes_on_without_its_daemon(kill);
}

#[test]
fn a_run_goes_on_when_its_daemon_gets_sigterm() {
    a_run_goes_on_without_its_daemon(end_politely);
}

pub fn end_politely(daemon: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(daemon).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    until("it has ended", SOON, || (!Path::new(&format!("/proc/{daemon}/exe")).exists()).then_some(()));
}

#[test]
fn calls_that_wait_get_their_result_although_the_daemon_is_killed() {
    let bench = Bench::new();
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let task = start(&mut client, &counting(&go_on, 10));
    said_something(&mut client, &task);
    // One call waits for a task, another has started its own and waits for the result.
    let wait = json!({ "task_id": task, "timeout": 40, "wait_for": "all", "since": 99 });
    let waiting = client.request("tools/call", &json!({ "name": "get_task_status", "arguments": wait }));
    let script = counting(&go_on, 10);
    let own = json!({ "cli_name": "script", "message": script });
    let starting = client.request("tools/call", &json!({ "name": "use_agent", "arguments": own }));
    until("both run", SOON, || (supervisors(&bench) == 2).then_some(()));
    for _ in 0..2 {
        let (daemon, _) = bench.home.relayed();
        kill(daemon);
        until("another daemon serves", SOON, || (bench.home.relayed().0 != daemon).then_some(()));
    }
    std::fs::write(&go_on, "").unwrap();
    let mut replies = std::collections::HashMap::new();
    while replies.len() < 2 {
        let frame = client.next();
        if let Some(id) = frame["id"].as_u64().filter(|_| frame.get("method").is_none()) {
            let said = frame["result"]["structuredContent"].clone();
            assert!(said.is_object(), "{waiting} waits, {starting} starts: {frame}");
            replies.insert(id, said);
        }
    }
    let (started, ended) = (&replies[&starting], &replies[&waiting]);
    assert_eq!(started["status"], "completed", "{started}");
    assert_whole(started["result"].as_str().unwrap(), 10);
    assert_eq!(ended["status"], "completed", "{ended}");
    let all = client.call("get_task_status", &json!({}));
    assert_eq!(all["tasks"].as_array().map(Vec::len), Some(2), "no call was taken for two: {all}");
}

#[test]
fn a_run_that_ended_while_no_daemon_lived_has_its_result() {
    let bench = Bench::new();
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let task = start(&mut client, &counting(&go_on, 10));
    said_something(&mut client, &task);
    let (daemon, _) = bench.home.relayed();
    client.kill();
    kill(daemon);
    std::fs::write(&go_on, "").unwrap();
    until("its supervisor has ended", SOON, || (supervisors(&bench) == 0).then_some(()));
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    assert_whole(&whole_result(&mut client, &task), 10);
    until("its folder is removed", SOON, || {
        std::fs::read_dir(bench.home.path("data/runs")).map_or(true, |mut left| left.next().is_none()).then_some(())
    });
}

/// How many supervisors of this home are at work.
pub(super) fn supervisors(bench: &Bench) -> usize {
    supervisor_pids(bench).len()
}

pub(super) fn supervisor_pids(bench: &Bench) -> Vec<u32> {
    supervisors_in(bench.home.folder())
}

#[test]
fn a_question_that_was_open_when_the_daemon_was_killed_is_answered_afterwards() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events" }));
    reaches(&mut client, &task, "input_required");
    let (daemon, _) = bench.home.relayed();
    kill(daemon);
    let mut client = bench.client();
    let said = reaches(&mut client, &task, "input_required");
    assert_eq!(said["question"]["text"], "Go on?", "{said}");
    let job = &said["question"]["job_id"];
    let answer = json!({ "task_id": task, "job_id": job, "question_id": "q1", "option": "yes" });
    let said: Value = client.call("answer_question", &answer);
    assert_eq!(said["ok"], true, "{said}");
    let end = end_of(&mut client, &task);
    assert_eq!((end["status"].as_str(), end["result"].as_str()), (Some("completed"), Some("before after")), "{end}");
}

#[test]
fn a_supervisor_without_a_daemon_starts_one() {
    let bench = Bench::new();
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let task = start(&mut client, &counting(&go_on, 10));
    said_something(&mut client, &task);
    let (daemon, _) = bench.home.relayed();
    client.kill();
    kill(daemon);
    until("another daemon serves", 3 * SOON, || (bench.home.relayed().0 != daemon).then_some(()));
    std::fs::write(&go_on, "").unwrap();
    let mut client = bench.client();
    assert_eq!(end_of(&mut client, &task)["status"], "completed");
    assert_whole(&whole_result(&mut client, &task), 10);
}

#[test]
fn a_daemon_that_was_stopped_is_not_started_by_a_run() {
    let bench = Bench::new();
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let task = start(&mut client, &counting(&go_on, 10));
    said_something(&mut client, &task);
    let (daemon, _) = bench.home.relayed();
    client.kill();
    end_politely(daemon);
    assert!(bench.home.data_dir().join("stopped").exists());
    std::fs::write(&go_on, "").unwrap();
    until("its supervisor has ended", SOON, || (supervisors(&bench) == 0).then_some(()));
    let mut client = bench.client();
    assert_eq!(end_of(&mut client, &task)["status"], "completed");
    assert!(!bench.home.data_dir().join("stopped").exists(), "the next start removes the mark");
}

#[test]
fn a_run_ends_when_its_folder_is_removed() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("echo line 1; sleep {nap}"));
    said_something(&mut client, &task);
    std::fs::remove_dir_all(bench.home.data_dir().join("runs")).unwrap();
    until("no process is left", SOON, || (processes(&nap) == 0).then_some(()));
    let end = end_of(&mut client, &task);
    assert_eq!(
        (end["status"].as_str(), end["error_code"].as_str()),
        (Some("failed"), Some("SUPERVISOR_LOST")),
        "{end}"
    );
}

/// So that a free lock means that no process of the run is left.
#[test]
fn the_first_process_of_a_sealed_run_holds_the_lock_with_its_supervisor() {
    let bench = Bench::new();
    let mut client = bench.client();
    let (nap, nap2) = (unique_sleep(), unique_sleep());
    let task = start(&mut client, &format!("(setsid sleep {nap2} &); echo line 1; sleep {nap}"));
    said_something(&mut client, &task);
    let folder = std::fs::read_dir(bench.home.data_dir().join("runs")).unwrap().next().unwrap().unwrap().path();
    let lock = folder.join("outside/lock");
    let holds = |process: &Path| {
        let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        files.map(|file| file.path()).any(|file| std::fs::read_link(file).is_ok_and(|target| target == lock))
    };
    let processes_at = || std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    // Only root may look into the first process: it cannot be traced.
    if rustix::process::geteuid().is_root() {
        let holders = processes_at().filter(|process| holds(process)).count();
        assert_eq!(holders, 2, "supervisor and first process");
    }
    supervisor_pids(&bench).into_iter().for_each(kill);
    let is_free = || std::fs::File::open(&lock).is_ok_and(|file| file.try_lock_shared().is_ok());
    until("the lock is free", SOON, || (!lock.exists() || is_free()).then_some(()));
    assert_eq!((processes(&nap), processes(&nap2)), (0, 0));
    assert_eq!(end_of(&mut client, &task)["error_code"], "SUPERVISOR_LOST");
}

#[test]
fn a_run_is_cancelled_after_its_daemon_was_killed() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("echo line 1; sleep {nap}"));
    said_something(&mut client, &task);
    let (daemon, _) = bench.home.relayed();
    kill(daemon);
    assert_eq!(processes(&nap), 1, "it works on");
    let mut client = bench.client();
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    assert_eq!(end_of(&mut client, &task)["status"], "cancelled");
    until("no process is left", SOON, || (processes(&nap) == 0).then_some(()));
}

#[test]
fn a_long_stream_does_not_stay_on_the_disk_and_is_gone_on_with() {
    const EVENTS: u32 = 120_000;
    let bench = Bench::new();
    let (mut client, go_on) = (bench.client(), bench.home.signal("go_on"));
    let script = format!(
        r#"echo '{{"type":"session","id":"s1"}}'; echo '{{"type":"usage","input_tokens":7,"output_tokens":3}}'
echo '{{"type":"text","text":"first "}}'
seq 1 {EVENTS} | sed 's/.*/{{"type":"tool","name":"Read","input":{{"path":"some file with a name as long as they are, number &"}}}}/'
echo '{{"type":"text","text":"line last"}}'
while [ ! -e {} ]; do sleep 0.05; done
echo '{{"type":"result"}}'"#,
        go_on.display()
    );
    let task = start_with(&mut client, &script, json!({ "cli_name": "events" }));
    let tail = |client: &mut Client| client.call("get_task_status", &json!({ "task_id": task, "tail": 1 }));
    until("all is stored", 3 * SOON, || tail(&mut client)["tail"].as_str()?.contains("line last").then_some(()));
    let spool = std::fs::read_dir(bench.home.data_dir().join("runs")).unwrap().next().unwrap().unwrap().path();
    let bytes = || {
        let segments = std::fs::read_dir(spool.join("outside/spool")).unwrap();
        segments.map(|segment| segment.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let printed = u64::from(EVENTS) * 100;
    until("most of it is removed", SOON, || (bytes() < printed / 2).then_some(()));
    kill(bench.home.relayed().0);
    let mut client = bench.client();
    reaches(&mut client, &task, "running");
    std::fs::write(&go_on, "").unwrap();
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("first line last")), "{end}");
    assert_eq!((&end["usage"]["input_tokens"], &end["session_id"]), (&json!(7), &json!(task)), "{end}");
}
