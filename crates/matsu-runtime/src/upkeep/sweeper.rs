//! Removes what has outlived its time, a bounded number of rows at once.

use matsu_core::limits::{CHANGES_KEPT, IDEMPOTENCY_KEPT, LIST_PAGE_MAX, NATIVE_WAIT_MAX, SWEEP_EVERY, SWEEP_ROWS_MAX};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{StopTask, StoreError, TaskFilter};
use matsu_core::task::{StopMode, StopReason, TaskKind, TaskStatus};

use crate::runtime::Runtime;

use super::outage::Outage;

pub async fn run(runtime: &Runtime) {
    let mut outage = Outage::new("sweeper");
    loop {
        runtime.clock().sleep(SWEEP_EVERY).await;
        // The next sweep comes soon enough; there is nothing to hurry for.
        let _pause = outage.note(&sweep(runtime).await);
    }
}

/// Waits that became native tasks and that nobody asked about again. They end like one whose time is over.
async fn end_old_waits(runtime: &Runtime) -> Result<(), StoreError> {
    let filter = TaskFilter { kind: Some(TaskKind::Wait), status: Some(TaskStatus::Running), ..TaskFilter::default() };
    let now = runtime.clock().now();
    let mut after = None;
    loop {
        let page = runtime.store().list_tasks(&filter, &PageRequest::new(after, Some(LIST_PAGE_MAX))).await?;
        for task in page.items.iter().filter(|task| now.since(task.created_at) >= NATIVE_WAIT_MAX) {
            let (mode, reason) = (StopMode::Immediate, StopReason::Completed);
            runtime.store().stop_task(StopTask { task_id: task.id.clone(), mode, reason, now }).await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

async fn sweep(runtime: &Runtime) -> Result<(), StoreError> {
    end_old_waits(runtime).await?;
    let now = runtime.clock().now();
    let rule = runtime.expiry().rule(now);
    loop {
        let expired = runtime.store().expire_tasks(rule, SWEEP_ROWS_MAX).await?;
        if !expired.tasks.is_empty() {
            tracing::info!(tasks = expired.tasks.len(), "finished tasks have expired");
        }
        let rows_max = SWEEP_ROWS_MAX as usize;
        if expired.tasks.len() < rows_max && expired.tombstones < u64::from(SWEEP_ROWS_MAX) {
            break;
        }
    }
    runtime.store().prune(now.minus(CHANGES_KEPT), now.minus(IDEMPOTENCY_KEPT)).await?;
    Ok(())
}
