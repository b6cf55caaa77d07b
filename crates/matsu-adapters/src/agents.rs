//! Agent command lines: definitions as data, a shim that owns every process of a run, decoders for their streams.

mod adoption;
mod allowed_args;
mod check;
mod command_line;
mod confined;
mod confinement;
mod decoders;
mod definition;
mod environment;
mod git;
pub mod git_paths;
mod ground;
mod host;
mod live;
mod orphans;
mod place;
mod places;
mod probe;
mod process;
mod quota;
mod registry;
mod runs_folder;
pub mod sandbox;
pub mod shim;
mod spool;
pub mod supervisor;
mod text;
mod verdict;
mod worktree;

pub use confinement::ConfineOptions;
pub use host::{CliHost, HostOptions};
pub use supervisor::order::Restart;
