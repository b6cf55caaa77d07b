//! Calls that Rust cannot check, each with why it is sound here.
#![expect(unsafe_code, reason = "unsharing has no safe form")]

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves this process into namespaces of its own: a network without any interface that is up, other message queues,
/// and a user without rights outside of it.
///
/// # Errors
/// The kernel does not let this user do that.
pub fn leave_network() -> rustix::io::Result<()> {
    // SAFETY: the danger of unsharing is a table of descriptors that threads no longer share; it stays shared here.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWIPC) }
}
