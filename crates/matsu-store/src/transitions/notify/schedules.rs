//! Schedules and their firings. A time fires once over all nodes: the node that moves `next_at` on has it.

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{FiringId, ScheduleId, TaskId};
use matsu_core::limits::FIRINGS_KEPT;
use matsu_core::page::Page;
use matsu_core::ports::store::{
    AddSchedule, DueSchedules, FireSchedule, ListFirings, ListSchedules, NextScheduleAt, ReadSchedule, RemoveSchedule,
    SetSchedule, SettleFiring, StoreError, TakeFirings,
};
use matsu_core::principal::Principal;
use matsu_core::schedule::{Firing, FiringOutcome, FiringState, Overlap, Schedule};

use super::unstarted;
use crate::sql::{Columns, Row, Sql, Transition, Tx, internal, params};
use crate::transitions::paging::page;

macro_rules! columns {
    ($prefix:literal) => {
        concat!(
            $prefix,
            "seq, ",
            $prefix,
            "id, ",
            $prefix,
            "owner, ",
            $prefix,
            "name, ",
            $prefix,
            "rule_json, ",
            $prefix,
            "plan_json, ",
            $prefix,
            "directory, ",
            $prefix,
            "overlap, ",
            $prefix,
            "catch_up, ",
            $prefix,
            "paused, ",
            $prefix,
            "next_at, ",
            $prefix,
            "created_at"
        )
    };
}

const ADD: Sql = Sql::both(
    "INSERT INTO schedules (id, owner, name, rule_json, plan_json, directory, overlap, catch_up, next_at, created_at) \
     VALUES ($1, $2, $3, $4, $5, CAST($6 AS TEXT), $7, $8, $9, $10) ON CONFLICT (owner, name) DO NOTHING",
);
const ONE: Sql = Sql::both(concat!(
    "SELECT ",
    columns!(""),
    " FROM schedules WHERE owner = $1 AND (id = $2 OR name = $2) ORDER BY id = $2 DESC LIMIT 1"
));
const LIST: Sql = Sql::both(concat!(
    "SELECT ",
    columns!(""),
    " FROM schedules WHERE owner = $1 AND seq > coalesce(CAST($2 AS BIGINT), -1) ORDER BY seq LIMIT $3"
));
const SET: Sql =
    Sql::both("UPDATE schedules SET paused = CAST($2 AS TEXT), next_at = CAST($3 AS BIGINT) WHERE id = $1");
const REMOVE: Sql = Sql::both("DELETE FROM schedules WHERE id = $1");
const REMOVE_FIRINGS: Sql = Sql::both("DELETE FROM firings WHERE schedule_id = $1");
const DUE: Sql = Sql::both(concat!(
    "SELECT ",
    columns!(""),
    " FROM schedules WHERE next_at <= $1 AND paused IS NULL ORDER BY next_at, seq LIMIT $2"
));
const MOVE_ON: Sql =
    Sql::both("UPDATE schedules SET next_at = CAST($3 AS BIGINT) WHERE id = $1 AND next_at = $2 AND paused IS NULL");
const ADD_FIRING: Sql = Sql::both(
    "INSERT INTO firings (id, schedule_id, due_at, state, try_at, note) \
     VALUES ($1, $2, $3, $4, CAST($5 AS BIGINT), CAST($6 AS TEXT)) \
     ON CONFLICT (schedule_id, due_at) DO NOTHING",
);
const FORGET: Sql = Sql::both(
    "DELETE FROM firings WHERE schedule_id = $1 AND try_at IS NULL AND seq <= \
     (SELECT seq FROM firings WHERE schedule_id = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)",
);
const TO_START: Sql = Sql::each(
    concat!(
        "SELECT f.seq, f.id, f.schedule_id, f.due_at, f.state, f.task_id, f.note, ",
        columns!("s."),
        " FROM firings f JOIN schedules s ON s.id = f.schedule_id WHERE f.try_at <= $1 ORDER BY f.try_at, f.seq LIMIT $2"
    ),
    concat!(
        "SELECT f.seq, f.id, f.schedule_id, f.due_at, f.state, f.task_id, f.note, ",
        columns!("s."),
        " FROM firings f JOIN schedules s ON s.id = f.schedule_id WHERE f.try_at <= $1 ORDER BY f.try_at, f.seq LIMIT $2 \
         FOR UPDATE OF f SKIP LOCKED"
    ),
);
const TAKE: Sql =
    Sql::each("UPDATE firings SET try_at = $2 WHERE id = $1", "UPDATE firings SET try_at = $2 WHERE id = ANY($1)");
