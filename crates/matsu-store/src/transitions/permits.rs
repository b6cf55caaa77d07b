//! Permits as rows, so that limits hold over all nodes and through crashes.

use matsu_core::job::Lease;
use matsu_core::ports::store::StoreError;
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
/// On PostgreSQL only: what jobs hold that are about to leave it, in every slot; then free ones of one slot.
const USABLE: Sql = Sql::both(
    "SELECT slot, n, job_id, attempt, coalesce((SELECT min(permits_max) FROM slot_wishes WHERE slot = $1), $2) \
     FROM permits WHERE job_id = ANY($4) OR (job_id IS NULL AND slot = $1 AND n <= $2) \
     ORDER BY job_id, n LIMIT $3 FOR UPDATE OF permits SKIP LOCKED",
);
/// All of them, on SQLite only: they are a handful.
const ALL: Sql = Sql::both("SELECT slot, n, job_id FROM permits ORDER BY n");
const LIMIT: Sql = Sql::both("SELECT min(permits_max) FROM slot_wishes WHERE slot = $1");
const HOW_MANY: Sql = Sql::both("SELECT count(*) FROM permits WHERE slot = $1 AND n <= $2");
const ADD: Sql = Sql::both("INSERT INTO permits (slot, n) VALUES ($1, $2) ON CONFLICT (slot, n) DO NOTHING");
const TAKE: Sql = Sql::both("UPDATE permits SET job_id = $3, attempt = $4 WHERE slot = $1 AND n = $2");
/// The same for many at once, on PostgreSQL only. Without a job it is free.
const PASS_ON: Sql = Sql::both(
    "UPDATE permits SET job_id = v.job_id, attempt = v.attempt \
     FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) AS v(slot, n, job_id, attempt) \
     WHERE permits.slot = v.slot AND permits.n = v.n",
);
const FREE_ONE: Sql = Sql::both("UPDATE permits SET job_id = NULL, attempt = NULL WHERE slot = $1 AND n = $2");
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

/// The permits as they stand after some jobs have ended, which hold theirs until somebody takes them or they are
/// cleared: one that goes from job to job is written once. Only where nobody else can move them meanwhile.
pub struct Board<'a> {
    held: Vec<Held>,
    ended: &'a [&'a str],
}

struct Held {
    slot: Slot,
    number: i64,
    job_id: Option<String>,
}

