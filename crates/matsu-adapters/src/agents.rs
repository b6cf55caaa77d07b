//! Agent command lines: definitions as data, a shim that owns every process of a run, decoders for their streams.

mod adoption;
mod allowed_args;
mod check;
mod command_line;
mod confined;
mod confinement;
pub mod decoders;
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
pub mod project_file;
pub mod quota;
pub mod registry;
mod runs_folder;
pub mod sandbox;
pub mod shim;
mod spool;
pub mod supervisor;
pub mod text;
mod verdict;
mod worktree;

pub use command_line::MARKER;
pub use confinement::ConfineOptions;
pub use definition::QuotaPart;
pub use host::{CliHost, HostOptions};
pub use live::is_session_id;
pub use supervisor::order::Restart;
