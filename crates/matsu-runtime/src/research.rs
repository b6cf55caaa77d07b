//! Research: a search as stages that a crash cannot undo, and a verification that looks for evidence in other domains.
//!
//! Every stage ends in one [`RecordEvidence`](matsu_core::ports::store::RecordEvidence): evidence, costs and checkpoint
//! together. A node that takes a job over goes on from there; nothing is fetched twice and nothing counted twice.

mod asking;
mod delivered;
mod halt;
pub mod materials;
mod meter;
mod pages;
mod picking;
mod reading;
pub(crate) mod recalibration;
pub mod report;
mod report_job;
mod search_job;
mod selecting;
mod state;
pub mod status_view;
mod verify_job;

use matsu_core::ports::store::{ClearOrphans, Cleared, FeedbackEntry, ReadFeedback, ReadRules, Removal, StoreError};
use matsu_core::principal::Principal;
use matsu_core::research::domain_rule::DomainRule;

use crate::runtime::service;

pub use crate::runtime::{ResearchKit, ResearchSettings};
pub(crate) use delivered::{DeliveredStatus, Horizon};
pub use report_job::ReportJob;
pub use search_job::SearchJob;
pub use verify_job::VerifyJob;

service! {
    /// What research has learned from a principal, and what it keeps.
    Research
}

impl Research<'_> {
    /// The corrections of a principal, newest first.
    ///
    /// # Errors
    /// As the store's.
    pub async fn feedback(self, owner: &Principal, rows_max: u32) -> Result<Vec<FeedbackEntry>, StoreError> {
        self.runtime.store().run(ReadFeedback { owner: owner.clone(), rows_max }).await
    }

    /// The rules about domains that are in force.
    ///
    /// # Errors
    /// As the store's.
    pub async fn rules(self, owner: &Principal) -> Result<Vec<DomainRule>, StoreError> {
        self.runtime.store().run(ReadRules(owner.clone())).await
    }

    /// Evidence that no task reaches: removed, or only counted.
    ///
    /// # Errors
    /// As the store's.
    pub async fn orphans(self, removal: Removal) -> Result<Cleared, StoreError> {
        self.runtime.store().run(ClearOrphans(removal)).await
    }
}
