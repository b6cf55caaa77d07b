//! Three processes on one PostgreSQL: they share work and limits, wake each other, and take over from the dead.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{sleep, until};
use crate::home::{Backend, Daemon, Home};
use crate::process::Process;
use crate::stores;

const SOON: Duration = Duration::from_secs(15);
const TAKEN_OVER: Duration = Duration::from_secs(45);

/// One that serves and two that only work, all known to the store.
fn three_nodes(home: &Home) -> (Daemon, [Process; 2]) {
    let daemon = home.serve();
    let workers = [0, 1].map(|_| home.work());
    until("all three are known", SOON, || {
        (daemon.api.get("/api/v1/nodes")["items"].as_array().unwrap().len() == 3).then_some(())
    });
    (daemon, workers)
}

fn numbers(store: &str, sql: &str) -> usize {
    stores::ask(store, sql)[0].parse().unwrap()
}

fn running(store: &str) -> usize {
    numbers(store, "SELECT count(*) FROM jobs WHERE state = 'running'")
}

fn unfinished(store: &str) -> usize {
    numbers(store, "SELECT count(*) FROM jobs WHERE finished_at IS NULL")
}

#[test]
fn three_nodes_share_the_work_and_one_limit() {
    const LIMIT: usize = 6;
    let home = Home::new(Backend::Postgres).with_variable("MATSU_SLOTS_AGENT_CLI", LIMIT.to_string());
    let (daemon, _workers) = three_nodes(&home);
    let tasks: Vec<String> = (0..150).map(|_| daemon.api.submit(vec![sleep(150)])).collect();
    let mut owners = BTreeSet::new();
    let mut most = 0;
    until("all is done", Duration::from_secs(30), || {
        owners.extend(stores::ask(&home.store, "SELECT DISTINCT owner_node FROM jobs WHERE state = 'running'"));
        most = most.max(running(&home.store));
        assert!(most <= LIMIT, "{most} ran at once");
        (unfinished(&home.store) == 0).then_some(())
    });
    assert_eq!(owners.len(), 3, "everybody had a part: {owners:?}");
    assert!(most > LIMIT / 2, "the limit was used: {most}");
    for task in &tasks {
        let job: Value = daemon.api.jobs_of(task).remove(0);
        assert_eq!((&job["state"], &job["attempt"]), (&json!("completed"), &json!(1)), "{job:#}");
    }
}

#[test]
fn a_wait_on_one_node_wakes_when_another_has_finished() {
    let home = Home::new(Backend::Postgres).with_variable("MATSU_SLOTS_AGENT_CLI", "3");
    let daemon = home.serve();
    // The serving node has its share of the slot, and leaves the rest to the others, which have nothing.
    let busy = daemon.api.submit(vec![sleep(60_000)]);
    daemon.api.job_becomes(&busy, "running", SOON);
    let _workers = [0, 1].map(|_| home.work());
    until("all three are known", SOON, || {
        (daemon.api.get("/api/v1/nodes")["items"].as_array().unwrap().len() == 3).then_some(())
    });
    let warm = daemon.api.submit(vec![sleep(1)]);
    daemon.api.ended(&warm, SOON);

    let mut late: Vec<Duration> = (0..7)
        .map(|_| {
            let began = Instant::now();
            let task = daemon.api.submit(vec![sleep(300)]);
            let reply = daemon.api.get(&format!("/test/wait?task={task}&since=1&timeout=20&wait_for=all"));
            assert_eq!(reply["task"]["status"], "completed");
            began.elapsed() - Duration::from_millis(300)
        })
        .collect();
    late.sort();
    assert_eq!(daemon.api.jobs_of(&busy)[0]["state"], "running", "the serving node was busy all the time");
    assert!(late[3] < Duration::from_millis(500), "{late:?}");
    // A wake-up that was lost would cost the five seconds of the safety read.
    assert!(late[6] < Duration::from_secs(3), "{late:?}");
}

#[test]
fn two_killed_nodes_are_taken_over_by_the_third() {
    const LIMIT: usize = 9;
    let home = Home::new(Backend::Postgres).with_variable("MATSU_SLOTS_AGENT_CLI", LIMIT.to_string());
    let (mut daemon, [mut second, _third]) = three_nodes(&home);
    let tasks: Vec<String> = (0..45).map(|_| daemon.api.submit(vec![sleep(1_000)])).collect();
    until("three nodes work", SOON, || {
        let owners = stores::ask(&home.store, "SELECT DISTINCT owner_node FROM jobs WHERE state = 'running'");
        (owners.len() == 3).then_some(())
    });
    daemon.process.kill();
    second.kill();
    let killed = Instant::now();
    assert!(unfinished(&home.store) > 0);
    until("the third has done everything", TAKEN_OVER, || {
        let most = running(&home.store);
        assert!(most <= LIMIT, "{most} ran at once");
        (unfinished(&home.store) == 0).then_some(())
    });
    eprintln!("taken over and done after {:?}", killed.elapsed());

    let next = home.serve();
    for task in &tasks {
        assert_eq!(next.api.task(task)["status"], "completed");
        let job = next.api.jobs_of(task).remove(0);
        assert_eq!((&job["state"], &job["failures"]), (&json!("completed"), &json!(0)), "{job:#}");
    }
    let ends = "SELECT count(*) FROM changes WHERE kind IN ('job_finished', 'task_status')";
    assert_eq!(numbers(&home.store, ends), tasks.len(), "each ended once");
}

#[test]
fn the_smallest_limit_of_all_nodes_holds_for_each() {
    let careful = Home::new(Backend::Postgres).with_variable("MATSU_SLOTS_AGENT_CLI", "2");
    let roomy = careful.neighbour().with_variable("MATSU_SLOTS_AGENT_CLI", "50");
    let daemon = roomy.serve();
    let mut worker = careful.work();
    let limit = || {
        let slots = daemon.api.get("/api/v1/slots");
        slots["items"].as_array().unwrap().iter().find(|slot| slot["slot"] == "agent_cli").unwrap()["limit"].clone()
    };
    until("the worker has its say", SOON, || (limit() == 2).then_some(()));
    (0..20).for_each(|_| drop(daemon.api.submit(vec![sleep(300)])));
    until("all is done", SOON, || {
        assert!(running(&careful.store) <= 2, "{} ran at once", running(&careful.store));
        (unfinished(&careful.store) == 0).then_some(())
    });
    worker.signal(rustix::process::Signal::TERM);
    worker.ends_within(SOON);
    assert_eq!(limit(), 50, "its say went with it");
}
