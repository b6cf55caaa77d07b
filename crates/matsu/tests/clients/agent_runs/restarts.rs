//! What a run does after a restart of its machine, and what the next daemon may do with a run that it takes over.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::connect_back::way_back;
use super::survival::{said_something, supervisor_pids, supervisors, whole_result};
use super::worktrees::repository;
use super::{Bench, SOON, end_of, pids, processes, reaches, start, start_with, unique_sleep};
use crate::home::{kill, until};
use crate::stdio::Client;

/// A program that speaks the events of Matsu and sleeps until the machine goes; when it is resumed it says so.
fn sleeper(more: &str, nap: &str) -> String {
    format!(
        "name = \"sleeper\"\ncommand = \"/bin/sh\"\nargs = [\"{{prompt_file}}\"]\nprompt = \"file\"\noutput = \"events\"\n\
         go_on = \"\\necho '{{\\\"type\\\":\\\"tool\\\",\\\"name\\\":\\\"again\\\"}}'; sleep {nap}\"\n{more}\
         [session]\nresume = {{ args = [\"resume\", \"{{session}}\"] }}\n"
    )
}

/// A home with that agent, and a run of it whose first event is stored.
fn sleeping(settings: &str, more: &str) -> (Bench, String, String) {
    let bench = Bench::with(&format!("[agents]\nmode_max = \"workspace-write\"\n{settings}"));
    repository(&bench.root);
    let nap = unique_sleep();
    std::fs::write(bench.home.path(".config/matsu/agents/sleeper.toml"), sleeper(more, &nap)).unwrap();
    let mut client = bench.client();
    let script = format!(
        "echo '{{\"type\":\"session\",\"id\":\"s1\"}}'; echo '{{\"type\":\"tool\",\"name\":\"line\"}}'; sleep {nap}"
    );
    let task = start_with(&mut client, &script, json!({ "cli_name": "sleeper", "mode": "workspace-write" }));
    said(&mut client, &task, "line");
    client.kill();
    (bench, task, nap)
}

fn said(client: &mut Client, task: &str, word: &str) -> String {
    until(&format!("it has said {word}"), SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task, "tail": 20 }));
        said["tail"].as_str().filter(|tail| tail.contains(word)).map(str::to_owned)
    })
}

/// Takes the power away and gives it back.
fn restart_machine(bench: &mut Bench, nap: &str, start: u32) -> Client {
    kill(bench.home.relayed().0);
    supervisor_pids(bench).into_iter().for_each(kill);
    // Those that nothing ends with their supervisor, as the power would.
    pids(nap).into_iter().for_each(kill);
    until("no process is left", SOON, || (processes(nap) == 0).then_some(()));
    bench.home.set("MATSU_TEST_BOOT_ID", &format!("start {start}"));
    bench.client()
}

#[test]
fn a_run_is_resumed_three_times_and_keeps_what_it_said_before() {
    let (mut bench, task, nap) = sleeping("", "");
    for start in 1..=3_u32 {
        let mut client = restart_machine(&mut bench, &nap, start);
        let tail = until("it was resumed", SOON, || {
            let said = client.call("get_task_status", &json!({ "task_id": task, "tail": 20 }));
            let again = said["tail"].as_str()?.matches("again").count();
            (again == start as usize).then(|| said["tail"].as_str().unwrap().to_owned())
        });
        assert!(tail.contains("line"), "what it said before stays: {tail}");
        client.kill();
    }
    let mut client = restart_machine(&mut bench, &nap, 4);
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("MACHINE_RESTARTED")), "{end}");
    let error = end["error"].as_str().unwrap();
    assert!(error.contains(&format!("matsu retry --continue {task}")), "{error}");
}

#[test]
fn a_run_that_is_not_to_be_resumed_fails_with_what_it_had() {
    let (mut bench, task, nap) = sleeping("", "on_machine_restart = \"fail\"\n");
    let mut client = restart_machine(&mut bench, &nap, 1);
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("MACHINE_RESTARTED")), "{end}");
    assert!(said(&mut client, &task, "line").contains("line"), "its output is kept");
    assert!(end["changes"]["branch"].is_string() || end["left_work"].is_null(), "{end}");
}

#[test]
fn a_fenced_run_is_not_resumed_by_itself() {
    let (mut bench, task, nap) = sleeping("confine = \"fenced\"\n", "");
    let mut client = restart_machine(&mut bench, &nap, 1);
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("MACHINE_RESTARTED")), "{end}");
    assert_eq!(end["confinement"]["level"].as_str().or(end["confinement"].as_str()), Some("fenced"), "{end}");
}

/// The folder of the only run.
fn run_folder(bench: &Bench) -> PathBuf {
    std::fs::read_dir(bench.home.data_dir().join("runs")).unwrap().next().unwrap().unwrap().path()
}

