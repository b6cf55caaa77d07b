//! Reading pages and documents: bytes in, main text with its headings out. Nothing here follows a link, runs a script
//! or believes what a page says about what is to be done.

pub mod blocks;
mod centre;
mod code;
pub mod context;
mod declared;
mod decode;
pub mod features;
pub mod html;
mod marks;
mod model;
pub mod pdf;
mod plain;
mod reader;
mod shingles;
mod trees;

pub use decode::decode;
pub use reader::{PageReader, declared_url, read};

#[cfg(test)]
mod tests;
