//! Calls that Rust cannot check, each with why it is sound here.
#![expect(unsafe_code, reason = "closing by number and unsharing have no safe form")]

use std::os::fd::BorrowedFd;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// How far numbers are tried where the kernel does not list them.
const UNLISTED_MAX: i32 = 4096;

/// Closes every descriptor from `first` on. Only for a process that has just started.
pub fn close_from(first: i32) {
    for number in open_descriptors().into_iter().filter(|number| *number >= first) {
        // SAFETY: nothing in this process owns a descriptor besides the standard streams: it has opened none yet, so
        // these were left open by who started it. The one that listed them is closed already, so each is looked at.
        unsafe {
            if rustix::io::fcntl_getfd(BorrowedFd::borrow_raw(number)).is_ok() {
                rustix::io::close(number);
            }
        }
    }
}

fn open_descriptors() -> Vec<i32> {
    match std::fs::read_dir("/proc/self/fd") {
        Ok(entries) => {
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            names.filter_map(|name| name.parse().ok()).collect()
        }
        Err(_) => (0..UNLISTED_MAX).collect(),
    }
}

/// Moves this process into namespaces of its own: a network without any interface that is up, other message queues,
/// and a user without rights outside of it.
///
/// # Errors
/// The kernel does not let this user do that.
pub fn leave_network() -> rustix::io::Result<()> {
    // SAFETY: the danger of unsharing is a table of descriptors that threads no longer share; it stays shared here.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWIPC) }
}
