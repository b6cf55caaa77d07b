//! Users and tokens.

pub mod tokens;
pub mod users;
