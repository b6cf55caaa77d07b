//! Faults around a run that outlives its daemon: a full disk, a spool that was cut, a supervisor of the first version,
//! a removed folder, process ids that others have now, a clock that jumps, a machine that stops while a run is taken over.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::survival::{assert_whole, counting, said_something, supervisor_pids, supervisors, whole_result};
use super::worktrees::repository;
use super::{Bench, SOON, end_of, processes, start, start_with, unique_sleep};
use crate::home::{kill, until};
use crate::stdio::Client;

/// The daemon is killed, and none is started before the test does.
fn leave_alone(bench: &Bench, client: Client) {
    let (daemon, _) = bench.home.relayed();
    client.kill();
    fs::write(bench.home.data_dir().join("stopped"), "").unwrap();
    kill(daemon);
    until("it has ended", SOON, || (!Path::new(&format!("/proc/{daemon}/exe")).exists()).then_some(()));
}

/// What only Matsu sees of the one run there is.
fn outside(bench: &Bench) -> PathBuf {
    let mut runs = fs::read_dir(bench.home.data_dir().join("runs")).unwrap();
    runs.next().unwrap().unwrap().path().join("outside")
}

fn last_segment(spool: &Path) -> PathBuf {
    let paths = fs::read_dir(spool).unwrap().map(|entry| entry.unwrap().path());
    let out = paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("out-"));
    out.max().unwrap()
}

fn cut(path: &Path, bytes: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

/// The program of this home in a machine that these words make.
fn serve_in(bench: &Bench, words: &[&str]) -> Child {
    let inner = bench.home.command(&["serve", "--test-jobs"]);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Namespaces need privileges, which an ordinary user has in a namespace of its own.
fn unshare<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let own: &[&str] = if rustix::process::geteuid().is_root() { &[] } else { &["--user", "--map-root-user"] };
    [&["unshare"], own, more].concat()
}

#[test]
fn a_full_disk_makes_the_program_wait_and_loses_nothing() {
    const LINES: u32 = 700_000;
    let bench = Bench::new();
    let runs = bench.home.data_dir().join("runs");
    fs::create_dir_all(&runs).unwrap();
    let small = format!("mount -t tmpfs -o size=3m,mode=700 small {} && exec \"$@\"", runs.display());
    let words = unshare(&["--mount", "sh", "-c", &small, "sh"]);
    let mut daemon = serve_in(&bench, &words);
    bench.home.relayed();
    let mut client = bench.client();
    let go_on = bench.home.signal("go_on");
    let task = start(&mut client, &counting(&go_on, LINES));
    said_something(&mut client, &task);
    let first = bench.home.relayed().0;
    leave_alone(&bench, client);
    daemon.wait().unwrap();
    fs::write(&go_on, "").unwrap();
    let supervisor = supervisor_pids(&bench)[0];
    // No daemon reads, and the disk of the run is smaller than what it prints.
    let its_runs = PathBuf::from(format!("/proc/{supervisor}/root{}", runs.display()));
    until("its disk is full", SOON, || {
        let open_chat = rustix::fs::statvfs(&its_runs).unwrap();
        (open_chat.f_bavail * open_chat.f_frsize < 128 * 1024).then_some(())
    });
    assert_eq!(supervisors(&bench), 1, "it waits");
    let its_machine = format!("--mount=/proc/{supervisor}/ns/mnt");
    let its_user = format!("--user=/proc/{supervisor}/ns/user");
    let enter = if rustix::process::geteuid().is_root() {
        vec!["nsenter", &its_machine]
    } else {
        vec!["nsenter", "--preserve-credentials", &its_user, &its_machine]
    };
    let mut daemon = serve_in(&bench, &enter);
    // A client that comes earlier would start a daemon of its own, which does not see this disk.
    until("another daemon serves", SOON, || bench.home.announced().filter(|(pid, _)| *pid != first));
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    assert_whole(&whole_result(&mut client, &task), LINES);
    client.kill();
    kill(bench.home.relayed().0);
    daemon.wait().unwrap();
}

#[test]
fn a_result_whose_spool_was_cut_is_not_taken_for_whole() {
    let bench = Bench::new();
    let mut client = bench.client();
    let go_on = bench.home.signal("go_on");
    let task = start(&mut client, &counting(&go_on, 10));
    said_something(&mut client, &task);
    leave_alone(&bench, client);
    fs::write(&go_on, "").unwrap();
    until("its supervisor has ended", SOON, || (supervisors(&bench) == 0).then_some(()));
    // As a file system does that was not written out before the power went.
    cut(&last_segment(&outside(&bench).join("spool")), 3);
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("SUPERVISOR_LOST")), "{end}");
    assert!(end["error"].as_str().unwrap().contains("its stored output ends after"), "{end}");
    let kept = whole_result(&mut client, &task);
    assert!(kept.starts_with("started\nline 1\n") && !kept.contains("the end"), "{kept}");
}

