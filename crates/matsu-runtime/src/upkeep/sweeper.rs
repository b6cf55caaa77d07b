//! Removes what has outlived its time, a bounded number of rows at once.

use matsu_core::limits::{
    CHANGES_KEPT, HOUSE_JOBS_KEPT, IDEMPOTENCY_KEPT, REVOKED_TOKENS_KEPT, SWEEP_EVERY, SWEEP_ROWS_MAX,
};
use matsu_core::ports::store::{PruneRule, StoreError};

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

async fn sweep(runtime: &Runtime) -> Result<(), StoreError> {
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
    let rule = PruneRule {
        changes_before: now.minus(CHANGES_KEPT),
        keys_before: now.minus(IDEMPOTENCY_KEPT),
        house_jobs_before: now.minus(HOUSE_JOBS_KEPT),
        revoked_before: now.minus(REVOKED_TOKENS_KEPT),
    };
    while runtime.store().prune(rule, SWEEP_ROWS_MAX).await?.has_more {}
    Ok(())
}