const SETTLE: Sql = Sql::both(
    "UPDATE firings SET state = $2, task_id = CAST($3 AS TEXT), note = CAST($4 AS TEXT), try_at = CAST($5 AS BIGINT) \
     WHERE id = $1 AND try_at IS NOT NULL",
);
const FIRINGS: Sql = Sql::both(
    "SELECT seq, id, schedule_id, due_at, state, task_id, note FROM firings \
     WHERE schedule_id = $1 AND seq < coalesce(CAST($2 AS BIGINT), 9223372036854775807) ORDER BY seq DESC LIMIT $3",
);
const NEXT: Sql = Sql::both(
    "SELECT min(at) FROM (SELECT min(next_at) AS at FROM schedules WHERE next_at IS NOT NULL AND paused IS NULL \
     UNION ALL SELECT min(try_at) AS at FROM firings WHERE try_at IS NOT NULL) AS times",
);

fn schedule(c: &mut Columns<'_>) -> Result<Schedule, StoreError> {
    Ok(Schedule {
        seq: c.int()?,
        id: ScheduleId::from_text(c.text()?),
        owner: Principal::from_text(c.text()?),
        name: c.text()?,
        rule: serde_json::from_str(&c.text()?).map_err(internal)?,
        plan: serde_json::from_str(&c.text()?).map_err(internal)?,
        directory: c.opt_text()?,
        overlap: c.word(Overlap::parse)?,
        catch_up: c.int()? != 0,
        paused: c.opt_text()?,
        next_at: c.opt_time()?,
        created_at: c.time()?,
    })
}

fn firing(c: &mut Columns<'_>) -> Result<Firing, StoreError> {
    Ok(Firing {
        seq: c.int()?,
        id: FiringId::from_text(c.text()?),
        schedule_id: ScheduleId::from_text(c.text()?),
        due_at: c.time()?,
        state: c.word(FiringState::parse)?,
        task_id: c.opt_text()?.map(TaskId::from_text),
        note: c.opt_text()?,
    })
}

fn all(rows: &[Row]) -> Result<Vec<Schedule>, StoreError> {
    rows.iter().map(|row| schedule(&mut row.columns())).collect()
}

async fn find(tx: &mut Tx<'_>, owner: &Principal, key: &str) -> Result<Schedule, StoreError> {
    let row = tx.row(&ONE, params![owner, key]).await?;
    let row = row.ok_or_else(|| StoreError::NotFound { what: "schedule", id: key.to_owned() })?;
    schedule(&mut row.columns())
}

impl Transition for AddSchedule {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Schedule, StoreError> {
        let (new, id) = (&self.new, ScheduleId::mint(self.now));
        let rule = serde_json::to_string(&new.rule).map_err(internal)?;
        let plan = serde_json::to_string(&new.plan).map_err(internal)?;
        let (directory, overlap) = (new.directory.as_deref(), new.overlap.as_str());
        let catch_up = i64::from(new.catch_up);
        let row =
            params![&id, &new.owner, &new.name, &rule, &plan, directory, overlap, catch_up, new.next_at, self.now];
        if tx.run(&ADD, row).await? == 0 {
            let message = format!("there is a schedule {} already; remove it first, or choose another name", new.name);
            return Err(StoreError::Refused { code: ErrorCode::InvalidParams, message });
        }
        tx.publish(Topic::schedules());
        find(tx, &new.owner, id.as_str()).await
    }
}

impl Transition for ReadSchedule {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Schedule, StoreError> {
        find(tx, &self.0, &self.1).await
    }
}

