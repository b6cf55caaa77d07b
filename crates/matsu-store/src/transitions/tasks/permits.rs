//! Permits as rows, so that limits hold over all nodes and through crashes.

use matsu_core::job::Lease;
use matsu_core::ports::store::{Claim, FinishAndClaim, StoreError};
use matsu_core::slot::Slot;

use crate::sql::{Row, Sql, Tx, Value, params};

/// No more than any live node allows: nodes may be configured differently, and a limit is a promise of each.
const FREE_ONES: Sql = Sql::each(
    "SELECT n FROM permits WHERE slot = $1 AND n <= $2 AND job_id IS NULL \
     AND n <= coalesce((SELECT min(permits_max) FROM slot_wishes WHERE slot = $1), $2) ORDER BY n LIMIT $3",
    "SELECT n FROM permits WHERE slot = $1 AND n <= $2 AND job_id IS NULL \
     AND n <= coalesce((SELECT min(permits_max) FROM slot_wishes WHERE slot = $1), $2) ORDER BY n LIMIT $3 \
     FOR UPDATE SKIP LOCKED",
);
const HOW_MANY: Sql = Sql::both("SELECT count(*) FROM permits WHERE slot = $1 AND n <= $2");
const ADD: Sql = Sql::both("INSERT INTO permits (slot, n) VALUES ($1, $2) ON CONFLICT (slot, n) DO NOTHING");
/// A row for each lease: number, job, attempt; then the slot.
const TAKE: Sql = Sql::each(
    "UPDATE permits SET job_id = $2, attempt = $3 WHERE slot = $4 AND n = $1",
    "UPDATE permits SET job_id = ($2::text[])[array_position($1::bigint[], n)], \
     attempt = ($3::bigint[])[array_position($1::bigint[], n)] WHERE slot = $4 AND n = ANY($1)",
);
/// A handful of rows: a scan is cheaper than an index that every claim and finish would have to keep.
const FREE_ALL_OF: Sql = Sql::each(
    "UPDATE permits SET job_id = NULL, attempt = NULL WHERE job_id = $1",
    "UPDATE permits SET job_id = NULL, attempt = NULL WHERE job_id = ANY($1)",
);
const FREE_IN_SLOT: Sql = Sql::both("UPDATE permits SET job_id = NULL, attempt = NULL WHERE job_id = $1 AND slot = $2");
const HELD_IN_SLOT: Sql = Sql::both("SELECT count(*) FROM permits WHERE job_id = $1 AND slot = $2");
const HELD_BESIDE: Sql = Sql::both("SELECT slot FROM permits WHERE job_id = $1 AND slot <> $2");
const FREE_EXTRA: Sql = Sql::each(
    "SELECT n FROM permits WHERE slot = $1 AND n > $2 AND job_id IS NULL ORDER BY n LIMIT 1",
    "SELECT n FROM permits WHERE slot = $1 AND n > $2 AND job_id IS NULL ORDER BY n LIMIT 1 FOR UPDATE SKIP LOCKED",
);
const ADD_EXTRA: Sql = Sql::both(
    "INSERT INTO permits (slot, n, job_id, attempt) \
     SELECT CAST($1 AS TEXT), coalesce(max(n), $2) + 1, CAST($3 AS TEXT), CAST($4 AS BIGINT) \
     FROM permits WHERE slot = $1 AND n >= $2 ON CONFLICT (slot, n) DO NOTHING",
);

/// Numbers of up to `wanted` free permits of a slot, locked for this transaction.
pub async fn free(tx: &mut Tx<'_>, slot: Slot, permits_max: u32, wanted: u32) -> Result<Vec<i64>, StoreError> {
    if wanted == 0 {
        return Ok(Vec::new());
    }
    let numbers = free_now(tx, slot, permits_max, wanted).await?;
    if numbers.len() >= wanted as usize {
        return Ok(numbers);
    }
    // Fewer than hoped: either they are in use, or the slot was never this wide before.
    let there = tx.row(&HOW_MANY, params![slot.as_str(), permits_max]).await?;
    let there = there.map_or(Ok(0), |row| row.only_int())?;
    if there >= i64::from(permits_max) {
        return Ok(numbers);
    }
    let sets: Vec<Vec<Value<'_>>> = (1..=i64::from(permits_max)).map(|n| params![slot.as_str(), n].to_vec()).collect();
    tx.run_each(&ADD, &sets).await?;
    free_now(tx, slot, permits_max, wanted).await
}

async fn free_now(tx: &mut Tx<'_>, slot: Slot, permits_max: u32, wanted: u32) -> Result<Vec<i64>, StoreError> {
    let rows = tx.rows(&FREE_ONES, params![slot.as_str(), permits_max, wanted]).await?;
    rows.iter().map(crate::sql::Row::only_int).collect()
}

/// Gives permits to leases, pairwise.
pub async fn take(tx: &mut Tx<'_>, slot: Slot, numbers: &[i64], leases: &[Lease]) -> Result<(), StoreError> {
    tx.post_of(&TAKE, &pairs(numbers, leases), params![slot.as_str()]).await
}

