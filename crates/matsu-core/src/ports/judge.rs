//! The judge: what passages say about a claim.

use async_trait::async_trait;

use crate::research::stance::Stance;
use crate::slot::Slot;

use super::claim_maker::ModelError;
use super::model_account::ModelAccount;

#[async_trait]
pub trait Judge: Send + Sync {
    /// What its calibration is kept under.
    fn source(&self) -> &'static str;

    /// The inner permit that the caller must hold while it works, if any.
    fn slot(&self) -> Option<Slot>;

    /// What a reader must know about its judgements, in one sentence; nothing where they can be relied on.
    fn limits(&self) -> Option<String> {
        None
    }

    /// One stance for each passage, in order, before calibration. Unsure is neutral.
    async fn stances(&self, claim: &str, passages: &[&str]) -> Result<Vec<Stance>, ModelError>;

    /// Claims that [`Judge::stances_of`] takes at once.
    fn claims_at_once(&self) -> usize {
        1
    }

    /// The stances for several claims, one list for each, in order. A judge that asks a model asks once, and notes in the
    /// account what that cost.
    async fn stances_of(&self, asked: &[ToJudge<'_>], _account: &ModelAccount) -> Result<Vec<Vec<Stance>>, ModelError> {
        let mut found = Vec::with_capacity(asked.len());
        for one in asked {
            found.push(self.stances(one.claim, &one.passages).await?);
        }
        Ok(found)
    }
}

/// A claim, and the passages to be compared with it.
#[derive(Clone, Debug)]
pub struct ToJudge<'a> {
    pub claim: &'a str,
    pub passages: Vec<&'a str>,
}
