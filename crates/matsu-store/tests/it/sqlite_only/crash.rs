//! `kill -9` in the middle of writing: what was acknowledged is there, and what is there is consistent.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};

use matsu_core::id::{JobId, TaskId};
use matsu_core::job::JobState;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{JobFilter, ListJobs};
use matsu_core::task::JobCounts;

use super::{child, fresh, url};
use crate::harness::TestStore;

/// What the child printed before it died.
#[derive(Default)]
struct ChildReport {
    /// One for each time it was started. It may go on with jobs of an earlier one.
    tasks: Vec<TaskId>,
    queued: HashSet<JobId>,
    completed: HashSet<JobId>,
    started: HashSet<(JobId, i64)>,
}

/// Lets the child write until it has printed `lines` lines, then kills it and reads what was still in the pipe.
fn write_and_kill(path: &std::path::Path, lines: usize, said: &mut ChildReport) {
    let mut child = child::command("write", path).spawn().unwrap();
    let mut printed = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            // The test harness may have begun this line with words of its own.
            [.., "task", id] => said.tasks.push(TaskId::from_text(*id)),
            ["queued", id] => drop(said.queued.insert(JobId::from_text(*id))),
            ["started", id, attempt] => {
                assert!(said.started.insert((JobId::from_text(*id), attempt.parse().unwrap())), "started twice");
            }
            ["completed", id] => assert!(said.completed.insert(JobId::from_text(*id)), "completed twice"),
            _ => continue,
        }
        printed += 1;
        if printed == lines {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(printed >= lines, "the child ended by itself after {printed} of {lines} lines");
}

#[tokio::test]
async fn every_acknowledged_write_survives_being_killed() {
    let (_folder, path) = fresh();
    let mut said = ChildReport::default();
    for round in 0..6 {
        // Now at the first write, now in the middle of hundreds.
        write_and_kill(&path, 1 + round * 97, &mut said);
        let test = TestStore::open_at(&url(&path)).await;
        test.register(&test.node).await;
        let running = check(&test, &said).await;

        let dead = test.store.dead_nodes(&test.node).await.unwrap();
        assert_eq!(dead.len(), 1, "the one that was killed, in round {round}");
        let settled = test.store.reap_node(&dead[0], test.now()).await.unwrap();
        assert_eq!(i64::try_from(settled.len()).unwrap(), running);
        assert_eq!(check(&test, &said).await, 0, "nothing stays running without an owner");
        let node = test.node.clone();
        // A clean end: this node must not count as killed in the next round.
        test.store.reap_node(&node, test.now()).await.unwrap();
    }
}

/// Compares what was printed with what is stored, and the counts with the rows. Returns how many jobs run.
async fn check(test: &TestStore, said: &ChildReport) -> i64 {
    let mut counts: HashMap<TaskId, JobCounts> = HashMap::new();
    let mut stored = HashSet::new();
    let mut completed = HashSet::new();
    let mut after = None;
    loop {
        let page = test
            .store
            .run(ListJobs { filter: JobFilter::default(), page: PageRequest::new(after, Some(200)) })
            .await
            .unwrap();
        for job in page.items {
            counts.entry(job.task_id.unwrap()).or_default().add(job.state, 1);
            if job.state == JobState::Completed {
                completed.insert(job.id.clone());
            }
            stored.insert(job.id);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert!(said.queued.is_subset(&stored), "an acknowledged job is lost");
    assert!(said.completed.is_subset(&completed), "an acknowledged completion is lost");
    let mut running = 0;
    for task in &said.tasks {
        let rows = counts.remove(task).unwrap_or_default();
        assert_eq!(test.task(task).await.counts, rows, "counts and rows agree");
        running += rows.running;
    }
    assert!(counts.is_empty(), "every job belongs to a task that it has printed");
    running
}
