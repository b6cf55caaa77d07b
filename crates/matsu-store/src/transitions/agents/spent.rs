//! What runs have cost: one row for each run, which outlives its task.

use matsu_core::clock::Timestamp;
use matsu_core::id::RunId;
use matsu_core::ports::store::{NoteSpent, ReadSpent, StoreError};
use matsu_core::principal::Principal;
use matsu_core::usage::{Spent, Usage};

use crate::sql::{Row, Sql, Transition, Tx, params};

/// A run that is taken over by another process is noted again, with what it has cost since its beginning.
const NOTE: Sql = Sql::both(
    "INSERT INTO spent (run_id, owner, at, agent, model, project, input_tokens, output_tokens, micro_cost) \
     VALUES ($1, $2, $3, $4, CAST($5 AS TEXT), CAST($6 AS TEXT), CAST($7 AS BIGINT), CAST($8 AS BIGINT), \
     CAST($9 AS BIGINT)) ON CONFLICT (run_id) DO UPDATE SET at = excluded.at, model = excluded.model, \
     input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, micro_cost = excluded.micro_cost",
);
const SPENT: Sql = Sql::both(
    "SELECT run_id, owner, at, agent, model, project, input_tokens, output_tokens, micro_cost FROM spent \
     WHERE owner = $1 AND at >= $2 AND at < $3 ORDER BY at, run_id LIMIT $4",
);

const MICRO: f64 = 1e6;

impl Transition for NoteSpent {
    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let spent = &self.0;
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let (input, output) =
            (spent.usage.map(|usage| usage.input_tokens), spent.usage.map(|usage| usage.output_tokens));
        let cost = spent.usage.and_then(|usage| usage.cost_usd).map(micro);
        let (run, agent) = (&spent.run_id, spent.agent.as_str());
        let (model, project) = (spent.model.as_deref(), spent.project.as_deref());
        let values =
            params![run, &spent.owner, spent.at, agent, model, project, input.map(count), output.map(count), cost];
        tx.run(&NOTE, values).await?;
        Ok(())
    }
}

/// Millionths of a dollar.
#[expect(clippy::cast_possible_truncation, reason = "a cost beyond the range becomes the end of the range")]
fn micro(dollars: f64) -> i64 {
    (dollars * MICRO).round() as i64
}

impl Transition for ReadSpent {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Spent>, StoreError> {
        let rows = tx.rows(&SPENT, params![&self.owner, self.from, self.until, self.rows_max]).await?;
        rows.iter().map(spent).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a cost has few digits")]
fn spent(row: &Row) -> Result<Spent, StoreError> {
    let mut c = row.columns();
    let (run_id, owner, at) =
        (RunId::from_text(c.text()?), Principal::from_text(c.text()?), Timestamp::from_millis(c.int()?));
    let (agent, model, project) = (c.text()?, c.opt_text()?, c.opt_text()?);
    let (input, output, cost) = (c.opt_int()?, c.opt_int()?, c.opt_int()?);
    let tokens = |count: i64| u64::try_from(count).unwrap_or(0);
    let usage = input.zip(output).map(|(input, output)| Usage {
        input_tokens: tokens(input),
        output_tokens: tokens(output),
        cost_usd: cost.map(|micro| micro as f64 / MICRO),
    });
    Ok(Spent { run_id, owner, at, agent, model, project, usage })
}
