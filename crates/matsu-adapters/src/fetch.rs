//! Fetching pages: one polite, guarded request at a time. The parts are pure where they can be; [`web::WebFetcher`]
//! joins them behind the port.

pub mod cookies;
pub mod file;
mod repository;
pub mod robots;
pub mod scripts;
pub mod vault;
pub mod walls;
pub mod web;
