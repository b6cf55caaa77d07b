//! What a loop may spend. One account is shared by a loop and all that it starts, so that the bound holds for the sum.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use matsu_core::ports::provider::Usage;

/// What the answers to one line may spend together; absent: as much as they like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingMax {
    pub tokens: Option<u64>,
    /// Millionths of the currency that prices are in.
    pub micros: Option<u64>,
}

impl SpendingMax {
    /// An account with nothing spent yet.
    #[must_use]
    pub fn account(self) -> Arc<Spending> {
        Arc::new(Spending::bounded(self.tokens, self.micros))
    }
}

#[derive(Debug, Default)]
pub struct Spending {
    tokens_max: Option<u64>,
    micros_max: Option<u64>,
    tokens: AtomicU64,
    micros: AtomicU64,
}

impl Spending {
    #[must_use]
    pub fn unbounded() -> Self {
        Self::default()
    }

    /// At most that many tokens, and that many millionths of the currency.
    #[must_use]
    pub fn bounded(tokens_max: Option<u64>, micros_max: Option<u64>) -> Self {
        Self { tokens_max, micros_max, ..Self::default() }
    }

    pub fn add(&self, usage: Usage, micros: Option<u64>) {
        self.tokens.fetch_add(usage.total(), Ordering::Relaxed);
        self.micros.fetch_add(micros.unwrap_or(0), Ordering::Relaxed);
    }

    /// Which bound is reached, in words; `None` while there is something left.
    #[must_use]
    pub fn exhausted(&self) -> Option<String> {
        let (tokens, micros) = (self.tokens.load(Ordering::Relaxed), self.micros.load(Ordering::Relaxed));
        if let Some(max) = self.tokens_max.filter(|max| tokens >= *max) {
            return Some(format!("the budget of {max} tokens is spent ({tokens} used)"));
        }
        let max = self.micros_max.filter(|max| micros >= *max)?;
        Some(format!("the budget of {} is spent", in_money(max)))
    }
}

/// Millionths as a sum of money.
#[must_use]
pub fn in_money(micros: u64) -> String {
    format!("{}.{:04}", micros / 1_000_000, (micros % 1_000_000) / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_bound_ends_it() {
        let usage = Usage { input_tokens: 6, output_tokens: 4, cached_tokens: 0 };
        let spending = Spending::bounded(Some(20), Some(500));
        spending.add(usage, Some(100));
        assert_eq!(spending.exhausted(), None);
        spending.add(usage, None);
        assert!(spending.exhausted().unwrap().contains("20 tokens"));
        let money = Spending::bounded(None, Some(100));
        money.add(usage, Some(100));
        assert!(money.exhausted().unwrap().contains("0.0001"));
    }
}
