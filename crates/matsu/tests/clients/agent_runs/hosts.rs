//! Machines that share a PostgreSQL: a run belongs to its machine, waits for it, and is given up or begins again elsewhere
//! when it stays away.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::survival::{assert_whole, counting, said_something, supervisors, whole_result};
use super::worktrees::{git, repository};
use super::{Bench, SOON, end_of, processes, start, start_with, unique_sleep};
use crate::home::{Daemon, kill, postgres_store, until};
use crate::stdio::Client;

/// Two machines on one PostgreSQL, each with a data directory of its own.
fn two_hosts() -> (Bench, Bench) {
    let settings = "[agents]\nmode_max = \"workspace-write\"\nhost_grace = 5\n";
    let (mut one, mut two) = (Bench::with(settings), Bench::with(settings));
    let url = postgres_store(&one.home);
    for bench in [&mut one, &mut two] {
        bench.home.set("MATSU_STORE_URL", &url);
    }
    (one, two)
}

/// Ends the daemon of a machine as a power cut would, and keeps its runs from starting another.
fn cut_off(bench: &Bench, client: Client) {
    client.kill();
    std::fs::write(bench.home.data_dir().join("stopped"), "").unwrap();
    kill(bench.home.relayed().0);
}

/// A node of a shared store is taken for dead after 30 ticks of the others.
const NODE_DEAD: Duration = Duration::from_secs(60);

fn seen_by(other: &Daemon, task: &str) -> Value {
    other.http().rest("GET", &format!("/tasks/{task}/jobs"), &Value::Null).json()["items"][0].clone()
}

#[test]
fn a_run_waits_for_its_host_and_goes_on_when_it_returns() {
    let (one, two) = two_hosts();
    let mut client = one.client();
    let go_on = one.home.signal("go_on");
    let task = start(&mut client, &counting(&go_on, 10));
    said_something(&mut client, &task);
    let other = two.home.serve();
    cut_off(&one, client);
    let shown = until("the other node shows what it waits for", NODE_DEAD, || {
        let job = seen_by(&other, &task);
        job["progress"].as_str().filter(|progress| progress.contains("waiting for host")).map(str::to_owned)
    });
    let host = std::fs::read_to_string(one.home.data_dir().join("host_id")).unwrap();
    let short = &host.trim()[host.trim().len() - 6..];
    assert!(shown.contains(short), "{shown}: {host}");
    let mut client = one.client();
    std::fs::write(&go_on, "").unwrap();
    assert_eq!(end_of(&mut client, &task)["status"], "completed");
    assert_whole(&whole_result(&mut client, &task), 10);
}

#[test]
fn a_run_is_given_up_when_its_host_stays_away_and_its_work_is_kept_there() {
    let (one, two) = two_hosts();
    repository(&one.root);
    let mut client = one.client();
    let nap = unique_sleep();
    let script = format!("echo work > new.txt; echo line 1; sleep {nap}");
    let task = start_with(&mut client, &script, json!({ "mode": "workspace-write" }));
    said_something(&mut client, &task);
    let other = two.home.serve();
    cut_off(&one, client);
    let began = Instant::now();
    let job = until("it is given up", NODE_DEAD + SOON, || {
        let job = seen_by(&other, &task);
        (job["state"] == "failed").then_some(job)
    });
    assert_eq!(job["error_code"], "HOST_LOST", "{job}");
    assert!(began.elapsed() > Duration::from_secs(4), "not before its grace time: {:?}", began.elapsed());
    assert_eq!(processes(&nap), 1, "the host that is cut off does not know");
    // It returns: what runs there is ended, and what it wrote is kept.
    let client = one.client();
    until("its processes are ended", SOON, || (processes(&nap) == 0).then_some(()));
    let branch = until("its work is a branch", SOON, || {
        let branches = git(&one.root, &["branch", "--list", "--format=%(refname:short)", "matsu/*"]);
        branches.lines().next().map(str::to_owned)
    });
    assert_eq!(git(&one.root, &["show", &format!("{branch}:new.txt")]), "work\n");
    client.kill();
}

