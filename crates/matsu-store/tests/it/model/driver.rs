//! Makes each step a call of the store, and compares its answer with the model's.

use std::time::Duration;

use matsu_core::id::{JobId, NodeId};
use matsu_core::job::{JobKind, JobState, Lease, NewJob};
use matsu_core::ports::store::{
    Claim, ClaimAlone, Enqueue, EnqueuedJob, Finish, FinishAndClaim, IsLoneJobWaiting, JobUpdate, MovePermit,
    ParkForInput, PermitStep, RequeueParked, ResumeFromInput, SetStatus, Steer, StopTask, StoreError, UpdateJob,
};
use matsu_core::principal::Principal;
use matsu_core::slot::Slot;
use matsu_core::task::{StopMode, StopReason, TaskKind, TaskStatus};

use super::compare::{Seen, same};
use super::operations::{ClaimSpec, End, JobSpec, Step};
use super::world::{ModelJob, ModelTask, Permit, World, permits_max};
use crate::harness::TestStore;

pub struct Driver {
    test: TestStore,
    world: World,
    nodes: [NodeId; 2],
    seen: Seen,
}

type Checked = Result<(), String>;

/// An answer, reduced to what can be compared.
fn code<T>(answer: Result<T, StoreError>) -> Result<T, matsu_core::error_code::ErrorCode> {
    answer.map_err(|error| error.code())
}

fn lost<T>(answer: Result<T, StoreError>) -> Result<Option<T>, String> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::LeaseLost(_)) => Ok(None),
        Err(other) => Err(other.to_string()),
    }
}

impl Driver {
    pub async fn new(test: TestStore) -> Self {
        let nodes = [test.node.clone(), test.second_node().await];
        Self { test, world: World::default(), nodes, seen: Seen::default() }
    }

    pub async fn step(&mut self, step: &Step) -> Checked {
        match step {
            Step::InsertTask { kind, parent, jobs } => self.insert_task(*kind, *parent, jobs).await?,
            Step::Enqueue { task, jobs, owner_returns } => self.enqueue(*task, jobs, *owner_returns).await?,
            Step::FinishAndClaim { finishes, claim } => self.finish_and_claim(finishes, claim.as_ref()).await?,
            Step::RequeueParked { first, count } => self.requeue(*first, *count).await?,
            Step::Stop { task, mode, reason } => self.stop(*task, *mode, *reason).await?,
            Step::Steer { task, to, by_owner } => self.steer(*task, *to, *by_owner).await?,
            Step::ReapNode { node } => self.reap(*node).await?,
            Step::ClaimAlone { node, slot } => self.claim_alone(*node, *slot).await?,
            Step::Pass { ms } => drop(self.test.pass(Duration::from_millis(*ms))),
            Step::Update { lease }
            | Step::Park { lease }
            | Step::Resume { lease }
            | Step::Lend { lease }
            | Step::Regain { lease } => {
                if let Some(lease) = pick(&self.world.leases, *lease).cloned() {
                    self.with_lease(step, &lease).await?;
                }
            }
        }
        self.world.refresh();
        self.seen.compare(&self.test, &self.world).await
    }

    fn new_jobs(&self, task: Option<usize>, specs: &[JobSpec]) -> (Vec<NewJob>, Vec<ModelJob>) {
        let now = self.test.now();
        let both = specs.iter().map(|spec| {
            let new = NewJob {
                id: JobId::mint(now),
                kind: spec.kind,
                priority: spec.priority,
                slot: spec.slot,
                input_json: "{}".to_owned(),
                cause_id: None,
                run_at: now.plus(Duration::from_millis(spec.delay_ms)),
                dedupe_key: spec.dedupe.map(|key| key.to_string()),
            };
            let model = ModelJob {
                id: new.id.clone(),
                task,
                kind: new.kind,
                priority: new.priority,
                slot: new.slot,
                state: JobState::Queued,
                queued_at: now,
                run_at: new.run_at,
                attempt: 0,
                failures: 0,
                deaths: 0,
                owner: None,
                dedupe: new.dedupe_key.clone(),
                permit: Permit::None,
            };
            (new, model)
        });
        both.unzip()
    }

    async fn insert_task(&mut self, kind: TaskKind, parent: Option<usize>, jobs: &[JobSpec]) -> Checked {
        let parent = parent.and_then(|parent| pick_index(&self.world.tasks, parent));
        // The first jobs are stored as they are given.
        let jobs: Vec<JobSpec> = jobs.iter().map(|job| JobSpec { dedupe: None, ..job.clone() }).collect();
        let (new_jobs, model_jobs) = self.new_jobs(Some(self.world.tasks.len()), &jobs);
        let mut task = self.test.new_task(kind);
        task.parent_id = parent.map(|parent| self.world.tasks[parent].id.clone());
        task.jobs = if kind == TaskKind::Wait { Vec::new() } else { new_jobs };
        let id = task.id.clone();
        let stored = code(self.test.store.run(task).await).map(|inserted| inserted.task.depth);
        let expected = parent.map_or(Ok(0), |parent| self.world.depth_below(parent));
        same("depth", stored, expected)?;
        if let Ok(depth) = expected {
            let (status, held_by, stop) = (TaskStatus::Queued, None, None);
            self.world.tasks.push(ModelTask { id, kind, parent, depth, status, held_by, stop });
            if kind != TaskKind::Wait {
                self.world.jobs.extend(model_jobs);
            }
        }
        Ok(())
    }

