//! Permits as rows, so that limits hold over all nodes and through crashes.

use matsu_core::job::Lease;
use matsu_core::ports::store::{Claim, FinishAndClaim, StoreError};
use matsu_core::slot::Slot;

use crate::sql::{Row, Sql, Step, Tx, Value, params};

/// No more than any live node allows: nodes may be configured differently, and a limit is a promise of each.
const FREE_ONES: Sql = Sql::each(
    "SELECT n FROM permits WHERE slot = $1 AND n <= $2 AND job_id IS NULL \
     AND n <= coalesce((SELECT min(permits_max) FROM slot_wishes WHERE slot = $1), $2) ORDER BY n LIMIT $3",
    "SELECT n FROM permits WHERE slot = $1 AND n <= $2 AND job_id IS NULL \
     AND n <= coalesce((SELECT min(permits_max) FROM slot_wishes WHERE slot = $1), $2) ORDER BY n LIMIT $3 \
     FOR UPDATE SKIP LOCKED",
);
/// What jobs hold that are about to leave it, in every slot; then free ones of one slot. (They are a handful, so on
/// SQLite what others hold comes along.)
const USABLE: Sql = Sql::each(
    "SELECT slot, n, job_id, attempt, coalesce((SELECT min(permits_max) FROM slot_wishes WHERE slot = $1), $2) \
     FROM permits WHERE job_id IS NOT NULL OR (slot = $1 AND n <= $2) ORDER BY job_id IS NULL, n",
    "SELECT slot, n, job_id, attempt, coalesce((SELECT min(permits_max) FROM slot_wishes WHERE slot = $1), $2) \
     FROM permits WHERE job_id = ANY($4) OR (job_id IS NULL AND slot = $1 AND n <= $2) \
     ORDER BY job_id, n LIMIT $3 FOR UPDATE OF permits SKIP LOCKED",
);
const HOW_MANY: Sql = Sql::both("SELECT count(*) FROM permits WHERE slot = $1 AND n <= $2");
const ADD: Sql = Sql::both("INSERT INTO permits (slot, n) VALUES ($1, $2) ON CONFLICT (slot, n) DO NOTHING");
const TAKE: Sql = Sql::both("UPDATE permits SET job_id = $3, attempt = $4 WHERE slot = $1 AND n = $2");
/// The same for many at once, on PostgreSQL only.
const TAKE_ALL: Sql = Sql::both(
    "UPDATE permits SET job_id = ($3::text[])[array_position($2::bigint[], n)], \
     attempt = ($4::bigint[])[array_position($2::bigint[], n)] WHERE slot = $1 AND n = ANY($2)",
);
/// A handful of rows: a scan is cheaper than an index that every claim and finish would have to keep.
const FREE_ALL_OF: Sql = Sql::each(
    "UPDATE permits SET job_id = NULL, attempt = NULL WHERE job_id = $1",
    "UPDATE permits SET job_id = NULL, attempt = NULL WHERE job_id = ANY($1)",
);
/// Gives these numbers to new leases and frees whatever else the old ones hold, in every slot; on PostgreSQL only. It
/// waits for transactions that have one of those rows locked, because no other statement would free it.
const PASS_ON: Sql = Sql::both(
    "UPDATE permits SET job_id = CASE WHEN slot = $1 THEN ($3::text[])[array_position($2::bigint[], n)] END, \
     attempt = CASE WHEN slot = $1 THEN ($4::bigint[])[array_position($2::bigint[], n)] END \
     WHERE (slot = $1 AND n = ANY($2)) OR (job_id = ANY($5) \
     AND EXISTS (SELECT 1 FROM unnest($5::text[], $6::bigint[]) AS v(job_id, attempt) \
     WHERE v.job_id = permits.job_id AND v.attempt = permits.attempt))",
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
    if !tx.is_alone() && leases.len() > 1 {
        let [numbers, jobs, attempts] = pairs(numbers, leases);
        return tx.post(&TAKE_ALL, &[vec![slot.as_str().into(), numbers, jobs, attempts]]).await;
    }
    let sets: Vec<Vec<Value<'_>>> = numbers
        .iter()
        .zip(leases)
        .map(|(n, lease)| params![slot.as_str(), *n, &lease.job_id, lease.attempt].to_vec())
        .collect();
    tx.post(&TAKE, &sets).await
}

