//! Recovery: what becomes of the jobs of a node that died.

use matsu_core::job::{JobKind, JobState};
use matsu_core::ports::store::{JobUpdate, StopTask};
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
    let claimed = t.store.finish_and_claim(t.claim_request(&dead, 5, 5)).await.unwrap().claimed;
    assert_eq!(claimed.len(), 2);
    let checkpoint = JobUpdate::Checkpoint(r#"{"stage":"fetch"}"#.to_owned());
    t.store.update_job(&lease(&claimed[0]), checkpoint, t.now()).await.unwrap();

    let mut settled = t.store.reap_node(&dead, t.now()).await.unwrap();
    settled.sort();
    let mut expected = vec![claimed[0].id.clone(), claimed[1].id.clone()];
    expected.sort();
    assert_eq!(settled, expected);
    let search = t.job(&search).await;
    assert_eq!((search.state, search.failures), (JobState::Queued, 0));
    assert_eq!(search.checkpoint_json.as_deref(), Some(r#"{"stage":"fetch"}"#), "it goes on where it was");
    let run = t.job(&claimed[1].id).await;
    assert_eq!((run.state, run.error_code.as_deref()), (JobState::Failed, Some("SERVER_RESTARTED")));
    assert_eq!(run.error_message.as_deref(), Some("Server restarted"));
    assert_eq!(t.task(&agent.id).await.status, TaskStatus::Failed);
    assert_eq!(t.task(&research.id).await.status, TaskStatus::Queued);
    let nodes: Vec<_> = t.store.nodes().await.unwrap().into_iter().map(|node| node.id).collect();
    assert_eq!(nodes, [t.node.clone()]);
}

pub async fn reaping_twice_changes_nothing(t: TestStore) {
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    let dead = t.second_node().await;
    t.store.finish_and_claim(t.claim_request(&dead, 5, 5)).await.unwrap();
    assert_eq!(t.store.reap_node(&dead, t.now()).await.unwrap().len(), 1);
    let once = t.task(&task.id).await;
    assert_eq!(t.store.reap_node(&dead, t.now()).await.unwrap(), []);
    assert_eq!(t.task(&task.id).await, once);
}

pub async fn a_reaped_job_of_a_stopped_task_is_cancelled(t: TestStore) {
    let task = t.research().await;
    t.enqueue(&task.id, JobKind::Search).await;
    let dead = t.second_node().await;
    t.store.finish_and_claim(t.claim_request(&dead, 5, 5)).await.unwrap();
    let (mode, reason) = (StopMode::Graceful, StopReason::UserCancelled);
    t.store.stop_task(StopTask { task_id: task.id.clone(), mode, reason, now: t.now() }).await.unwrap();
    t.store.reap_node(&dead, t.now()).await.unwrap();
    let after = t.task(&task.id).await;
    assert_eq!((after.status, after.counts.cancelled), (TaskStatus::Cancelled, 1));
}

pub async fn partial_output_survives_its_owner(t: TestStore) {
    let mut agent = t.new_task(TaskKind::Agent);
    agent.jobs = vec![t.new_job(JobKind::AgentRun)];
    t.insert(agent).await;
    let dead = t.second_node().await;
    let job = t.store.finish_and_claim(t.claim_request(&dead, 5, 5)).await.unwrap().claimed.pop().unwrap();
    let output = JobUpdate::PartialOutput("half an answer".to_owned());
    t.store.update_job(&lease(&job), output, t.now()).await.unwrap();
    t.store.reap_node(&dead, t.now()).await.unwrap();
    assert_eq!(t.job(&job.id).await.output_json.as_deref(), Some("half an answer"));
}

pub async fn slots_are_counted_over_all_nodes(t: TestStore) {
    t.agent(4).await;
    let other = t.second_node().await;
    t.store.finish_and_claim(t.claim_request(&t.node, 1, 9)).await.unwrap();
    let theirs = t.store.finish_and_claim(t.claim_request(&other, 2, 9)).await.unwrap().claimed;
    t.store.park_for_input(&lease(&theirs[0]), "{}", t.now()).await.unwrap();
    let slot =
        async || t.store.slots().await.unwrap().into_iter().find(|slot| slot.slot == Slot::NetworkClient).unwrap();
    assert_eq!((slot().await.running, slot().await.taken), (2, 2), "who asks a person holds no permit");
    t.store.reap_node(&other, t.now()).await.unwrap();
    assert_eq!((slot().await.running, slot().await.taken), (1, 1));
}
