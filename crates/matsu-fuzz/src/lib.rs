//! What the fuzzers run: every parser of foreign bytes, with the properties that must hold whatever the bytes are.
//!
//! A target is a function that takes bytes and panics if a property does not hold. The programs in `fuzz/` give it what
//! libFuzzer makes up; the test of this crate gives it every input of `fuzz/corpus/`, so that what was found once stays
//! mended. Never part of the product.

mod connect;
#[path = "../../matsu/src/homes.rs"]
mod homes;
pub mod input;
pub mod targets;

pub use targets::{TARGETS, Target};

#[expect(dead_code, reason = "the binary uses the rest")]
#[path = "../../matsu/src/relay/frames.rs"]
mod relay_frames;
