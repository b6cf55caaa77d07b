//! What calls of models have cost, as far as one piece of work made them.

use std::sync::{Mutex, PoisonError};

use crate::usage::Usage;

/// Filled by the code that asks models, and emptied by the job that they work for.
#[derive(Debug, Default)]
pub struct ModelAccount(Mutex<Vec<ModelCall>>);

/// One call that was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    /// The vendor's name of the model.
    pub model: String,
    /// The agent whose program answered, if one did.
    pub agent: Option<String>,
    pub usage: Usage,
}

impl ModelAccount {
    pub fn add(&self, call: ModelCall) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    /// The calls since this was asked last.
    #[must_use]
    pub fn take(&self) -> Vec<ModelCall> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
