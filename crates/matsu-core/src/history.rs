//! The transcript of a chat: who said what, which tools were called, and what came back.
//!
//! There is one shape for each thing, everywhere. A transcript is only appended to; what a model is sent is derived
//! from it by pure functions, so that nothing that is sent can change what is stored.

pub mod entry;
pub mod fault;
pub mod ids;
pub mod image;
pub mod image_filter;
pub mod parse;
pub mod prune;
pub mod steps;
pub mod tokens;
pub mod validate;

pub use entry::{Entry, Item, Maker, Role};
pub use fault::HistoryFault;
pub use ids::rename_taken_ids;
pub use image::Image;
pub use image_filter::{Seen, seen_by};
pub use parse::parse;
pub use prune::prune;
pub use steps::{AssistantPart, CallWithResult, HistoryStep, UserPart, steps, system_prompt};
pub use validate::validate;
