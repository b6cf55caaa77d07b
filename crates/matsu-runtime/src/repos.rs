//! What runs leave in a repository: their patches, receipts of their checks, what a person decides, merges.

mod merge;
mod merge_body;
mod patch;
mod receipts;
mod review;

pub use merge::MergeWish;
pub use merge_body::MergeRuns;
pub use patch::{FilePatch, files_of};
pub use review::{AppliedChanges, AppliedOrSent, RunBranch};

use crate::runtime::service;

service! {
    /// The changes of runs: reading their receipts, applying, discarding, merging.
    Repos
}
