//! Tasks and their jobs: the queue, permits, budgets, nodes, and what a person steers.

pub mod changes;
pub mod claim;
pub mod claim_alone;
pub mod enqueue;
pub mod expire;
pub mod finish_and_claim;
pub mod insert_task;
pub mod nodes;
pub mod park;
pub mod permits;
pub mod read;
pub mod report;
pub mod spending;
pub mod steer;
pub mod stop;
pub mod update_job;