#[test]
fn output_that_was_stored_stays_when_its_spool_was_cut() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start(&mut client, &format!("seq 1 2000 | sed 's/^/line /'; sleep {}", unique_sleep()));
    until("all is stored", SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task, "tail": 1 }));
        said["tail"].as_str()?.contains("line 2000").then_some(())
    });
    leave_alone(&bench, client);
    supervisor_pids(&bench).into_iter().for_each(kill);
    cut(&last_segment(&outside(&bench).join("spool")), 5_000);
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("SUPERVISOR_LOST")), "{end}");
    let lines: String = (1..=2000).map(|n| format!("line {n}\n")).collect();
    assert_eq!(whole_result(&mut client, &task), lines);
}

#[test]
fn a_run_is_not_begun_again_when_its_folder_was_removed_while_no_daemon_ran() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("echo line 1; sleep {nap}; echo line 2"));
    said_something(&mut client, &task);
    leave_alone(&bench, client);
    fs::remove_dir_all(bench.home.data_dir().join("runs")).unwrap();
    until("no process is left", SOON, || (processes(&nap) == 0).then_some(()));
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("SUPERVISOR_LOST")), "{end}");
    assert!(end["error"].as_str().unwrap().contains("was removed"), "{end}");
    assert_eq!(whole_result(&mut client, &task), "line 1\n");
    assert_eq!(processes(&nap), 0);
}

#[test]
fn a_clock_that_jumps_between_two_daemons_changes_nothing() {
    const DAYS: i64 = 3 * 86_400;
    let mut bench = Bench::new();
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let task = start_with(&mut client, &counting(&go_on, 10), json!({ "timeout": 600 }));
    for wrong_by in [DAYS, -DAYS, 0] {
        said_something(&mut client, &task);
        let (daemon, _) = bench.home.relayed();
        client.kill();
        bench.home.set("MATSU_TEST_CLOCK", &wrong_by.to_string());
        kill(daemon);
        client = bench.client();
        until("another daemon serves", SOON, || (bench.home.relayed().0 != daemon).then_some(()));
        let said = client.call("get_task_status", &json!({ "task_id": task }));
        assert_eq!(said["status"], "running", "{wrong_by} s: {said}");
    }
    fs::write(&go_on, "").unwrap();
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    assert_whole(&whole_result(&mut client, &task), 10);
}

#[test]
fn a_machine_that_stops_while_a_run_is_taken_over_resumes_it_once_it_is_back() {
    let mut bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    let definition = "name = \"goer\"\ncommand = \"/bin/sh\"\nargs = [\"{prompt_file}\"]\nprompt = \"file\"\n\
        output = \"text\"\ngo_on = \"\\necho went on: $1; cat half.txt\"\n\
        [session]\nchoose = true\nresume = { args = [\"resume\", \"{session}\"] }\n";
    fs::write(bench.home.path(".config/matsu/agents/goer.toml"), definition).unwrap();
    // Before the next daemon looks for runs, while it takes one over, and after that.
    for (n, pause) in [0, 40, 80, 120, 160, 240, 400].into_iter().enumerate() {
        let mut client = bench.client();
        let script = format!("echo half {n} > half.txt; echo line 1; sleep {}", unique_sleep());
        let task = start_with(&mut client, &script, json!({ "cli_name": "goer", "mode": "workspace-write" }));
        said_something(&mut client, &task);
        let level = client.call("get_task_status", &json!({ "task_id": task }))["confinement"].clone();
        leave_alone(&bench, client);
        let mut next = serve_in(&bench, &["env"]);
        std::thread::sleep(Duration::from_millis(pause));
        kill(next.id());
        next.wait().unwrap();
        supervisor_pids(&bench).into_iter().for_each(kill);
        bench.home.set("MATSU_TEST_BOOT_ID", &format!("start {n}"));
        let mut client = bench.client();
        let end = end_of(&mut client, &task);
        if level.as_str().is_some_and(|level| level != "sealed") {
            assert_eq!(end["error_code"], "MACHINE_RESTARTED", "after {pause} ms: {end}");
        } else {
            assert_eq!(end["status"], "completed", "after {pause} ms: {end}");
            assert_eq!(whole_result(&mut client, &task), format!("went on: resume\nhalf {n}\n"));
        }
        client.kill();
        kill(bench.home.relayed().0);
    }
}

/// The announcement of a daemon in a namespace names a process id that others have outside: it must not be there when
/// the home ends what serves it.
struct Hidden<'a>(&'a Bench);

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.0.home.data_dir().join("server.json"));
    }
}