/// Frees whatever these jobs hold, in every slot.
pub async fn free_all_of(tx: &mut Tx<'_>, jobs: &[&str]) -> Result<(), StoreError> {
    tx.run_of(&FREE_ALL_OF, jobs, params![]).await
}

/// The permits of one round: what its leases leave, in every slot, and free ones of one slot. No other transaction
/// changes them until it commits. A permit that goes from job to job is written once. An attempt that could not be
/// settled is no longer held, so its permit is left too; a later attempt of the same job has a permit of its own.
pub struct PermitBatch {
    slot: Slot,
    /// Those of the round's ends.
    leases: Vec<Lease>,
    left: Vec<(Slot, i64)>,
    /// That may be used, those that are left before those that are free.
    usable: Vec<i64>,
}

impl PermitBatch {
    /// The question, as one step among others.
    pub fn asking<'a>(request: &'a FinishAndClaim, claim: &'a Claim) -> Step<'a> {
        let jobs: Vec<&str> = leases(request).map(|lease| lease.job_id.as_str()).collect();
        // What is left comes first, and with a permit inside it may be two of one job.
        let rows_max = claim.jobs_max.saturating_add(u32::try_from(jobs.len() * 2).unwrap_or(u32::MAX));
        let mut params = params![claim.slot.as_str(), claim.permits_max, rows_max].to_vec();
        params.push(jobs.into());
        Step { sql: USABLE, params }
    }

    pub fn read(rows: &[Row], request: &FinishAndClaim, claim: &Claim) -> Result<Self, StoreError> {
        let leases: Vec<Lease> = leases(request).cloned().collect();
        let mut batch = Self { slot: claim.slot, leases, left: Vec::new(), usable: Vec::new() };
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

    /// Asks and reads, where that is one.
    pub async fn ask(tx: &mut Tx<'_>, request: &FinishAndClaim, claim: &Claim) -> Result<Self, StoreError> {
        let step = Self::asking(request, claim);
        Self::read(&tx.rows(&step.sql, &step.params).await?, request, claim)
    }

    /// Gives the first usable ones to these leases, and frees what is left.
    pub async fn transfer(&self, tx: &mut Tx<'_>, new: &[Lease]) -> Result<(), StoreError> {
        let taken = &self.usable[..new.len().min(self.usable.len())];
        if !tx.is_alone() {
            return self.transfer_at_once(tx, taken, new).await;
        }
        take(tx, self.slot, taken, new).await?;
        let is_taken = |(slot, number): &(Slot, i64)| *slot == self.slot && taken.contains(number);
        let freed = self.left.iter().filter(|left| !is_taken(left));
        let sets: Vec<Vec<Value<'_>>> =
            freed.map(|(slot, number)| params![slot.as_str(), *number, None::<&str>, None::<i64>].to_vec()).collect();
        tx.run_each(&TAKE, &sets).await.map(drop)
    }

    async fn transfer_at_once(&self, tx: &mut Tx<'_>, taken: &[i64], new: &[Lease]) -> Result<(), StoreError> {
        if taken.is_empty() && self.leases.is_empty() {
            return Ok(());
        }
        let [numbers, jobs, attempts] = pairs(taken, new);
        let [left_jobs, left_attempts] = columns(self.leases.iter());
        tx.post(&PASS_ON, &[vec![self.slot.as_str().into(), numbers, jobs, attempts, left_jobs, left_attempts]]).await
    }
}

/// As many as there are of both.
fn pairs<'a>(numbers: &[i64], leases: &'a [Lease]) -> [Value<'a>; 3] {
    let (numbers, leases): (Vec<_>, Vec<_>) = numbers.iter().zip(leases).map(|(n, lease)| (Some(*n), lease)).unzip();
    let [jobs, attempts] = columns(leases.into_iter());
    [Value::Ints(numbers), jobs, attempts]
}

fn columns<'a>(leases: impl Iterator<Item = &'a Lease> + Clone) -> [Value<'a>; 2] {
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

fn leases(request: &FinishAndClaim) -> impl Iterator<Item = &Lease> {
    request.finishes.iter().map(|finish| &finish.lease)
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
