//! The store beside the model, after every step.

use std::collections::HashMap;

use matsu_core::id::TaskId;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{JobFilter, ListJobs, ReadTasks};
use matsu_core::task::Task;

use super::world::World;
use crate::harness::TestStore;

/// `Err` says where they differ.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, store: T, model: T) -> Result<(), String> {
    if store == model { Ok(()) } else { Err(format!("{what}: the store says {store:?}, the model {model:?}")) }
}

/// What was seen of each task last, to watch its revision grow.
#[derive(Default)]
pub struct Seen(HashMap<TaskId, Task>);

impl Seen {
    pub async fn compare(&mut self, test: &TestStore, world: &World) -> Result<(), String> {
        jobs(test, world).await?;
        let ids: Vec<TaskId> = world.tasks.iter().map(|task| task.id.clone()).collect();
        let stored = test.store.run(ReadTasks(ids.clone())).await.unwrap();
        same("number of tasks", stored.len(), ids.len())?;
        for task in stored {
            let at = world.tasks.iter().position(|model| model.id == task.id).unwrap();
            let model = &world.tasks[at];
            same("status", task.status, model.status)?;
            same("counts", task.counts, world.counts(at))?;
            same("stop", task.stop.map(|stop| (stop.mode, stop.reason)), model.stop)?;
            same("held by", task.held_by.as_ref(), model.held_by.as_ref())?;
            same("has an end", task.finished_at.is_some(), model.status.is_terminal())?;
            self.revision(task)?;
        }
        Ok(())
    }

    fn revision(&mut self, task: Task) -> Result<(), String> {
        if task.finished_revision > task.revision || task.attention_revision > task.revision {
            return Err(format!("a revision lies ahead: {task:?}"));
        }
        let Some(before) = self.0.insert(task.id.clone(), task.clone()) else { return Ok(()) };
        let visible = (before.status, before.counts, before.stop) != (task.status, task.counts, task.stop);
        match task.revision - before.revision {
            0 if !visible => same("what an unmoved revision shows", &before, &task),
            1 => Ok(()),
            step => Err(format!("the revision moved by {step}, visible change: {visible}")),
        }
    }
}

async fn jobs(test: &TestStore, world: &World) -> Result<(), String> {
    let mut stored = Vec::new();
    let mut after = None;
    loop {
        let page = test
            .store
            .run(ListJobs { filter: JobFilter::default(), page: PageRequest::new(after, Some(200)) })
            .await
            .unwrap();
        stored.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    same("number of jobs", stored.len(), world.jobs.len())?;
    for (job, model) in stored.iter().zip(&world.jobs) {
        same("insertion order", &job.id, &model.id)?;
        let what = |field: &str| format!("{field} of {}", job.id);
        same(&what("state"), job.state, model.state)?;
        same(&what("attempt"), job.attempt, model.attempt)?;
        same(&what("failures"), job.failures, model.failures)?;
        same(&what("holder"), job.owner_node.as_ref(), model.owner.as_ref())?;
        same(&what("run_at"), job.run_at, model.run_at)?;
        same(&what("has an end"), job.finished_at.is_some(), model.state.is_finished())?;
    }
    Ok(())
}
