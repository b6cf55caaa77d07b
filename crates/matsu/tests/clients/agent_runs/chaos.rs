//! Runs while their daemon, its version, their supervisors and the machine itself are taken away, many times. They run
//! with `MATSU_CHAOS=1` only (`make chaos`), print what they counted, and repeat themselves by `MATSU_CHAOS_SEED`.

use std::process::{Child, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use matsu_testkit::dice::{Dice, dice};
use serde_json::{Value, json};

use super::survival::{assert_whole, counting_every, said_something, supervisor_pids, whole_result};
use super::{Bench, SOON, end_of, processes, start, start_with, unique_sleep};
use crate::home::{kill, until};
use crate::stdio::Client;

const RUNS: usize = 20;
/// A result that fills many parts of the store.
const LINES: u32 = 5_000;
const ENDS_WITHIN: Duration = Duration::from_secs(1_200);

fn bench() -> Bench {
    Bench::with(&format!("[slots]\nagent_cli = {RUNS}\n[agents]\nmode_max = \"workspace-write\"\n"))
}

/// Twenty runs, each with a client of its own that waits for the result through its relay. Every second one prints plain
/// text, the others a stream of events.
struct Crowd {
    waiting: Vec<JoinHandle<()>>,
    streams: Vec<String>,
}

/// A program that prints numbered events until a file says go on, and then some more.
fn streaming(go_on: &std::path::Path) -> String {
    let go_on = go_on.display();
    format!(
        r#"echo '{{"type":"session","id":"s1"}}'
n=0
while [ ! -e {go_on} ]; do n=$((n+1)); echo "{{\"type\":\"tool\",\"name\":\"line $n\"}}"; sleep 0.2; done
seq 1 {LINES} | sed 's/.*/{{"type":"tool","name":"after &"}}/'
echo "{{\"type\":\"text\",\"text\":\"$n lines\"}}"
echo '{{"type":"result"}}'"#
    )
}

/// What such a program has done: each event once, in order.
fn assert_streamed(log: &str, said: &str) {
    let counted: u32 = said.strip_suffix(" lines").unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    let lines = (1..=counted).map(|n| format!("→ line {n}"));
    let expected: Vec<String> =
        lines.chain((1..=LINES).map(|n| format!("→ after {n}"))).chain([said.to_owned()]).collect();
    let log: Vec<&str> = log.lines().collect();
    let differs = expected.iter().zip(&log).position(|(expected, found)| expected != found);
    assert!(differs.is_none(), "line {differs:?} is another one: {:?}", differs.map(|n| log[n]));
    assert_eq!(log.len(), expected.len(), "each event once");
}

/// The whole log of a run.
fn whole_log(bench: &Bench, task: &str) -> String {
    let (_, http) = bench.home.relayed();
    let (mut text, mut offset) = (String::new(), 0);
    loop {
        let part = http.rest("GET", &format!("/tasks/{task}/log?offset={offset}"), &json!(null)).json();
        let next = part["next_offset"].as_u64().unwrap_or_else(|| panic!("{part}"));
        if next == offset {
            return text;
        }
        text.push_str(part["text"].as_str().unwrap());
        offset = next;
    }
}

impl Crowd {
    fn gather(bench: &Bench) -> Self {
        let go_on = bench.home.signal("go_on");
        let mut crowd = Self { waiting: Vec::new(), streams: Vec::new() };
        for n in 0..RUNS {
            let mut client = bench.client().patient(ENDS_WITHIN);
            let is_stream = n % 2 == 1;
            let task = if is_stream {
                start_with(&mut client, &streaming(&go_on), json!({ "cli_name": "events" }))
            } else {
                start(&mut client, &counting_every("0.2", &go_on, LINES))
            };
            if is_stream {
                crowd.streams.push(task.clone());
            }
            crowd.waiting.push(thread::spawn(move || {
                let end = end_after_all(&mut client, &task);
                assert_eq!(end["status"], "completed", "{end}");
                if !is_stream {
                    assert_whole(&whole_result(&mut client, &task), LINES);
                }
            }));
        }
        until("all run", 3 * SOON, || (supervisor_pids(bench).len() == RUNS).then_some(()));
        crowd
    }

    /// Lets them end, and checks what each client got.
    fn leave(self, bench: &Bench) {
        assert_eq!(supervisor_pids(bench).len(), RUNS, "every run goes on under the supervisor that started it");
        std::fs::write(bench.home.signal("go_on"), "").unwrap();
        for one in self.waiting {
            one.join().unwrap();
        }
        let (_, http) = bench.home.relayed();
        for task in &self.streams {
            let said = http.rest("GET", &format!("/tasks/{task}/log?offset=0&result_only=true"), &json!(null)).json();
            assert_streamed(&whole_log(bench, task), said["text"].as_str().unwrap());
        }
        let tasks = http.rest("GET", "/tasks?limit=100", &json!(null)).json();
        assert_eq!(tasks["items"].as_array().unwrap().len(), RUNS, "no call was taken for two");
    }
}

/// As [`end_of`]; a daemon that was just started may answer a wait at once.
fn end_after_all(client: &mut Client, task: &str) -> Value {
    until("the run has ended", ENDS_WITHIN, || {
        let said = client.call("get_task_status", &json!({ "task_id": task, "timeout": 20, "wait_for": "all" }));
        let status = said["status"].as_str().unwrap_or_else(|| panic!("{said}"));
        ["completed", "failed", "cancelled"].contains(&status).then_some(said.clone())
    })
}

fn pause(dice: &mut Dice, up_to_ms: u64) {
    thread::sleep(Duration::from_millis(dice.below(up_to_ms)));
}

#[test]
fn runs_and_their_clients_survive_two_hundred_kills_of_the_daemon() {
    let Some(mut dice) = dice("kills of the daemon") else { return };
    let bench = bench();
    let crowd = Crowd::gather(&bench);
    let began = Instant::now();
    let mut last = 0;
    for _ in 0..200 {
        let pid = until("another daemon serves", 3 * SOON, || {
            bench.home.announced().map(|(pid, _)| pid).filter(|pid| *pid != last)
        });
        pause(&mut dice, 600);
        kill(pid);
        last = pid;
    }
    println!("200 daemons killed in {:?}", began.elapsed());
    crowd.leave(&bench);
    println!("{RUNS} runs: each started once, each line once, each client has its result");
}

/// A daemon of this version; the one before it ends.
fn upgrade(bench: &Bench, version: &str) -> Child {
    let mut command = bench.home.command(&["serve", "--test-jobs", "--as-version", version]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    until("the new version serves", 3 * SOON, || bench.home.announced().filter(|(now, _)| *now == pid).map(drop));
    child
}

#[test]
fn runs_and_their_clients_survive_fifty_upgrades() {
    let Some(mut dice) = dice("upgrades") else { return };
    let bench = bench();
    let crowd = Crowd::gather(&bench);
    let mut before: Option<Child> = None;
    let mut longest = Duration::ZERO;
    for n in 1..=50 {
        let began = Instant::now();
        let next = upgrade(&bench, &format!("1000.{n}.0"));
        longest = longest.max(began.elapsed());
        if let Some(mut before) = before.replace(next) {
            assert!(before.wait().unwrap().success(), "the old version ends well");
        }
        pause(&mut dice, 300);
    }
    println!("50 upgrades, the longest took {longest:?}");
    crowd.leave(&bench);
    let mut last = before.unwrap();
    kill(last.id());
    last.wait().unwrap();
}

#[test]
fn twenty_killed_supervisors_are_noticed_and_leave_nothing() {
    let Some(mut dice) = dice("kills of supervisors") else { return };
    let bench = bench();
    let mut client = bench.client();
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        let nap = unique_sleep();
        let task = start(&mut client, &format!("echo line 1; setsid sleep {nap} & sleep {nap}"));
        said_something(&mut client, &task);
        pause(&mut dice, 200);
        let began = Instant::now();
        supervisor_pids(&bench).into_iter().for_each(kill);
        let end = end_of(&mut client, &task);
        longest = longest.max(began.elapsed());
        assert_eq!(end["error_code"], "SUPERVISOR_LOST", "{end}");
        assert_eq!(processes(&nap), 0, "a process is left");
        assert!(whole_result(&mut client, &task).contains("line 1"), "{end}");
    }
    println!("20 supervisors killed; the longest time to SUPERVISOR_LOST was {longest:?}");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}

#[test]
fn twenty_restarts_of_the_machine_are_resumed() {
    let Some(mut dice) = dice("restarts of the machine") else { return };
    let mut bench = bench();
    super::worktrees::repository(&bench.root);
    let definition = "name = \"goer\"\ncommand = \"/bin/sh\"\nargs = [\"{prompt_file}\"]\nprompt = \"file\"\n\
        output = \"text\"\ngo_on = \"\\necho went on: $1; cat half.txt\"\n\
        [session]\nchoose = true\nresume = { args = [\"resume\", \"{session}\"] }\n";
    std::fs::write(bench.home.path(".config/matsu/agents/goer.toml"), definition).unwrap();
    for n in 0..20 {
        let mut client = bench.client();
        let script = format!("echo half {n} > half.txt; echo line 1; sleep {}", unique_sleep());
        let task = start_with(&mut client, &script, json!({ "cli_name": "goer", "mode": "workspace-write" }));
        said_something(&mut client, &task);
        pause(&mut dice, 200);
        client.kill();
        kill(bench.home.relayed().0);
        supervisor_pids(&bench).into_iter().for_each(kill);
        bench.home.set("MATSU_TEST_BOOT_ID", &format!("start {n}"));
        let mut client = bench.client();
        let end = end_of(&mut client, &task);
        assert_eq!(end["status"], "completed", "{end}");
        assert_eq!(whole_result(&mut client, &task), format!("went on: resume\nhalf {n}\n"));
    }
    println!("20 restarts of the machine, 20 conversations resumed");
}

#[test]
fn a_hundred_runs_are_taken_over_within_two_seconds() {
    let Some(_) = dice("taking over a hundred runs") else { return };
    let mut bench = Bench::with("[slots]\nagent_cli = 100\n");
    bench.home.set("MATSU_LOG_LEVEL", "info");
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let script = format!("echo line 1; while [ ! -e {} ]; do sleep 1; done; echo done", go_on.display());
    let tasks: Vec<String> = (0..100).map(|_| start(&mut client, &script)).collect();
    until("all run", 6 * SOON, || (supervisor_pids(&bench).len() == 100).then_some(()));
    tasks.iter().for_each(|task| said_something(&mut client, task));
    client.kill();
    // None but the client below starts the next daemon.
    std::fs::write(bench.home.data_dir().join("stopped"), "").unwrap();
    kill(bench.home.relayed().0);
    let log = bench.home.data_dir().join("daemon.log");
    std::fs::write(&log, "").unwrap();
    let began = Instant::now();
    let mut client = bench.client();
    // Logged when the supervisor has accepted the daemon and its output has been read up to what is stored.
    let followed = || std::fs::read_to_string(&log).unwrap_or_default().matches("a run is followed again").count();
    until("all are taken over", 6 * SOON, || (followed() >= 100).then_some(()));
    let took = began.elapsed();
    println!("100 runs were taken over {took:?} after the client that starts the daemon was started");
    // The limit is for the program that people use; one without optimizations is several times slower.
    let limit = if cfg!(debug_assertions) { Duration::from_secs(20) } else { Duration::from_secs(2) };
    assert!(took < limit, "{took:?}");
    std::fs::write(&go_on, "").unwrap();
    for task in &tasks {
        assert_eq!(end_of(&mut client, task)["status"], "completed");
    }
}
