//! The queue: how jobs are claimed, run and ended. One dispatcher per slot owns the bodies of that slot in this
//! process.

pub mod adoptions;
pub mod dispatcher;
pub mod ending;
pub mod lone;
pub mod run_clock;
pub mod running;
pub mod share;
pub mod worker;
