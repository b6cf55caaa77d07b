//! Budgets, inner permits, rates: what is scarce, over all nodes.

use matsu_core::budget::{BudgetLine, BudgetUnit};
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::job::{JobState, Lease};
use matsu_core::ports::store::{
    HoldTurns, MovePermit, PermitStep, ReadBudget, Reservation, Reserve, Settle, StoreError, TakeTurn,
};
use matsu_core::slot::Slot;

use super::permits;
use super::update_job::task_of;
use crate::sql::{BoundStatement, Row, Sql, Transition, Tx, params};
use crate::transitions::held;
use crate::transitions::hold::hold;
use crate::transitions::ledger::Ledger;

const BUDGET: Sql = Sql::both("SELECT unit, amount_max, used FROM budgets WHERE task_id = $1 ORDER BY unit");
const LINE: Sql = Sql::each(
    "SELECT unit, amount_max, used FROM budgets WHERE task_id = $1 AND unit = $2",
    "SELECT unit, amount_max, used FROM budgets WHERE task_id = $1 AND unit = $2 FOR UPDATE",
);
const USE: Sql = Sql::both("UPDATE budgets SET used = used + $3 WHERE task_id = $1 AND unit = $2");
const RESERVE: Sql =
    Sql::both("INSERT INTO reservations (job_id, task_id, unit, amount) VALUES ($1, $2, $3, $4) RETURNING id");
const TAKE_BACK: Sql =
    Sql::both("DELETE FROM reservations WHERE id = $1 AND job_id = $2 RETURNING task_id, unit, amount");
const RESERVED_BY: Sql = Sql::each(
    "SELECT task_id, unit, amount FROM reservations WHERE job_id = $1",
    "SELECT task_id, unit, amount FROM reservations WHERE job_id = ANY($1)",
);
const DROP_ALL_OF: Sql =
    Sql::each("DELETE FROM reservations WHERE job_id = $1", "DELETE FROM reservations WHERE job_id = ANY($1)");
const HELD: Sql = Sql::each(
    concat!("SELECT slot, state FROM jobs WHERE id = $1 AND attempt = $2 AND ", held!()),
    concat!("SELECT slot, state FROM jobs WHERE id = $1 AND attempt = $2 AND ", held!(), " FOR UPDATE"),
);
/// What runs and holds no permit is found by this.
const SET_ASIDE: Sql = Sql::both(concat!(
    "UPDATE jobs SET hold = ",
    hold!(NoPermit),
    " WHERE id = $1 AND attempt = $2 AND hold <> ",
    hold!(NoPermit)
));
const TURN: Sql = Sql::each(
    "INSERT INTO rates (name, next_at) VALUES ($1, $3 + $2) ON CONFLICT (name) DO UPDATE SET next_at = \
     (CASE WHEN rates.next_at > $3 + $4 THEN $3 ELSE max(rates.next_at, $3) END) + $2 RETURNING next_at",
    "INSERT INTO rates (name, next_at) VALUES ($1, CAST($3 AS BIGINT) + $2) ON CONFLICT (name) DO UPDATE \
     SET next_at = (CASE WHEN rates.next_at > $3 + $4 THEN $3 ELSE greatest(rates.next_at, $3) END) + $2 \
     RETURNING next_at",
);

const HOLD_TURNS: Sql = Sql::each(
    "INSERT INTO rates (name, next_at) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE \
     SET next_at = max(rates.next_at, excluded.next_at)",
    "INSERT INTO rates (name, next_at) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE \
     SET next_at = greatest(rates.next_at, excluded.next_at)",
);

/// A turn further away than this was not queued for: the clock was set back since.
const TURN_AHEAD_MAX_MS: i64 = 15 * 60 * 1_000;

fn line(row: &Row) -> Result<BudgetLine, StoreError> {
    let mut c = row.columns();
    Ok(BudgetLine { unit: c.word(BudgetUnit::parse)?, limit: c.int()?, used: c.int()? })
}

impl Transition for ReadBudget {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<BudgetLine>, StoreError> {
        tx.rows(&BUDGET, params![&self.0]).await?.iter().map(line).collect()
    }
}

impl Transition for Reserve {
    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Reservation, StoreError> {
        let task_id = task_of(tx, &self.lease).await?;
        // The task's lock first, as everywhere; and the fence again behind it.
        Ledger::lock(tx, task_id.clone()).await?;
        held_job(tx, &self.lease).await?;
        let (Some(task_id), amount) = (task_id, self.amount.max(0)) else {
            return Ok(Reservation { id: 0, unit: self.unit, amount: self.amount.max(0) });
        };
        let unit = self.unit.as_str();
        let amount = match tx.row(&LINE, params![&task_id, unit]).await? {
            Some(row) => granted(&task_id, &line(&row)?, amount)?,
            None => amount,
        };
        tx.run(&USE, params![&task_id, unit, amount]).await?;
        let row = tx.row(&RESERVE, params![&self.lease.job_id, &task_id, unit, amount]).await?;
        let id = row.ok_or_else(|| crate::sql::internal("a reservation has no number"))?.only_int()?;
        Ok(Reservation { id, unit: self.unit, amount })
    }
}

/// As much of a wish as the budget has left; nothing left is a refusal.
fn granted(task_id: &TaskId, line: &BudgetLine, wish: i64) -> Result<i64, StoreError> {
    match line.grant(wish) {
        0 if wish > 0 => Err(StoreError::Closed {
            code: ErrorCode::BudgetExhausted,
            message: format!("task {task_id} has spent its budget of {} {}", line.limit, line.unit),
        }),
        granted => Ok(granted),
    }
}

