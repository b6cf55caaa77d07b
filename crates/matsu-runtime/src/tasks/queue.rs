//! The queue: how jobs are claimed, run and ended. One dispatcher per slot owns the bodies of that slot in this
//! process.

pub mod adoptions;
pub mod crew;
pub mod dispatcher;
pub mod ending;
pub mod lone;
pub mod share;

use matsu_core::job::JobSummary;
use matsu_core::node::Node;
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{JobFilter, ListJobSummaries, ReadNodes, ReadSlots, SlotUse, StoreError};

use crate::runtime::service;

service! {
    /// The queue over all nodes, to be read.
    Queue
}

impl Queue<'_> {
    /// The processes that share this store.
    ///
    /// # Errors
    /// As the store's.
    pub async fn nodes(self) -> Result<Vec<Node>, StoreError> {
        self.runtime.store().run(ReadNodes).await
    }

    /// How much runs, and how much may.
    ///
    /// # Errors
    /// As the store's.
    pub async fn slots(self) -> Result<Vec<SlotUse>, StoreError> {
        self.runtime.store().run(ReadSlots).await
    }

    /// Jobs without their inputs and outputs.
    ///
    /// # Errors
    /// As the store's.
    pub async fn jobs(self, filter: &JobFilter, page: &PageRequest) -> Result<Page<JobSummary>, StoreError> {
        self.runtime.store().run(ListJobSummaries { filter: filter.clone(), page: page.clone() }).await
    }
}