    async fn enqueue(&mut self, task: Option<usize>, jobs: &[JobSpec], owner_returns: bool) -> Checked {
        let task = match task {
            None => None,
            Some(task) => match pick_index(&self.world.tasks, task) {
                None => return Ok(()),
                // A wait has no jobs.
                Some(task) if self.world.tasks[task].kind == TaskKind::Wait => return Ok(()),
                found => found,
            },
        };
        let (jobs, model_jobs) = self.new_jobs(task, jobs);
        let fresh: Vec<JobId> = jobs.iter().map(|job| job.id.clone()).collect();
        let resume_for = owner_returns.then(Principal::local_user);
        let task_id = task.map(|task| self.world.tasks[task].id.clone());
        let request = Enqueue { task_id, jobs, resume_for: resume_for.clone(), now: self.test.now() };
        let stored = code(self.test.store.run(request).await).map(|enqueued| enqueued.jobs);
        let expected = self.world.enqueue(task, model_jobs, resume_for.as_ref()).map(|doubles| {
            let answers = fresh.into_iter().zip(doubles).map(|(id, double)| match double {
                None => EnqueuedJob::Queued(id),
                Some(known) => EnqueuedJob::Duplicate(known.id),
            });
            answers.collect::<Vec<_>>()
        });
        same("enqueued", stored, expected)
    }

    async fn finish_and_claim(&mut self, finishes: &[(usize, End)], claim: Option<&ClaimSpec>) -> Checked {
        let now = self.test.now();
        let picked: Vec<(Lease, End)> = finishes
            .iter()
            .filter_map(|(lease, end)| Some((pick(&self.world.leases, *lease)?.clone(), *end)))
            .collect();
        let request = FinishAndClaim {
            finishes: picked
                .iter()
                .map(|(lease, end)| Finish { lease: lease.clone(), end: end.as_job_end(now) })
                .collect(),
            claim: claim.map(|claim| Claim {
                node: self.nodes[claim.node].clone(),
                slot: claim.slot,
                kinds: JobKind::ALL.to_vec(),
                jobs_max: claim.jobs_max,
                permits_max: permits_max(claim.slot),
                wakes_due: true,
            }),
            now,
        };
        let outcome = self.test.store.run(request).await.map_err(|error| error.to_string())?;

        let mut ended = Vec::new();
        for (lease, end) in picked {
            let at = self.world.held(&lease);
            ended.push(at.map(|at| self.world.settle(at, end, now)));
        }
        self.world.refresh();
        let finished: Vec<Option<JobState>> = outcome.finished.into_iter().map(Result::ok).collect();
        same("finished", finished, ended)?;
        let Some(claim) = claim else { return same("claimed", outcome.claimed.len(), 0) };
        // A job that an end puts back can be claimed in the same call.
        let wanted = self.world.ready(claim.slot, now).len().min(claim.jobs_max as usize);
        let node = self.nodes[claim.node].clone();
        let started = self.world.claim(&node, claim.slot, wanted, now);
        let expected: Vec<JobId> = started.iter().map(|at| self.world.jobs[*at].id.clone()).collect();
        same("claimed", crate::harness::ids(&outcome.claimed), expected)?;
        if claim.jobs_max == 0 {
            // A claim that wants nothing has nothing to look for again.
            return Ok(());
        }
        let contested = (wanted > 0 && started.is_empty()).then(|| now.plus(Duration::from_millis(100)));
        let next = self.world.next_delayed(claim.slot, now).into_iter().chain(contested).min();
        same("look again at", outcome.next_run_at, if started.len() < claim.jobs_max as usize { next } else { None })
    }

