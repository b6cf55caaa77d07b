//! What runs leave in repositories: kept work, and what a person decided about it.

pub mod kept_work;
pub mod review;
