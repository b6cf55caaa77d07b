//! Runs of agents: their conversations, output, answers and cost.

pub mod left_runs;
pub mod run_answers;
pub mod run_output;
pub mod run_sessions;
pub mod spent;
