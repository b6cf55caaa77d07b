//! Three servers on one PostgreSQL, and a page that watches one of them while the two others die at work.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use super::dice;
use super::kill::wide_home;
use crate::api::{sleep, until};
use crate::events::Events;
use crate::home::{Backend, Home};
use crate::stores;

const TASKS: usize = 120;
const SOON: Duration = Duration::from_secs(15);
const TAKEN_OVER: Duration = Duration::from_secs(90);

#[test]
fn a_page_sees_everything_end_although_two_of_three_servers_die() {
    let Some(mut dice) = dice("two of three servers behind a page") else { return };
    let home = wide_home(Home::new(Backend::Postgres));
    let neighbours = [home.neighbour(), home.neighbour()];
    let watched = home.serve();
    let mut others = [0, 1].map(|n: usize| neighbours[n].serve());
    until("all three are known", SOON, || {
        (watched.api.get("/api/v1/nodes")["items"].as_array().unwrap().len() == 3).then_some(())
    });
    let key = format!("Authorization: Bearer {}", watched.api.token);
    let mut page = Events::open(&watched.api, "/api/v1/events", &[&key]);
    // Each server is asked, so each has work of its own to lose.
    let apis = [&watched.api, &others[0].api, &others[1].api];
    let tasks: Vec<String> =
        (0..TASKS).map(|n| apis[n % 3].submit(vec![sleep(300 + dice.below(2_000)), sleep(dice.below(500))])).collect();
    until("all three work", SOON, || {
        let owners = stores::ask(&home.store, "SELECT DISTINCT owner_node FROM jobs WHERE state = 'running'");
        (owners.len() == 3).then_some(())
    });
    for other in &mut others {
        other.process.kill();
    }
    let killed = Instant::now();
    let open = stores::ask(&home.store, "SELECT count(*) FROM tasks WHERE finished_at IS NULL")[0].clone();

    let mut ends = BTreeSet::new();
    while ends.len() < TASKS {
        assert!(killed.elapsed() < TAKEN_OVER, "only {} of {TASKS} ended", ends.len());
        let event = page.next().expect("the stream of the server that lives goes on");
        if event.name != "task" || event.data["status"] != "completed" {
            continue;
        }
        ends.insert(event.data["task_id"].as_str().unwrap().to_owned());
    }
    println!(
        "{open} of {TASKS} tasks were open when two servers died; the page saw the last end after {:?}",
        killed.elapsed()
    );
    for task in &tasks {
        assert!(ends.contains(task), "{task} never ended on the page");
        for job in watched.api.jobs_of(task) {
            assert_eq!((&job["state"], &job["failures"]), (&json!("completed"), &json!(0)), "{job:#}");
        }
    }
}
