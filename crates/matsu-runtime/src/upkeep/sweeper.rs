//! Removes what has outlived its time, a bounded number of rows at once.

use matsu_core::limits::{
    CHANGES_KEPT, ENDED_SESSION_KEPT, IDEMPOTENCY_KEPT, NOTICE_KEPT, NOTIFICATION_KEPT_READ, REVOKED_TOKENS_KEPT,
    SWEEP_EVERY, SWEEP_ROWS_MAX, SYSTEM_JOBS_KEPT,
};
use matsu_core::ports::store::{ExpireTasks, PruneRule, StoreError, SweepNotices, SweepNotifications, SweepSessions};

use crate::runtime::{Outage, Runtime};

pub async fn run(runtime: &Runtime) {
    let mut outage = Outage::new("sweeper");
    loop {
        runtime.clock().sleep(SWEEP_EVERY).await;
        // The next sweep comes soon enough; there is nothing to hurry for.
        let _pause = outage.note(&sweep(runtime).await);
    }
}

async fn sweep(runtime: &Runtime) -> Result<(), StoreError> {
    let now = runtime.clock().now();
    let rule = runtime.expiry().rule(now, runtime.results_kept());
    loop {
        let expired = runtime.store().run(ExpireTasks { rule, rows_max: SWEEP_ROWS_MAX }).await?;
        if !expired.tasks.is_empty() {
            tracing::info!(tasks = expired.tasks.len(), "finished tasks have expired");
        }
        let rows_max = SWEEP_ROWS_MAX as usize;
        if expired.tasks.len() < rows_max && expired.tombstones < u64::from(SWEEP_ROWS_MAX) {
            break;
        }
    }
    sweep_sessions(runtime).await?;
    let rule = PruneRule {
        changes_before: now.minus(CHANGES_KEPT),
        keys_before: now.minus(IDEMPOTENCY_KEPT),
        system_jobs_before: now.minus(SYSTEM_JOBS_KEPT),
        revoked_before: now.minus(REVOKED_TOKENS_KEPT),
    };
    while runtime.store().prune(rule, SWEEP_ROWS_MAX).await?.has_more {}
    Ok(())
}

/// Sessions that expired, sessions that ended long ago, notifications that are no longer needed.
async fn sweep_sessions(runtime: &Runtime) -> Result<(), StoreError> {
    let (store, now) = (runtime.store(), runtime.clock().now());
    let ended =
        store.run(SweepSessions { now, ended_before: now.minus(ENDED_SESSION_KEPT), rows_max: SWEEP_ROWS_MAX }).await?;
    if !ended.is_empty() {
        tracing::info!(sessions = ended.len(), "sessions have expired");
    }
    store
        .run(SweepNotifications { now, read_before: now.minus(NOTIFICATION_KEPT_READ), rows_max: SWEEP_ROWS_MAX })
        .await?;
    store.run(SweepNotices { unused_since: now.minus(NOTICE_KEPT), rows_max: SWEEP_ROWS_MAX }).await?;
    Ok(())
}