/// Frees whatever these jobs hold, in every slot.
pub async fn free_all_of(tx: &mut Tx<'_>, jobs: &[&str]) -> Result<(), StoreError> {
    tx.run_of(&FREE_ALL_OF, jobs, params![]).await
}

/// The permits of one round: what its leases leave, in every slot, and free ones of one slot. No other transaction
/// changes them until it commits. A permit that goes from job to job is written once. An attempt that could not be
/// settled is no longer held, so its permit is left too; a later attempt of the same job has a permit of its own.
pub struct PermitBatch {
    pub slot: Slot,
    /// Those of the round's ends.
    pub leases: Vec<Lease>,
    pub left: Vec<(Slot, i64)>,
    /// That may be used, those that are left before those that are free.
    usable: Vec<i64>,
    transfer: Transfer,
}

/// The driver's statement, and its parameters for each time it runs, that gives these permits to new leases and frees
/// what else the round's leases left.
pub type Transfer = for<'a> fn(&'a PermitBatch, taken: &[i64], new: &'a [Lease]) -> (Sql, Vec<Vec<Value<'a>>>);

impl PermitBatch {
    /// From rows of slot, number, holder, attempt, and the slot's limit.
    pub fn read(rows: &[Row], request: &FinishAndClaim, claim: &Claim, transfer: Transfer) -> Result<Self, StoreError> {
        let leases: Vec<Lease> = request.finishes.iter().map(|finish| finish.lease.clone()).collect();
        let mut batch = Self { slot: claim.slot, leases, left: Vec::new(), usable: Vec::new(), transfer };
        for row in rows {
            let mut c = row.columns();
            let (of, number) = (c.word(Slot::parse)?, c.int()?);
            let holder = c.opt_text()?.zip(c.opt_int()?);
            let limit = c.int()?;
            if let Some((job_id, attempt)) = &holder {
                if !batch.leases.iter().any(|lease| lease.job_id.as_str() == job_id && lease.attempt == *attempt) {
                    continue;
                }
                batch.left.push((of, number));
            }
            if of == claim.slot && number <= limit {
                batch.usable.push(number);
            }
        }
        Ok(batch)
    }

    pub fn usable(&self) -> &[i64] {
        &self.usable
    }

    /// Gives the first usable ones to these leases, and frees what is left.
    pub async fn transfer(&self, tx: &mut Tx<'_>, new: &[Lease]) -> Result<(), StoreError> {
        let taken = &self.usable[..new.len().min(self.usable.len())];
        let (sql, sets) = (self.transfer)(self, taken, new);
        tx.post(&sql, &sets).await
    }
}

/// As many as there are of both.
pub fn pairs<'a>(numbers: &[i64], leases: &'a [Lease]) -> [Value<'a>; 3] {
    let (numbers, leases): (Vec<_>, Vec<_>) = numbers.iter().zip(leases).map(|(n, lease)| (Some(*n), lease)).unzip();
    let [jobs, attempts] = columns(leases.into_iter());
    [Value::Ints(numbers), jobs, attempts]
}

pub fn columns<'a>(leases: impl Iterator<Item = &'a Lease> + Clone) -> [Value<'a>; 2] {
    let jobs = leases.clone().map(|lease| Some(lease.job_id.as_str()));
    [Value::Texts(jobs.collect()), Value::Ints(leases.map(|lease| Some(lease.attempt)).collect())]
}

/// Frees what one job holds in one slot.
pub async fn free_in_slot(tx: &mut Tx<'_>, lease: &Lease, slot: Slot) -> Result<(), StoreError> {
    tx.run(&FREE_IN_SLOT, params![&lease.job_id, slot.as_str()]).await?;
    Ok(())
}

pub async fn holds(tx: &mut Tx<'_>, lease: &Lease, slot: Slot) -> Result<bool, StoreError> {
    let row = tx.row(&HELD_IN_SLOT, params![&lease.job_id, slot.as_str()]).await?;
    Ok(row.map_or(Ok(0), |row| row.only_int())? > 0)
}

/// What a job holds besides the permit of its own slot.
pub async fn held_inside(tx: &mut Tx<'_>, lease: &Lease, own: Slot) -> Result<Option<Slot>, StoreError> {
    let row = tx.row(&HELD_BESIDE, params![&lease.job_id, own.as_str()]).await?;
    row.map(|row| row.columns().word(Slot::parse)).transpose()
}

/// Takes a permit beyond the limit: a job that has waited for its descendants must not wait for other jobs.
pub async fn take_extra(tx: &mut Tx<'_>, lease: &Lease, slot: Slot, permits_max: u32) -> Result<(), StoreError> {
    if let Some(row) = tx.row(&FREE_EXTRA, params![slot.as_str(), permits_max]).await? {
        return take(tx, slot, &[row.only_int()?], std::slice::from_ref(lease)).await;
    }
    // Two transactions may compute the same number; the one that conflicts tries the next.
    loop {
        let added = tx.run(&ADD_EXTRA, params![slot.as_str(), permits_max, &lease.job_id, lease.attempt]).await?;
        if added > 0 {
            return Ok(());
        }
    }
}