impl Transition for ListSchedules {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Schedule>, StoreError> {
        let rows = tx.rows(&LIST, params![&self.0, self.1.after, self.1.limit() + 1]).await?;
        Ok(page(all(&rows)?, &self.1, |schedule| schedule.seq))
    }
}

impl Transition for SetSchedule {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.run(&SET, params![&self.id, self.paused.as_deref(), self.next_at]).await?;
        tx.publish(Topic::schedules());
        Ok(())
    }
}

impl Transition for RemoveSchedule {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Schedule, StoreError> {
        let found = find(tx, &self.0, &self.1).await?;
        tx.run(&REMOVE_FIRINGS, params![&found.id]).await?;
        tx.run(&REMOVE, params![&found.id]).await?;
        tx.publish(Topic::schedules());
        Ok(found)
    }
}

impl Transition for DueSchedules {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Schedule>, StoreError> {
        all(&tx.rows(&DUE, params![self.now, self.rows_max]).await?)
    }
}

impl Transition for FireSchedule {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let schedule = &self.schedule.id;
        let Some(first) = self.schedule.next_at else { return Ok(false) };
        if tx.run(&MOVE_ON, params![schedule, first, self.next_at]).await? == 0 {
            return Ok(false);
        }
        if let Some(why) = self.left_out.as_ref().filter(|_| first < self.due_at) {
            let (id, state, never) = (FiringId::mint(self.now), FiringState::Missed.as_str(), None::<Timestamp>);
            tx.run(&ADD_FIRING, params![&id, schedule, first, state, never, why]).await?;
        }
        let id = FiringId::mint(self.now);
        let try_at = (self.state == FiringState::Waiting).then_some(self.now);
        let (state, note) = (self.state.as_str(), self.note.as_deref());
        tx.run(&ADD_FIRING, params![&id, schedule, self.due_at, state, try_at, note]).await?;
        tx.run(&FORGET, params![&self.schedule.id, FIRINGS_KEPT]).await?;
        tx.publish(Topic::schedules());
        Ok(true)
    }
}

impl Transition for TakeFirings {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<(Firing, Schedule)>, StoreError> {
        let mut taken = Vec::new();
        for row in &tx.rows(&TO_START, params![self.now, self.rows_max]).await? {
            let mut c = row.columns();
            taken.push((firing(&mut c)?, schedule(&mut c)?));
        }
        let ids: Vec<&str> = taken.iter().map(|(firing, _)| firing.id.as_str()).collect();
        tx.run_of(&TAKE, &ids, params![self.again_at]).await?;
        Ok(taken)
    }
}

impl Transition for SettleFiring {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let (state, task, note, try_at) = match &self.outcome {
            FiringOutcome::Started(task) => (FiringState::Started, Some(task.as_str()), None, None),
            FiringOutcome::Skipped => (FiringState::Skipped, None, Some("the previous work has not ended"), None),
            FiringOutcome::Failed(unstarted) => {
                (FiringState::Failed, Some(unstarted.task_id.as_str()), Some(unstarted.why.as_str()), None)
            }
            FiringOutcome::Later(at) => (FiringState::Waiting, None, Some("waits for the previous work"), Some(*at)),
        };
        let settled = tx.run(&SETTLE, params![&self.id, state.as_str(), task, note, try_at]).await?;
        if let FiringOutcome::Failed(unstarted) = &self.outcome
            && settled > 0
        {
            unstarted::record(tx, unstarted).await?;
        }
        tx.publish(Topic::schedules());
        Ok(())
    }
}

impl Transition for ListFirings {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Firing>, StoreError> {
        let rows = tx.rows(&FIRINGS, params![&self.0, self.1.after, self.1.limit() + 1]).await?;
        let firings = rows.iter().map(|row| firing(&mut row.columns())).collect::<Result<Vec<_>, _>>()?;
        Ok(page(firings, &self.1, |firing| firing.seq))
    }
}

impl Transition for NextScheduleAt {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
        match tx.row(&NEXT, params![]).await? {
            Some(row) => row.columns().opt_time(),
            None => Ok(None),
        }
    }
}
