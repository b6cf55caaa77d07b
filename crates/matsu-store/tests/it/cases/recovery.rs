//! Recovery: what becomes of the jobs of a node that died.

use matsu_core::id::JobId;
use matsu_core::job::{Job, JobEnd, JobKind, JobState};
use matsu_core::limits::DEATHS_MAX;
use matsu_core::ports::store::{
    AdoptRun, ClaimAlone, IsLoneJobWaiting, JobUpdate, LoseRun, ParkForInput, ReadLeftRuns, ReadNodes, ReadSlots,
    SetStatus, Steer, StopTask, UpdateJob,
};
use matsu_core::principal::Principal;
use matsu_core::slot::Slot;
use matsu_core::task::{StopMode, StopReason, TaskKind, TaskStatus};

use crate::harness::{TestStore, lease};

pub async fn a_dead_nodes_jobs_are_settled_by_kind(t: TestStore) {
    let research = t.research().await;
    let search = t.enqueue(&research.id, JobKind::Search).await;
    let mut agent = t.new_task(TaskKind::Agent);
    agent.jobs = vec![t.new_job(JobKind::AgentRun)];
    let agent = t.insert(agent).await;
    let dead = t.second_node().await;
    let claimed = t.store.run(t.claim_request(&dead, 5, 5)).await.unwrap().claimed;
    assert_eq!(claimed.len(), 2);
    let checkpoint = JobUpdate::Checkpoint(r#"{"stage":"fetch"}"#.to_owned());
    t.store.run(UpdateJob { lease: lease(&claimed[0]), update: checkpoint, now: t.now() }).await.unwrap();

    let mut settled = t.store.reap_node(&dead, t.now()).await.unwrap();
    settled.sort();
    assert_eq!(settled, [claimed[0].id.clone()], "the run waits to be taken over");
    let left = t.store.run(ReadLeftRuns).await.unwrap();
    assert_eq!(left.iter().map(|left| left.lease.clone()).collect::<Vec<_>>(), [lease(&claimed[1])]);
    let search = t.job(&search).await;
    assert_eq!((search.state, search.failures), (JobState::Queued, 0));
    assert_eq!(search.checkpoint_json.as_deref(), Some(r#"{"stage":"fetch"}"#), "it goes on where it was");
    let adopted = t
        .store
        .run(AdoptRun { run: left[0].lease.clone(), node: t.node.clone(), now: t.now() })
        .await
        .unwrap()
        .unwrap();
    assert_eq!(adopted.attempt, claimed[1].attempt + 1);
    assert_eq!(
        t.store.run(AdoptRun { run: left[0].lease.clone(), node: t.node.clone(), now: t.now() }).await.unwrap(),
        None,
        "by one node only"
    );
    let run = t.job(&claimed[1].id).await;
    assert_eq!((run.state, run.owner_node.as_ref()), (JobState::Running, Some(&t.node)));
    assert_eq!((t.task(&agent.id).await.status, run.failures), (TaskStatus::Running, 0));
    assert_eq!(t.task(&research.id).await.status, TaskStatus::Queued);
    let nodes: Vec<_> = t.store.run(ReadNodes).await.unwrap().into_iter().map(|node| node.id).collect();
    assert_eq!(nodes, [t.node.clone()]);
}

pub async fn reaping_twice_changes_nothing(t: TestStore) {
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    let dead = t.second_node().await;
    t.store.run(t.claim_request(&dead, 5, 5)).await.unwrap();
    assert_eq!(t.store.reap_node(&dead, t.now()).await.unwrap().len(), 1);
    let once = t.task(&task.id).await;
    assert_eq!(t.store.reap_node(&dead, t.now()).await.unwrap(), []);
    assert_eq!(t.task(&task.id).await, once);
}

pub async fn a_reaped_job_of_a_stopped_task_is_cancelled(t: TestStore) {
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    let dead = t.second_node().await;
    t.store.run(t.claim_request(&dead, 5, 5)).await.unwrap();
    let (mode, reason) = (StopMode::Graceful, StopReason::UserCancelled);
    t.store.run(StopTask { task_id: task.id.clone(), mode, reason, now: t.now() }).await.unwrap();
    t.store.reap_node(&dead, t.now()).await.unwrap();
    let after = t.task(&task.id).await;
    assert_eq!((after.status, after.counts.cancelled), (TaskStatus::Cancelled, 1));
}

pub async fn partial_output_survives_its_owner(t: TestStore) {
    let mut agent = t.new_task(TaskKind::Agent);
    agent.jobs = vec![t.new_job(JobKind::AgentRun)];
    t.insert(agent).await;
    let dead = t.second_node().await;
    let job = t.store.run(t.claim_request(&dead, 5, 5)).await.unwrap().claimed.pop().unwrap();
    let output = JobUpdate::PartialOutput("half an answer".to_owned());
    t.store.run(UpdateJob { lease: lease(&job), update: output, now: t.now() }).await.unwrap();
    t.store.reap_node(&dead, t.now()).await.unwrap();
    assert_eq!(t.job(&job.id).await.output_json.as_deref(), Some("half an answer"));
}

pub async fn slots_are_counted_over_all_nodes(t: TestStore) {
    t.agent(4).await;
    let other = t.second_node().await;
    t.store.run(t.claim_request(&t.node, 1, 9)).await.unwrap();
    let theirs = t.store.run(t.claim_request(&other, 2, 9)).await.unwrap().claimed;
    t.store.run(ParkForInput { lease: lease(&theirs[0]), question_json: "{}".to_owned(), now: t.now() }).await.unwrap();
    let slot = async || {
        t.store.run(ReadSlots).await.unwrap().into_iter().find(|slot| slot.slot == Slot::NetworkClient).unwrap()
    };
    assert_eq!((slot().await.running, slot().await.taken), (2, 2), "a job that asks a person holds no permit");
    t.store.reap_node(&other, t.now()).await.unwrap();
    assert_eq!((slot().await.running, slot().await.taken), (1, 1));
}

/// The job is claimed by a node that then dies.
async fn dies_with_its_owner(t: &TestStore, job: &JobId) {
    let owner = t.second_node().await;
    let claimed = t.store.run(t.claim_request(&owner, 9, 9)).await.unwrap().claimed;
    assert!(claimed.iter().any(|claimed| claimed.id == *job), "{claimed:?}");
    t.store.reap_node(&owner, t.now()).await.unwrap();
}

async fn claim_alone(t: &TestStore) -> Option<Job> {
    let claim = t.claim_request(&t.node, 1, 2).claim.unwrap();
    let is_waiting = t.store.run(IsLoneJobWaiting { claim: claim.clone(), now: t.now() }).await.unwrap();
    let claimed = t.store.run(ClaimAlone { claim: claim.clone(), now: t.now() }).await.unwrap();
    assert_eq!(claimed.is_some(), is_waiting);
    claimed
}

pub async fn a_job_whose_owners_died_runs_alone_and_then_fails(t: TestStore) {
    let task = t.research().await;
    let job = t.enqueue(&task.id, JobKind::Search).await;
    for _ in 0..DEATHS_MAX {
        assert_eq!(claim_alone(&t).await, None);
        dies_with_its_owner(&t, &job).await;
        assert_eq!((t.job(&job).await.state, t.job(&job).await.failures), (JobState::Queued, 0));
    }
    assert!(t.claim(5).await.is_empty(), "no other claim takes it");
    let other = t.enqueue(&task.id, JobKind::Search).await;
    assert_eq!(t.claim(5).await.iter().map(|job| job.id.clone()).collect::<Vec<_>>(), [other], "others go on");
    let lone = claim_alone(&t).await.expect("it runs alone");
    assert_eq!(
        (lone.id.clone(), lone.state, lone.owner_node.clone()),
        (job.clone(), JobState::Running, Some(t.node.clone()))
    );
    assert_eq!(claim_alone(&t).await, None, "once");
    let slots = t.store.run(ReadSlots).await.unwrap();
    assert_eq!(slots.iter().map(|slot| slot.taken).sum::<u32>(), 2, "it has a permit");
    t.store.reap_node(&t.node, t.now()).await.unwrap();
    let failed = t.job(&job).await;
    assert_eq!((failed.state, failed.error_code.as_deref()), (JobState::Failed, Some("JOB_KILLED_ITS_WORKER")));
    assert!(failed.error_message.unwrap().contains("4 times"));
    assert_eq!(t.store.run(ReadSlots).await.unwrap().iter().map(|slot| slot.taken).sum::<u32>(), 0);
}

pub async fn a_job_that_survives_alone_is_like_any_other(t: TestStore) {
    let task = t.research().await;
    let job = t.enqueue(&task.id, JobKind::Search).await;
    for _ in 0..DEATHS_MAX {
        dies_with_its_owner(&t, &job).await;
    }
    let lone = claim_alone(&t).await.expect("it runs alone");
    let end = JobEnd::Completed { output_json: "{}".to_owned() };
    assert_eq!(t.finish(&lease(&lone), end).await.unwrap(), JobState::Completed);
    assert_eq!(t.store.run(ReadSlots).await.unwrap().iter().map(|slot| slot.taken).sum::<u32>(), 0);
}

pub async fn a_new_checkpoint_ends_the_row_of_deaths(t: TestStore) {
    let task = t.research().await;
    let job = t.enqueue(&task.id, JobKind::Search).await;
    for _ in 0..DEATHS_MAX {
        for _ in 1..DEATHS_MAX {
            dies_with_its_owner(&t, &job).await;
        }
        let running = t.claim_one().await;
        t.store
            .run(UpdateJob { lease: lease(&running), update: JobUpdate::Checkpoint("{}".to_owned()), now: t.now() })
            .await
            .unwrap();
        // A shutdown is no death.
        t.finish(&lease(&running), JobEnd::OwnerLost).await.unwrap();
    }
    assert_eq!(claim_alone(&t).await, None);
    assert_eq!(t.claim_one().await.id, job);
}

pub async fn a_lone_job_waits_with_its_task(t: TestStore) {
    let task = t.research().await;
    let job = t.enqueue(&task.id, JobKind::Search).await;
    for _ in 0..DEATHS_MAX {
        dies_with_its_owner(&t, &job).await;
    }
    let by = Principal::local_user();
    let steer = |to| SetStatus { task_id: task.id.clone(), to, by: by.clone(), message: None, now: t.now() };
    t.store.run(steer(Steer::Pause)).await.unwrap();
    assert_eq!(claim_alone(&t).await, None);
    t.store.run(steer(Steer::Resume)).await.unwrap();
    assert!(t.claim(5).await.is_empty(), "it still must run alone");
    assert_eq!(claim_alone(&t).await.map(|lone| lone.id), Some(job));
}

pub async fn an_agent_of_a_chat_is_left_and_called_again_if_its_host_stays_away(t: TestStore) {
    let mut chat = t.new_task(TaskKind::Agent);
    chat.jobs = vec![t.new_job(JobKind::AgentChat)];
    let job = chat.jobs[0].id.clone();
    t.insert(chat).await;
    for _ in 0..=DEATHS_MAX {
        dies_with_its_owner(&t, &job).await;
        assert_eq!(t.job(&job).await.state, JobState::Running, "its program works on");
        let left = t.store.run(ReadLeftRuns).await.unwrap().remove(0);
        assert!(
            t.store.run(LoseRun { run: left.lease.clone(), message: "gone".to_owned(), now: t.now() }).await.unwrap()
        );
        assert_eq!(t.job(&job).await.state, JobState::Queued);
    }
    assert_eq!(claim_alone(&t).await, None, "a death of its owner is not counted");
}
