//! Research: a search as stages that a crash cannot undo, and a verification that looks for evidence in other domains.
//!
//! Every stage ends in one [`RecordEvidence`](matsu_core::ports::store::RecordEvidence): evidence, costs and checkpoint
//! together. A node that takes a job over goes on from there; nothing is fetched twice and nothing counted twice.

mod delivered;
mod engine_queries;
pub mod materials;
mod model_calls;
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
mod stop_cause;
mod verify_job;

use std::sync::Arc;

use matsu_core::ports::research_model::ModelChoice;
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

    /// Where a person chooses the model, if the setting leaves it to a person.
    #[must_use]
    pub fn model_choice(self) -> Option<Arc<dyn ModelChoice>> {
        self.runtime.research().and_then(|kit| kit.choice.clone())
    }

    /// Has research use the model that a person chose, from the next search on.
    ///
    /// # Errors
    /// The setting names a model itself, or the choice is not on offer; in words.
    pub async fn choose_model(self, name: &str) -> Result<(), String> {
        let kit = self.runtime.research();
        let Some((kit, choice)) = kit.and_then(|kit| kit.choice.clone().map(|choice| (kit, choice))) else {
            return Err("the setting research.model already names the model; set it to auto to choose here".to_owned());
        };
        kit.use_model(choice.choose(name).await?);
        Ok(())
    }

    /// Keeps a person's cookies for a domain. Returns how many.
    ///
    /// # Errors
    /// They cannot be read or stored; in words.
    pub async fn keep_cookies(self, owner: &Principal, domain: &str, cookies: &str) -> Result<usize, String> {
        let vault = self.runtime.research().and_then(|kit| kit.cookies.clone());
        let vault = vault.ok_or("cookies are not kept in this process; start `matsu serve`")?;
        vault.keep(owner, domain, cookies).await.map_err(|error| error.to_string())
    }

    /// Evidence that no task reaches: removed, or only counted.
    ///
    /// # Errors
    /// As the store's.
    pub async fn orphans(self, removal: Removal) -> Result<Cleared, StoreError> {
        self.runtime.store().run(ClearOrphans(removal)).await
    }
}