impl<'a> Board<'a> {
    pub async fn read(tx: &mut Tx<'_>, ended: &'a [&'a str]) -> Result<Self, StoreError> {
        let mut held = Vec::new();
        for row in tx.rows(&ALL, params![]).await? {
            let mut c = row.columns();
            held.push(Held { slot: c.word(Slot::parse)?, number: c.int()?, job_id: c.opt_text()? });
        }
        Ok(Self { held, ended })
    }

    /// Numbers of up to `wanted` permits of a slot that are free or left.
    pub async fn usable(
        &self,
        tx: &mut Tx<'_>,
        slot: Slot,
        permits_max: u32,
        wanted: u32,
    ) -> Result<Vec<i64>, StoreError> {
        let limit = tx.row(&LIMIT, params![slot.as_str()]).await?;
        let limit = limit.map_or(Ok(None), |row| row.columns().opt_int())?.unwrap_or(i64::MAX);
        let limit = limit.min(permits_max.into());
        let in_slot = self.held.iter().filter(|held| held.slot == slot && held.number <= limit);
        let usable = in_slot.filter(|held| held.job_id.is_none() || self.is_left(held));
        let numbers: Vec<i64> = usable.map(|held| held.number).take(wanted as usize).collect();
        if numbers.len() >= wanted as usize {
            return Ok(numbers);
        }
        self.clear(tx, slot, &[]).await?;
        free(tx, slot, permits_max, wanted).await
    }

    /// Frees what the ended jobs held and nobody has taken.
    pub async fn clear(&self, tx: &mut Tx<'_>, slot: Slot, taken: &[i64]) -> Result<(), StoreError> {
        let is_taken = |held: &Held| held.slot == slot && taken.contains(&held.number);
        let left = self.held.iter().filter(|held| self.is_left(held) && !is_taken(held));
        // By number: a job that went back to the queue may hold another one by now.
        let sets: Vec<Vec<Value<'_>>> = left.map(|held| params![held.slot.as_str(), held.number].to_vec()).collect();
        tx.run_each(&FREE_ONE, &sets).await.map(drop)
    }

    fn is_left(&self, held: &Held) -> bool {
        held.job_id.as_ref().is_some_and(|job| self.ended.contains(&job.as_str()))
    }
}

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

/// Permits of one round on PostgreSQL, locked: what its leases leave, in every slot, and free ones of one slot. One
/// that goes from job to job is written once. An attempt that could not be settled is not in hand any more, so its
/// permit is left too; a later attempt of the same job has a permit of its own.
pub struct Hand {
    slot: Slot,
    left: Vec<(Slot, i64)>,
    /// That may be used, those that are left before those that are free.
    usable: Vec<i64>,
}

impl Hand {
    /// The question, as one step among others.
    pub fn asking<'a>(slot: Slot, permits_max: u32, wanted: u32, jobs: Vec<&'a str>) -> Step<'a> {
        // What is left comes first, and with a permit inside it may be two of one job.
        let rows_max = wanted.saturating_add(u32::try_from(jobs.len() * 2).unwrap_or(u32::MAX));
        let mut params = params![slot.as_str(), permits_max, rows_max].to_vec();
        params.push(jobs.into());
        Step { sql: USABLE, params }
    }

    pub fn read<'a>(
        rows: &[Row],
        slot: Slot,
        leases: impl Iterator<Item = &'a Lease> + Clone,
    ) -> Result<Self, StoreError> {
        let mut hand = Self { slot, left: Vec::new(), usable: Vec::new() };
        for row in rows {
            let mut c = row.columns();
            let (of, number) = (c.word(Slot::parse)?, c.int()?);
            let holder = c.opt_text()?.zip(c.opt_int()?);
            let limit = c.int()?;
            if let Some((job_id, attempt)) = &holder {
                if !leases.clone().any(|lease| lease.job_id.as_str() == job_id && lease.attempt == *attempt) {
                    continue;
                }
                hand.left.push((of, number));
            }
            if of == slot && number <= limit {
                hand.usable.push(number);
            }
        }
        Ok(hand)
    }

    pub fn usable(&self) -> &[i64] {
        &self.usable
    }

    /// Gives the first usable ones to these leases, and frees what is left.
    pub async fn pass_on(&self, tx: &mut Tx<'_>, leases: &[Lease]) -> Result<(), StoreError> {
        let taken = &self.usable[..leases.len().min(self.usable.len())];
        let is_taken = |(slot, number): &(Slot, i64)| *slot == self.slot && taken.contains(number);
        let given = taken.iter().zip(leases).map(|(number, lease)| (self.slot, *number, Some(lease)));
        let freed = self.left.iter().filter(|left| !is_taken(left)).map(|(slot, number)| (*slot, *number, None));
        let moves: Vec<(Slot, i64, Option<&Lease>)> = given.chain(freed).collect();
        if moves.is_empty() {
            return Ok(());
        }
        let params = vec![
            Value::Texts(moves.iter().map(|(slot, ..)| Some(slot.as_str())).collect()),
            Value::Ints(moves.iter().map(|(_, number, _)| Some(*number)).collect()),
            Value::Texts(moves.iter().map(|(.., lease)| lease.map(|lease| lease.job_id.as_str())).collect()),
            Value::Ints(moves.iter().map(|(.., lease)| lease.map(|lease| lease.attempt)).collect()),
        ];
        tx.post(&PASS_ON, &[params]).await
    }
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

/// Takes a permit beyond the limit: who comes back from waiting for descendants must not wait for strangers.
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
