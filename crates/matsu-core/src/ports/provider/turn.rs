//! What comes out of a model's stream.

use serde::{Deserialize, Serialize};

use crate::history::Item;
use crate::words::words;

#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// A piece of the answer, as it arrives.
    Text(String),
    /// A piece of what it thinks aloud.
    Thinking(String),
    /// What the turn has cost by the account of the program that answers, in millionths of a dollar.
    Cost(u64),
    /// The whole turn. The last event.
    End(ModelTurn),
}

/// A finished turn of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelTurn {
    /// Thoughts, text and calls in the order they were made. A call whose id is empty was given none.
    pub items: Vec<Item>,
    pub usage: Usage,
    pub end: TurnEnd,
}

words! {
    /// Why the model stopped, in its vendor's judgement. Whether tools are to be run is decided by the calls alone.
    pub enum TurnEnd {
        Finished = "finished",
        ToolUse = "tool_use",
        /// The answer was longer than it may be.
        Length = "length",
        Refused = "refused",
    }
}

/// Tokens, as the vendor counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Of the input, what came from the vendor's cache.
    pub cached_tokens: u64,
}

impl Usage {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
        }
    }

    #[must_use]
    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// Millionths of the currency for a million tokens, so that money is a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    pub input_micros: u64,
    pub output_micros: u64,
}

impl Price {
    /// What that use costs, in millionths.
    #[must_use]
    pub fn of(self, usage: Usage) -> u64 {
        let of = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let whole = of(usage.input_tokens, self.input_micros) + of(usage.output_tokens, self.output_micros);
        u64::try_from(whole / 1_000_000).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_counted_in_millionths() {
        let price = Price { input_micros: 3_000_000, output_micros: 15_000_000 };
        let usage = Usage { input_tokens: 1_000, output_tokens: 100, cached_tokens: 0 };
        assert_eq!(price.of(usage), 4_500);
    }
}
