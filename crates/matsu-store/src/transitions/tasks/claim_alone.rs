//! Jobs that must run alone: the server died too often while they ran. They stand apart from the queue, so that no other
//! claim finds them and none has to look past them.

use matsu_core::clock::Timestamp;
use matsu_core::job::Job;
use matsu_core::ports::store::{Claim, ClaimAlone, IsLoneJobWaiting, StoreError};

use super::claim;
use super::permits;
use crate::sql::{Sql, Transition, Tx, Value};
use crate::transitions::hold::hold;
use crate::transitions::ledger::Ledger;
use crate::transitions::rows::{self, job_columns};

macro_rules! first_alone {
    ($position:literal, $lock:literal) => {
        concat!(
            "SELECT ",
            job_columns!(),
            " FROM jobs WHERE slot = $1 AND state = 'queued' AND hold = ",
            hold!(Alone),
            " AND finished_at IS NULL AND run_at <= $2 AND ",
            $position,
            "($3, '|' || kind || '|') > 0 ORDER BY priority, queued_at, seq LIMIT 1",
            $lock
        )
    };
}
const FIRST: Sql = Sql::each(first_alone!("instr", ""), first_alone!("strpos", ""));
const FIRST_LOCKED: Sql = Sql::each(first_alone!("instr", ""), first_alone!("strpos", " FOR UPDATE SKIP LOCKED"));

impl Transition for IsLoneJobWaiting {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        Ok(first(tx, &FIRST, &self.claim, self.now).await?.is_some())
    }
}

impl Transition for ClaimAlone {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Job>, StoreError> {
        let Some(found) = first(tx, &FIRST, &self.claim, self.now).await? else { return Ok(None) };
        // Its task first, then the job again: another node may have been faster, or a stop.
        let mut ledger = Ledger::lock(tx, found.task_id.clone()).await?;
        let picked = first(tx, &FIRST_LOCKED, &self.claim, self.now).await?.filter(|job| job.id == found.id);
        let mut jobs: Vec<Job> = picked.into_iter().collect();
        for lease in claim::start(tx, &mut ledger, &self.claim, &mut jobs, self.now).await? {
            // Nothing runs beside it here, but elsewhere all permits may be in use.
            permits::take_extra(tx, &lease, self.claim.slot, self.claim.permits_max).await?;
        }
        ledger.write(tx, self.now).await?;
        Ok(jobs.pop())
    }
}

async fn first(tx: &mut Tx<'_>, sql: &Sql, claim: &Claim, now: Timestamp) -> Result<Option<Job>, StoreError> {
    let params = [claim.slot.as_str().into(), now.into(), Value::Owned(claim::kinds(claim))];
    tx.row(sql, &params).await?.as_ref().map(rows::job).transpose()
}
