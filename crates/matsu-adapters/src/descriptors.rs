//! Descriptors that a process was started with.
#![expect(unsafe_code, reason = "closing by number has no safe form")]

use std::os::fd::BorrowedFd;

/// How far numbers are tried where the kernel does not list them.
const UNLISTED_MAX: i32 = 4096;

/// The standard streams.
const STANDARD: i32 = 3;

/// Closes everything that was inherited, except for the three standard streams. Only for a process that has just
/// started. Must come first: what is open stays usable, whatever is forbidden later.
pub fn close_inherited() {
    for number in open_descriptors().into_iter().filter(|number| *number >= STANDARD) {
        // SAFETY: nothing in this process owns a descriptor besides the standard streams: it has opened none yet, so
        // these were left open by the process that started it. The one that listed them is closed already, so each is
        // looked at.
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