    async fn with_lease(&mut self, step: &Step, lease: &Lease) -> Checked {
        let (store, now) = (&self.test.store, self.test.now());
        match step {
            Step::Update { .. } => {
                let held = self.world.held(lease).map(drop);
                let update = JobUpdate::Progress("{}".to_owned());
                same("progress", lost(store.run(UpdateJob { lease: lease.clone(), update, now }).await)?, held)?;
                let update = JobUpdate::Checkpoint("{}".to_owned());
                same("checkpoint", lost(store.run(UpdateJob { lease: lease.clone(), update, now }).await)?, held)?;
                if let Some(at) = self.world.held(lease) {
                    self.world.jobs[at].deaths = 0;
                }
                Ok(())
            }
            Step::Park { .. } => same(
                "park",
                lost(store.run(ParkForInput { lease: lease.clone(), question_json: "{}".to_owned(), now }).await)?,
                self.world.park(lease),
            ),
            Step::Resume { .. } => {
                let slot = self.world.jobs.iter().find(|job| job.id == lease.job_id).map(|job| job.slot);
                let permits = permits_max(slot.expect("a lease names a job"));
                let stored =
                    lost(store.run(ResumeFromInput { lease: lease.clone(), permits_max: permits, now }).await)?;
                same("resume", stored, self.world.resume(lease))
            }
            Step::Lend { .. } => same(
                "lend",
                lost(store.run(MovePermit { lease: lease.clone(), step: PermitStep::Lend }).await)?,
                self.world.lend(lease),
            ),
            _ => {
                let slot = self.world.jobs.iter().find(|job| job.id == lease.job_id).map(|job| job.slot);
                let permits = permits_max(slot.expect("a lease names a job"));
                same(
                    "regain",
                    lost(
                        store
                            .run(MovePermit { lease: lease.clone(), step: PermitStep::Regain { permits_max: permits } })
                            .await,
                    )?,
                    self.world.regain(lease),
                )
            }
        }
    }

    async fn requeue(&mut self, first: usize, count: usize) -> Checked {
        let jobs: Vec<usize> = (0..self.world.jobs.len()).skip(first).take(count).collect();
        let ids: Vec<JobId> = jobs.iter().map(|at| self.world.jobs[*at].id.clone()).collect();
        let now = self.test.now();
        let stored = self.test.store.run(RequeueParked { jobs: ids.clone(), now }).await.unwrap();
        let moved = self.world.requeue(&jobs, now);
        let mut expected: Vec<JobId> = moved.into_iter().map(|at| self.world.jobs[at].id.clone()).collect();
        expected.sort();
        same("requeued", stored, expected)
    }

    async fn stop(&mut self, task: usize, mode: StopMode, reason: StopReason) -> Checked {
        let Some(task) = pick_index(&self.world.tasks, task) else { return Ok(()) };
        let request = StopTask { task_id: self.world.tasks[task].id.clone(), mode, reason, now: self.test.now() };
        let stopped = self.test.store.run(request).await.map_err(|error| error.to_string())?;
        let cancelled = (!stopped.was_terminal).then_some((stopped.cancelled_queued, stopped.cancelled_running));
        same("cancelled", cancelled, self.world.stop(task, mode, reason))
    }

    async fn steer(&mut self, task: usize, to: Steer, by_owner: bool) -> Checked {
        let Some(task) = pick_index(&self.world.tasks, task) else { return Ok(()) };
        let by = if by_owner { Principal::local_user() } else { Principal::user("a person") };
        let (task_id, now) = (self.world.tasks[task].id.clone(), self.test.now());
        let request = SetStatus { task_id, to, by: by.clone(), message: None, now };
        let stored = code(self.test.store.run(request).await).map(drop);
        same("steered", stored, self.world.steer(task, to, &by))
    }

    async fn claim_alone(&mut self, node: usize, slot: Slot) -> Checked {
        let (node, now) = (self.nodes[node].clone(), self.test.now());
        let mut claim = self.test.claim_request(&node, 1, permits_max(slot)).claim.expect("a claim");
        claim.slot = slot;
        let expected = self.world.lone(slot, now);
        let waiting = self
            .test
            .store
            .run(IsLoneJobWaiting { claim: claim.clone(), now })
            .await
            .map_err(|error| error.to_string())?;
        same("waits to run alone", waiting, expected.is_some())?;
        let started =
            self.test.store.run(ClaimAlone { claim: claim.clone(), now }).await.map_err(|error| error.to_string())?;
        same("runs alone", started.map(|job| job.id), expected.map(|at| self.world.jobs[at].id.clone()))?;
        if let Some(at) = expected {
            let job = &mut self.world.jobs[at];
            (job.state, job.owner, job.permit) = (JobState::Running, Some(node), Permit::Extra);
            job.attempt += 1;
            let lease = Lease { job_id: job.id.clone(), attempt: job.attempt };
            self.world.leases.push(lease);
        }
        Ok(())
    }

    async fn reap(&mut self, node: usize) -> Checked {
        let now = self.test.now();
        let stored = self.test.store.reap_node(&self.nodes[node], now).await.unwrap();
        let settled = self.world.reap(&self.nodes[node], now);
        let mut expected: Vec<JobId> = settled.into_iter().map(|at| self.world.jobs[at].id.clone()).collect();
        expected.sort();
        same("reaped", stored, expected)?;
        self.nodes[node] = self.test.second_node().await;
        Ok(())
    }
}

fn pick<T>(items: &[T], wish: usize) -> Option<&T> {
    // From the end: what is new is what steps meet on.
    items.len().checked_sub(1).map(|last| &items[last - wish % items.len()])
}

fn pick_index<T>(items: &[T], wish: usize) -> Option<usize> {
    items.len().checked_sub(1).map(|last| last - wish % items.len())
}
