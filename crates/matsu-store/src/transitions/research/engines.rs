//! How engines have been doing, and what is bounded by day.

use matsu_core::ports::store::{ReadBreaker, SetBreaker, StoreError, TakeDaily};
use matsu_core::research::breaker::Breaker;

use crate::sql::{Sql, Transition, Tx, params};

const BREAKER: Sql = Sql::both("SELECT failures, open_until, cause FROM breakers WHERE engine = $1");
const SET_BREAKER: Sql = Sql::both(
    "INSERT INTO breakers (engine, failures, open_until, cause) VALUES ($1, $2, $3, $4) ON CONFLICT (engine) DO \
     UPDATE SET failures = excluded.failures, open_until = excluded.open_until, cause = excluded.cause",
);
/// A new day begins at one; a full day is not counted further.
const TAKE_DAILY: Sql = Sql::both(
    "INSERT INTO daily_uses (name, day, used) VALUES ($1, $2, 1) ON CONFLICT (name) DO UPDATE SET day = excluded.day, \
     used = CASE WHEN daily_uses.day = excluded.day THEN daily_uses.used + 1 ELSE 1 END \
     WHERE daily_uses.day <> excluded.day OR daily_uses.used < $3",
);
const DAY_MS: i64 = 86_400_000;

impl Transition for ReadBreaker {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Breaker, StoreError> {
        match tx.row(&BREAKER, params![&self.0]).await? {
            None => Ok(Breaker::default()),
            Some(row) => {
                let mut c = row.columns();
                Ok(Breaker { failures: c.count()?, open_until: c.opt_time()?, cause: c.opt_text()? })
            }
        }
    }
}

impl Transition for SetBreaker {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let Breaker { failures, open_until, cause } = &self.breaker;
        tx.run(&SET_BREAKER, params![&self.engine, *failures, *open_until, cause.as_ref()]).await?;
        Ok(())
    }
}

impl Transition for TakeDaily {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let day = self.now.as_millis().div_euclid(DAY_MS);
        Ok(self.uses_max > 0 && tx.run(&TAKE_DAILY, params![&self.key, day, self.uses_max]).await? > 0)
    }
}
