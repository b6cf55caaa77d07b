//! The judge: what passages say about a claim.

use async_trait::async_trait;

use crate::research::stance::Stance;
use crate::slot::Slot;

use super::claim_maker::ModelError;

#[async_trait]
pub trait Judge: Send + Sync {
    /// What its calibration is kept under.
    fn source(&self) -> &'static str;

    /// The inner permit that the caller must hold while it works, if any.
    fn slot(&self) -> Option<Slot>;

    /// One stance for each passage, in order, before calibration. Unsure is neutral.
    async fn stances(&self, claim: &str, passages: &[&str]) -> Result<Vec<Stance>, ModelError>;
}
