//! Research: a search as stages that a crash cannot undo, and a verification that looks for evidence in other domains.
//!
//! Every stage ends in one [`record`](matsu_core::ports::store::EvidenceStore::record): evidence, costs and checkpoint
//! together. A node that takes a job over goes on from there; nothing is fetched twice and nothing counted twice.

pub(crate) mod access;
mod asking;
mod delivered;
mod halt;
mod kit;
pub mod materials;
mod meter;
mod pages;
mod picking;
mod reading;
pub(crate) mod recalibration;
mod search_job;
mod selecting;
mod state;
pub mod status_view;
mod verify_job;

pub(crate) use delivered::{DeliveredStatus, Horizon};
pub use kit::{ResearchKit, ResearchSettings};
pub use search_job::SearchJob;
pub use verify_job::VerifyJob;
