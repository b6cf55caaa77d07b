//! Reading pages and documents: bytes, media type and address in, main text with its headings or an error out. No file,
//! no network, no clock: nothing here follows a link, runs a script or does what a page asks for.
//!
//! The product calls this crate in reader processes only (`matsu __read`), because the libraries below it trust their
//! input more than it deserves: a document can make them recurse or allocate without a bound.

mod attributes;
pub mod blocks;
mod centre;
mod code;
mod declared;
mod decode;
mod depth;
pub mod features;
pub mod html;
mod markdown;
mod marks;
mod model;
mod numbers;
mod paragraphs;
pub mod pdf;
mod plain;
mod read;
mod rst;
mod shingles;
mod trees;
pub mod wire;

pub use decode::decode;
pub use read::{answer, read, visible_chars};

#[cfg(test)]
mod tests;