/// What a supervisor answers to this hello.
fn hello(bench: &Bench, secret: &str, attempt: i64) -> Value {
    // Its path may be longer than an address can be.
    let outside = std::fs::File::open(run_folder(bench).join("outside")).unwrap();
    let path = format!("/proc/self/fd/{}/control.sock", std::os::fd::AsRawFd::as_raw_fd(&outside));
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    writeln!(stream, "{}", json!({ "version": 1, "secret": secret, "attempt": attempt })).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn a_supervisor_obeys_only_its_secret_and_no_lower_attempt() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("echo line 1; sleep {nap}"));
    said_something(&mut client, &task);
    // Taken over once, so that there is a lower attempt.
    kill(bench.home.relayed().0);
    let mut client = bench.client();
    reaches(&mut client, &task, "running");
    let record = std::fs::read_to_string(run_folder(&bench).join("outside/run.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let (secret, attempt) = (record["secret"].as_str().unwrap(), record["attempt"].as_i64().unwrap());
    let refused = until("the next daemon controls it", SOON, || {
        let refused = hello(&bench, secret, attempt);
        refused.to_string().contains("controls this run").then_some(refused)
    });
    assert!(refused.to_string().contains(&format!("attempt {}", attempt + 1)), "{refused}");
    let refused = hello(&bench, "another", attempt + 9);
    assert!(refused.to_string().contains("the secret does not belong to this run"), "{refused}");
    assert_eq!((supervisors(&bench), processes(&nap)), (1, 1), "the run goes on");
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    assert_eq!(end_of(&mut client, &task)["status"], "cancelled");
}

#[test]
fn a_run_that_was_taken_over_ends_at_its_time_limit() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start_with(&mut client, &format!("echo line 1; sleep {nap}"), json!({ "timeout": 8 }));
    said_something(&mut client, &task);
    kill(bench.home.relayed().0);
    let mut client = bench.client();
    reaches(&mut client, &task, "running");
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("JOB_TIMEOUT")), "{end}");
    until("no process is left", SOON, || (processes(&nap) == 0).then_some(()));
}

#[test]
fn a_run_that_was_taken_over_calls_back() {
    let bench = Bench::new();
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let calls = way_back("get_next_action '{}' report_completed '{\"result\":\"success\",\"summary\":\"all done\"}'");
    let script = format!("echo line 1; while [ ! -e {} ]; do sleep 0.1; done; {calls}", go_on.display());
    let task = start_with(&mut client, &script, json!({ "cli_name": "reporter" }));
    said_something(&mut client, &task);
    kill(bench.home.relayed().0);
    let mut client = bench.client();
    reaches(&mut client, &task, "running");
    std::fs::write(&go_on, "").unwrap();
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    assert!(end["result"].as_str().unwrap().contains(&task), "it is still the run of its task: {end}");
}

#[test]
fn a_silent_run_whose_folder_was_removed_is_not_begun_a_second_time() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("sleep {nap}"));
    until("it runs", SOON, || (processes(&nap) == 1).then_some(()));
    std::thread::sleep(Duration::from_secs(1));
    client.kill();
    std::fs::write(bench.home.data_dir().join("stopped"), "").unwrap();
    kill(bench.home.relayed().0);
    std::fs::remove_dir_all(bench.home.data_dir().join("runs")).unwrap();
    until("its supervisor has noticed", SOON, || (processes(&nap) == 0).then_some(()));
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("SUPERVISOR_LOST")), "{end}");
    assert_eq!(processes(&nap), 0, "it was not begun again");
}

#[test]
fn a_run_whose_definition_is_gone_is_not_given_up() {
    let bench = Bench::new();
    let go_on = bench.home.signal("go_on");
    let (file, kept) = (bench.home.path(".config/matsu/agents/script.toml"), bench.home.path("script.toml"));
    let mut client = bench.client();
    let task = start(&mut client, &format!("echo line 1; while [ ! -e {} ]; do sleep 0.1; done", go_on.display()));
    said_something(&mut client, &task);
    std::fs::rename(&file, &kept).unwrap();
    kill(bench.home.relayed().0);
    let mut client = bench.client();
    until("the task says what it waits for", SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task }));
        said.to_string().contains("the definition of agent script").then_some(())
    });
    assert_eq!(supervisors(&bench), 1, "the run goes on");
    // The daemon reads it again by itself.
    std::fs::rename(&kept, &file).unwrap();
    std::fs::write(&go_on, "").unwrap();
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(whole_result(&mut client, &task), "line 1\n");
}

#[test]
fn a_run_whose_definition_is_gone_can_be_stopped() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("echo line 1; sleep {nap}"));
    said_something(&mut client, &task);
    std::fs::remove_file(bench.home.path(".config/matsu/agents/script.toml")).unwrap();
    kill(bench.home.relayed().0);
    let mut client = bench.client();
    reaches(&mut client, &task, "running");
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    assert_eq!(end_of(&mut client, &task)["status"], "cancelled");
    until("no process is left", SOON, || (processes(&nap) == 0).then_some(()));
}