#[test]
fn process_ids_that_others_have_now_are_not_taken_for_a_run_or_a_daemon() {
    let bench = Bench::new();
    let _hidden = Hidden(&bench);
    let own =
        |script: &'static str| unshare(&["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"]);
    let mut first = serve_in(&bench, &own("\"$@\" & wait"));
    let daemon = bench.home.relayed().0;
    let mut client = bench.client();
    let task = start(&mut client, &format!("echo line 1; sleep {}", unique_sleep()));
    said_something(&mut client, &task);
    let status = fs::read_to_string(format!("/proc/{}/status", supervisor_pids(&bench)[0])).unwrap();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
    let supervisor: u32 = ids.split_whitespace().last().unwrap().parse().unwrap();
    client.kill();
    fs::write(bench.home.data_dir().join("stopped"), "").unwrap();
    kill(first.id());
    first.wait().unwrap();
    until("all have ended", SOON, || (supervisors(&bench) == 0).then_some(()));
    // The same ids again, as in a container that is started again: programs that have nothing to do with it.
    let nap = unique_sleep();
    let script = format!(
        "take() {{ echo $(($1 - 1)) > /proc/sys/kernel/ns_last_pid; sleep {nap} & [ $! = $1 ] || exit 9; }}
         take {daemon}; take {supervisor}; echo {} > /proc/sys/kernel/ns_last_pid; \"$@\" & wait",
        supervisor + 500
    );
    let words = unshare(&["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", &script, "sh"]);
    let mut second = serve_in(&bench, &words);
    until("another daemon serves", SOON, || bench.home.announced().filter(|(pid, _)| *pid != daemon));
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("SUPERVISOR_LOST")), "{end}");
    assert_eq!(processes(&nap), 2, "others are left alone");
    client.kill();
    kill(second.id());
    second.wait().unwrap();
}

/// CRC-32 as in zlib, which each frame of a spool carries.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

/// What a supervisor of the first version did, written down here so that later ones must keep talking to it.
fn old_supervisor(outside: &Path, secret: &str) -> std::thread::JoinHandle<Value> {
    let lock = fs::OpenOptions::new().write(true).open(outside.join("lock")).unwrap();
    until("the lock is free", SOON, || lock.try_lock().ok());
    let _ = fs::remove_file(outside.join("control.sock"));
    let listener = UnixListener::bind(outside.join("control.sock")).unwrap();
    let (outside, secret) = (outside.to_owned(), secret.to_owned());
    std::thread::spawn(move || {
        let (mut daemon, _) = listener.accept().unwrap();
        let mut words = BufReader::new(daemon.try_clone().unwrap()).lines();
        let hello: Value = serde_json::from_str(&words.next().unwrap().unwrap()).unwrap();
        assert_eq!(hello["secret"], secret, "{hello}");
        daemon.write_all(b"{\"Welcome\":{\"version\":1,\"ran_seconds\":2}}\n").unwrap();
        let segment = last_segment(&outside.join("spool"));
        let mut spool = fs::OpenOptions::new().append(true).open(segment).unwrap();
        let mut position = "line 1\n".len();
        for text in ["line 2\n", "line 3\n"] {
            let (length, sum) =
                (u32::try_from(text.len()).unwrap().to_le_bytes(), checksum(text.as_bytes()).to_le_bytes());
            spool.write_all(&[&length[..], &sum, text.as_bytes()].concat()).unwrap();
            position += text.len();
            daemon.write_all(format!("{{\"Grew\":{{\"out\":{position},\"err\":0}}}}\n").as_bytes()).unwrap();
            // The daemon says what it has stored, before there is more.
            let mut others = words.by_ref().map(|word| serde_json::from_str::<Value>(&word.unwrap()).unwrap());
            let word = others.find(|word| word["Park"].is_null()).unwrap();
            assert!(word["Read"]["position"].is_u64(), "{word}");
        }
        let record = "{\"code\":0,\"signal\":null,\"processes\":0,\"timed_out\":false,\"at\":0,\"error\":null}";
        fs::write(outside.join("exit.json.new"), record).unwrap();
        fs::rename(outside.join("exit.json.new"), outside.join("exit.json")).unwrap();
        daemon.write_all(b"\"Ended\"\n").unwrap();
        drop(lock);
        hello
    })
}

#[test]
fn a_supervisor_of_the_first_version_is_followed_to_its_end() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start(&mut client, &format!("echo line 1; sleep {}", unique_sleep()));
    said_something(&mut client, &task);
    leave_alone(&bench, client);
    supervisor_pids(&bench).into_iter().for_each(kill);
    let outside = outside(&bench);
    let record: Value = serde_json::from_str(&fs::read_to_string(outside.join("run.json")).unwrap()).unwrap();
    let supervisor = old_supervisor(&outside, record["secret"].as_str().unwrap());
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(whole_result(&mut client, &task), "line 1\nline 2\nline 3\n");
    let hello = supervisor.join().unwrap();
    assert!(hello["attempt"].as_i64() > record["attempt"].as_i64(), "{hello}");
}
