//! Budgets: what a task may spend, reserved before it is spent.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What is counted.
    pub enum BudgetUnit {
        Pages = "pages",
        Seconds = "seconds",
        Tokens = "tokens",
        /// Millionths of the configured currency, so that money is a whole number.
        MicroCost = "micro_cost",
    }
}

/// One bounded unit of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLine {
    pub unit: BudgetUnit,
    pub limit: i64,
    /// Spent, plus what running jobs have reserved.
    pub used: i64,
}

impl BudgetLine {
    /// How much of a wish for `amount` can be granted. Nothing is ever granted beyond the limit.
    #[must_use]
    pub fn grant(&self, amount: i64) -> i64 {
        amount.clamp(0, (self.limit - self.used).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_never_passes_the_limit() {
        for (limit, used, wish, granted) in
            [(10, 0, 4, 4), (10, 8, 4, 2), (10, 10, 1, 0), (10, 12, 1, 0), (10, 0, -3, 0)]
        {
            let line = BudgetLine { unit: BudgetUnit::Pages, limit, used };
            assert_eq!(line.grant(wish), granted, "limit {limit}, used {used}, wish {wish}");
        }
    }
}
