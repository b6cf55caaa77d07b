//! The peers that live in the harness itself, because they are limits and not libraries.

pub mod bare_axum;
pub mod bare_sqlite;
