//! What a run can reach. Two ways to confine it: `sealed` builds its view of the machine from nothing in namespaces of
//! its own, `fenced` restricts it with Landlock. Both are described by the same [`reach::Reach`].

pub mod fence;
mod init;
mod mount_table;
mod mounts;
mod privileges;
pub mod program;
pub mod reach;
mod seal;
pub mod state;
pub mod step;
mod syscalls;
pub mod trial;
pub mod view;

use serde::{Deserialize, Serialize};

pub use fence::run as run_fence;
pub use init::run as run_init;
pub use seal::{nest as run_nest, run as run_seal};

/// How the supervisor confines the program of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sandbox {
    /// Namespaces and a view of its own.
    Sealed(view::View),
    /// Landlock.
    Fenced(fence::Fence),
    /// Nothing. Only where the user allowed it.
    Open,
}