impl Transition for Settle {
    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let task_id = task_of(tx, &self.lease).await?;
        Ledger::lock(tx, task_id.clone()).await?;
        held_job(tx, &self.lease).await?;
        if task_id.is_none() {
            return Ok(());
        }
        settle_reservation(tx, &self.lease, &self.reservation, self.spent).await
    }
}

/// Turns a reservation into what was spent. The caller has checked the fence and holds the task's lock.
pub async fn settle_reservation(
    tx: &mut Tx<'_>,
    lease: &Lease,
    reservation: &Reservation,
    spent: i64,
) -> Result<(), StoreError> {
    let row = tx.row(&TAKE_BACK, params![reservation.id, &lease.job_id]).await?;
    let row = row.ok_or_else(|| StoreError::NotFound { what: "reservation", id: reservation.id.to_string() })?;
    // What was not set aside cannot be spent, where the limit is a promise. Tokens and money are known only
    // afterwards, and may have passed it.
    let spent = match reservation.unit {
        BudgetUnit::Pages | BudgetUnit::Seconds => spent.clamp(0, reservation.amount),
        BudgetUnit::Tokens | BudgetUnit::MicroCost => spent.max(0),
    };
    give_back(tx, &row, spent).await
}

/// Lowers `used` by what a deleted reservation held beyond `spent`.
async fn give_back(tx: &mut Tx<'_>, row: &Row, spent: i64) -> Result<(), StoreError> {
    let mut c = row.columns();
    let (task_id, unit, amount) = (c.text()?, c.text()?, c.int()?);
    tx.run(&USE, params![&task_id, &unit, spent - amount]).await?;
    Ok(())
}

/// What these jobs have set aside.
pub async fn reserved_by(tx: &mut Tx<'_>, jobs: &[&str]) -> Result<Vec<Row>, StoreError> {
    tx.rows_of(&RESERVED_BY, jobs, params![]).await
}

/// The same as one step among others, where a list can be passed.
pub fn asking_reserved_by<'a>(jobs: &[&'a str]) -> BoundStatement<'a> {
    BoundStatement { sql: RESERVED_BY, params: params![jobs.to_vec()].to_vec() }
}

/// What jobs had set aside and not spent when they ended goes back to their budgets. Most have none, and a look is
/// cheaper than a deletion. No other transaction changes those of a job that has ended.
pub async fn return_reservations(tx: &mut Tx<'_>, jobs: &[&str], reserved: &[Row]) -> Result<(), StoreError> {
    for row in reserved {
        give_back(tx, row, 0).await?;
    }
    if reserved.is_empty() { Ok(()) } else { tx.run_of(&DROP_ALL_OF, jobs, params![]).await }
}

/// Slot and state of a job that this lease holds, with the row locked until the end of the transaction.
pub async fn held_job(tx: &mut Tx<'_>, lease: &Lease) -> Result<(Slot, JobState), StoreError> {
    let row = tx.row(&HELD, params![&lease.job_id, lease.attempt]).await?;
    let row = row.ok_or_else(|| StoreError::LeaseLost(lease.job_id.clone()))?;
    let mut c = row.columns();
    Ok((c.word(Slot::parse)?, c.word(JobState::parse)?))
}

impl Transition for MovePermit {
    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let (own, state) = held_job(tx, &self.lease).await?;
        let lease = &self.lease;
        match self.step {
            PermitStep::TakeInner { slot, permits_max } => {
                match permits::held_inside(tx, lease, own).await? {
                    Some(held) if held == slot => return Ok(true),
                    Some(held) => return Err(one_inner_permit(held, slot)),
                    None => {}
                }
                let numbers = permits::free(tx, slot, permits_max, 1).await?;
                permits::take(tx, slot, &numbers, std::slice::from_ref(lease)).await?;
                Ok(!numbers.is_empty())
            }
            PermitStep::FreeInner { slot } => {
                permits::free_in_slot(tx, lease, slot).await?;
                Ok(false)
            }
            PermitStep::Lend => {
                permits::free_in_slot(tx, lease, own).await?;
                tx.run(&SET_ASIDE, params![&lease.job_id, lease.attempt]).await?;
                tx.publish(matsu_core::change::Topic::queue(own));
                Ok(false)
            }
            // It gets its permit with the answer it waits for; a second one would be held for nothing.
            PermitStep::Regain { .. } if state == JobState::AwaitingInput => Ok(false),
            PermitStep::Regain { permits_max } => {
                if permits::holds(tx, lease, own).await? {
                    return Ok(true);
                }
                let numbers = permits::free(tx, own, permits_max, 1).await?;
                if numbers.is_empty() {
                    permits::take_extra(tx, lease, own, permits_max).await?;
                } else {
                    permits::take(tx, own, &numbers, std::slice::from_ref(lease)).await?;
                }
                Ok(true)
            }
        }
    }
}

/// Two jobs that each hold what the other wants would wait for ever.
fn one_inner_permit(held: Slot, wanted: Slot) -> StoreError {
    StoreError::LimitExceeded(format!("a job that holds a permit of {held} cannot take one of {wanted} as well"))
}

impl Transition for TakeTurn {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Timestamp, StoreError> {
        let row = tx.row(&TURN, params![&self.key, self.step_ms, self.now, TURN_AHEAD_MAX_MS]).await?;
        let next = row.ok_or_else(|| crate::sql::internal("a rate has no row"))?.only_int()?;
        Ok(Timestamp::from_millis(next - self.step_ms))
    }
}

impl Transition for HoldTurns {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.run(&HOLD_TURNS, params![&self.key, self.until]).await?;
        Ok(())
    }
}