#[test]
fn a_run_that_may_move_begins_again_on_another_host() {
    let (one, two) = two_hosts();
    repository(&one.root);
    let definition = "name = \"mover\"\ncommand = \"/bin/sh\"\nargs = [\"{prompt_file}\"]\nprompt = \"file\"\n\
        output = \"text\"\nrelocatable = true\n[session]\nchoose = true\nresume = { args = [\"{session}\"] }\n";
    for bench in [&one, &two] {
        fs::write(bench.home.path(".config/matsu/agents/mover.toml"), definition).unwrap();
    }
    let mut client = one.client();
    let nap = unique_sleep();
    // The second one reads that before its message.
    let script = format!(
        "if grep -q \"^This work was started on another machine\" \"$0\"; then echo second > new.txt; ls; echo done
         else echo first > half.txt; echo line 1; sleep {nap}; fi"
    );
    let task = start_with(&mut client, &script, json!({ "cli_name": "mover", "mode": "workspace-write" }));
    said_something(&mut client, &task);
    let base = git(&one.root, &["rev-parse", "main"]);
    // What is committed meanwhile is not what it began with.
    git(&one.root, &["commit", "--allow-empty", "-m", "later"]);
    let other = two.home.serve();
    cut_off(&one, client);
    let job = until("it has ended elsewhere", NODE_DEAD + 2 * SOON, || {
        let job = seen_by(&other, &task);
        ["completed", "failed"].contains(&job["state"].as_str().unwrap()).then_some(job)
    });
    assert_eq!(job["state"], "completed", "{job}");
    let output: Value = serde_json::from_str(job["output"].as_str().unwrap()).unwrap();
    assert_eq!(output["changes"]["base"], base.trim(), "it begins from the same commit: {output}");
    let branch = output["changes"]["branch"].as_str().unwrap();
    assert_eq!(git(&one.root, &["show", &format!("{branch}:new.txt")]), "second\n");
    assert_eq!(processes(&nap), 1, "the host that is cut off does not know");
    // It returns late: its run is ended, and what that wrote is another branch.
    let mut client = one.client();
    until("its processes are ended", SOON, || (processes(&nap) == 0).then_some(()));
    let kept = until("its work is a branch", SOON, || {
        let branches = git(&one.root, &["branch", "--list", "--format=%(refname:short)", "matsu/*"]);
        branches.lines().find(|name| *name != branch).map(str::to_owned)
    });
    assert_eq!(git(&one.root, &["show", &format!("{kept}:half.txt")]), "first\n");
    assert!(whole_result(&mut client, &task).ends_with("done\n"));
    client.kill();
}

#[test]
fn two_nodes_that_find_the_same_run_do_not_both_take_it_over() {
    let mut bench = Bench::new();
    let url = postgres_store(&bench.home);
    bench.home.set("MATSU_STORE_URL", &url);
    let mut client = bench.client();
    let go_on = bench.home.signal("go_on");
    let task = start(&mut client, &counting(&go_on, 10));
    said_something(&mut client, &task);
    cut_off(&bench, client);
    // Both on the machine of the run: both find its folder.
    let workers: Vec<_> = (0..2)
        .map(|n| {
            let log = fs::File::create(bench.home.path(&format!("worker {n}.log"))).unwrap();
            let mut command = bench.home.command(&["worker"]);
            command.env("MATSU_LOG_LEVEL", "info").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            command.spawn().unwrap()
        })
        .collect();
    let logs = || (0..2).map(|n| fs::read_to_string(bench.home.path(&format!("worker {n}.log"))).unwrap());
    let taken_over = || logs().map(|log| log.matches("a run is taken over").count()).sum::<usize>();
    until("it is taken over", NODE_DEAD, || (taken_over() > 0).then_some(()));
    assert_eq!(supervisors(&bench), 1);
    fs::write(&go_on, "").unwrap();
    until("its supervisor has ended", SOON, || (supervisors(&bench) == 0).then_some(()));
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    assert_whole(&whole_result(&mut client, &task), 10);
    assert_eq!(taken_over(), 1, "{:?}", logs().collect::<Vec<_>>());
    for mut worker in workers {
        kill(worker.id());
        worker.wait().unwrap();
    }
}
