//! What every backend must do, one function per case.

pub mod changes;
pub mod corrections;
pub mod evidence;
pub mod fences;
pub mod queue;
pub mod recovery;
pub mod scarce;
pub mod stopping;
pub mod tasks;
pub mod tokens;