#[test]
fn a_stream_of_a_hundred_megabytes_that_says_nothing_does_not_stop() {
    let bench = Bench::new();
    let mut client = bench.client();
    // Events that mean nothing to Matsu: no text comes of them.
    let script = r#"python3 -c 'line = b"{\"type\":\"nothing\",\"filler\":\"" + b"x" * 4000 + b"\"}\n"
import sys
for _ in range(26000): sys.stdout.buffer.write(line)'
echo '{"type":"text","text":"the end"}'
echo '{"type":"result"}'"#;
    let task = start_with(&mut client, script, json!({ "cli_name": "events" }));
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("the end")), "{end}");
}

#[test]
fn a_run_is_stopped_without_a_daemon() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("echo line 1; sleep {nap}"));
    said_something(&mut client, &task);
    client.kill();
    bench.home.run(&["shutdown"]);
    assert_eq!(processes(&nap), 1, "it goes on");
    let stopped = bench.home.run(&["stop", "--now", &task]);
    assert_eq!(stopped["task"]["status"], "cancelled", "{stopped}");
    assert_eq!((processes(&nap), supervisors(&bench)), (0, 0), "what reads cancelled has ended");
}

#[test]
fn a_run_that_ends_without_a_daemon_starts_one() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start(&mut client, "echo line 1; sleep 3; echo the end");
    said_something(&mut client, &task);
    let (daemon, _) = bench.home.relayed();
    client.kill();
    kill(daemon);
    until("another daemon serves", SOON, || (bench.home.relayed().0 != daemon).then_some(()));
    let mut client = bench.client();
    assert_eq!(end_of(&mut client, &task)["status"], "completed");
}

#[test]
fn a_question_stays_open_after_a_shutdown() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, super::survival::ASKS, json!({ "cli_name": "events" }));
    reaches(&mut client, &task, "input_required");
    client.kill();
    bench.home.run(&["shutdown"]);
    let status: Value = bench.home.run(&["status", &task]);
    assert_eq!(status["task"]["status"].as_str().or(status["status"].as_str()), Some("input_required"), "{status}");
    bench.home.run(&["answer", &task, "yes"]);
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!(end["result"], "before after", "{end}");
}

#[test]
fn a_run_whose_record_is_damaged_is_ended_and_not_begun_again() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("echo line 1; sleep {nap}"));
    said_something(&mut client, &task);
    client.kill();
    std::fs::write(bench.home.data_dir().join("stopped"), "").unwrap();
    kill(bench.home.relayed().0);
    std::fs::write(run_folder(&bench).join("outside/run.json"), "{").unwrap();
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("SUPERVISOR_LOST")), "{end}");
    assert_eq!(processes(&nap), 0, "no process is left");
}

#[test]
fn a_tree_that_was_half_made_is_made_again() {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    for n in 0..1_500 {
        std::fs::write(bench.root.join(format!("file {n}.txt")), "some text\n").unwrap();
    }
    super::worktrees::git(&bench.root, &["add", "."]);
    super::worktrees::git(&bench.root, &["commit", "-q", "-m", "many"]);
    let trees = bench.home.data_dir().join("worktrees");
    let mut killed_within = 0;
    for _ in 0..3 {
        let mut client = bench.client();
        let task = start_with(&mut client, "echo done > done.txt", json!({ "mode": "workspace-write" }));
        let unfinished = || {
            let entries = std::fs::read_dir(&trees).into_iter().flatten().flatten();
            entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".unfinished")).count()
        };
        until("the tree is being made", SOON, || (unfinished() > 0 || trees.exists()).then_some(()));
        killed_within += unfinished();
        client.kill();
        kill(bench.home.relayed().0);
        let mut client = bench.client();
        let end = end_of(&mut client, &task);
        assert_eq!(end["status"], "completed", "{end}");
    }
    assert!(killed_within > 0, "the daemon was killed while a tree was made");
    assert_eq!(std::fs::read_dir(&trees).unwrap().count(), 0, "nothing is left");
}

#[test]
fn an_answer_that_came_before_a_restart_of_the_machine_reaches_the_resumed_program() {
    let mut bench = Bench::new();
    let definition = r#"name = "asker"
command = "/bin/sh"
args = ["-c", '''if grep -q "The answer is: yes" "$0"; then echo '{"type":"text","text":"got yes"}'; echo '{"type":"result"}'; else . "$0"; fi''', "{prompt_file}"]
prompt = "file"
output = "events"
[session]
resume = { args = ["resume", "{session}"] }
"#;
    std::fs::write(bench.home.path(".config/matsu/agents/asker.toml"), definition).unwrap();
    let mut client = bench.client();
    let script = format!("echo '{{\"type\":\"session\",\"id\":\"s1\"}}'\n{}", super::survival::ASKS);
    let task = start_with(&mut client, &script, json!({ "cli_name": "asker" }));
    reaches(&mut client, &task, "input_required");
    client.kill();
    std::fs::write(bench.home.data_dir().join("stopped"), "").unwrap();
    kill(bench.home.relayed().0);
    supervisor_pids(&bench).into_iter().for_each(kill);
    bench.home.set("MATSU_TEST_BOOT_ID", "another start");
    bench.home.run(&["answer", &task, "yes"]);
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("got yes")), "{end}");
}
