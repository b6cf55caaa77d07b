//! Connects AI clients to Matsu: which there are, what is written into their files, and how it is taken out again.
//!
//! A file is never written anew: our piece is put in and everything else stays as it was, byte for byte, comments and
//! order included. What was put in is on record, so that it can be taken out exactly.

pub mod clients;
pub mod json_text;
pub mod pieces;
pub mod record;
mod saved;

pub use clients::{CLIENTS, Client};
pub use json_text::ByHand;
pub use pieces::Wish;
pub use record::{RecordState, Undone};
