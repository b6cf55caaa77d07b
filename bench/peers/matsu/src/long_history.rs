//! A store with a long past, and what one claim and one status read cost beside it.
//!
//! A hundred jobs are really run; the rest of the past is their rows, copied by SQL with earlier ids, so that a
//! million jobs take seconds and every index is as full as it would be.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bench_peer::{Durability, Sample};
use matsu_core::id::{NodeId, TaskId};
use matsu_core::job::{JobEnd, JobKind, Lease};
use matsu_core::node::NodeRole;
use matsu_core::ports::store::{Claim, Finish, FinishAndClaim, NewNode};
use matsu_core::task::TaskKind;
use rusqlite::{Connection, params};

use crate::queue_runtime::{JOBS_PER_CALL, QueueRuntime, SLOT};
use matsu_runtime::worker::Service;

/// Ids begin with their time, so those of the past sort before all that are made now.
const PAST: &str = "0";

/// So that the log of the largest past does not grow to its size.
const COPIES_PER_COMMIT: usize = 1_000;

/// Returns how many tasks of a hundred jobs were copied.
pub async fn fill(
    url: &str,
    path: &str,
    durability: Durability,
    payload_bytes: usize,
    finished: usize,
) -> Result<usize> {
    let queue_runtime = QueueRuntime::open(url, durability, payload_bytes, 2).await?;
    let template = queue_runtime.submit(TaskKind::Agent, queue_runtime.jobs(JOBS_PER_CALL)).await?;
    let service = Service::start(&queue_runtime.runtime);
    queue_runtime.wait_for_all(vec![template.clone()]).await?;
    service.stop().await;
    drop(queue_runtime);
    // The writer closes its file on a thread of its own.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let path = path.to_owned();
    let copies = (finished / JOBS_PER_CALL).max(2) - 1;
    tokio::task::spawn_blocking(move || copy(&path, &template, copies)).await??;
    Ok(copies)
}

fn copy(path: &str, template: &TaskId, copies: usize) -> Result<()> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;")?;
    let id = template.as_str();
    let found = [("tasks", "id = ?1"), ("jobs", "task_id = ?1"), ("changes", "topic = 'task/' || ?1")];
    for (table, found_by) in found {
        let sql = format!("CREATE TEMP TABLE of_{table} AS SELECT * FROM {table} WHERE {found_by}");
        connection.execute(&sql, [id])?;
    }
    let mut number = 0;
    while number < copies {
        let transaction = connection.transaction()?;
        {
            let mut task = transaction.prepare(&copying(&transaction, "tasks", &[("id", "?1")])?)?;
            let job = [("id", "'j_' || ?2 || substr(id, 4)"), ("task_id", "?1")];
            let mut jobs = transaction.prepare(&copying(&transaction, "jobs", &job)?)?;
            let mut changes = transaction.prepare(&copying(&transaction, "changes", &[("topic", "'task/' || ?1")])?)?;
            for number in number..copies.min(number + COPIES_PER_COMMIT) {
                let (id, past) = (past_task(number), format!("{PAST}{number:08}"));
                task.execute(params![id])?;
                jobs.execute(params![id, past])?;
                changes.execute(params![id])?;
            }
        }
        transaction.commit()?;
        number += COPIES_PER_COMMIT;
    }
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

/// An insertion of the rows that were set aside, in the table's own columns, with some of them replaced.
fn copying(connection: &Connection, table: &str, replaced: &[(&str, &str)]) -> Result<String> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1) WHERE name <> 'seq'")?;
    let names: Vec<String> = statement.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let values: Vec<&str> = names
        .iter()
        .map(|name| replaced.iter().find(|(column, _)| column == name).map_or(name.as_str(), |(_, value)| *value))
        .collect();
    Ok(format!("INSERT INTO {table} ({}) SELECT {} FROM of_{table}", names.join(", "), values.join(", ")))
}

fn past_task(number: usize) -> String {
    format!("task_{PAST}{number:025}")
}

/// One job claimed and settled at a time, as a dispatcher would, and one look after each: at its task, or an old one.
pub async fn sample(queue_runtime: &QueueRuntime, past: usize, samples: usize) -> Result<Sample> {
    let clock = *queue_runtime.runtime.clock();
    let node = NodeId::mint(clock.now());
    let new = NewNode {
        id: node.clone(),
        role: NodeRole::Serve,
        host: String::new(),
        pid: std::process::id(),
        version: String::new(),
        started_at: clock.now(),
        limits: None,
    };
    queue_runtime.store().register_node(new).await?;
    let mut left = samples;
    while left > 0 {
        let batch = left.min(JOBS_PER_CALL);
        queue_runtime.submit(TaskKind::Agent, queue_runtime.jobs(batch)).await?;
        left -= batch;
    }
    let mut sample = Sample { count: samples, ..Sample::default() };
    for step in 0..samples {
        let (kinds, node) = (vec![JobKind::Noop], node.clone());
        let claim = Claim { node, slot: SLOT, kinds, jobs_max: 1, permits_max: 2, wakes_due: true };
        let request = FinishAndClaim { finishes: Vec::new(), claim: Some(claim), now: clock.now() };
        let started = Instant::now();
        let claimed = queue_runtime.store().run(request).await?.claimed;
        sample.latencies_ns.push(started.elapsed().as_nanos() as u64);
        let job = claimed.into_iter().next().context("the queue ran dry")?;
        let own = job.task_id.context("a job of no task")?;
        let lease = Lease { job_id: job.id, attempt: job.attempt };
        let finish = Finish { lease, end: JobEnd::Completed { output_json: "{}".to_owned() } };
        let request = FinishAndClaim { finishes: vec![finish], claim: None, now: clock.now() };
        queue_runtime.store().run(request).await?;
        let (id, times) = if step % 2 == 0 {
            (own, &mut sample.status_ns)
        } else {
            (TaskId::from_text(past_task(step * 7919 % past)), &mut sample.old_status_ns)
        };
        let started = Instant::now();
        queue_runtime.status(&id).await?;
        times.push(started.elapsed().as_nanos() as u64);
    }
    Ok(sample)
}
