//! Capabilities, and giving them up. A daemon that runs as root must not pass them on: with them a run could read the
//! memory of other processes and change what it cannot open.

use std::io;

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// Every capability goes, for good; no program can bring one back.
///
/// # Errors
/// The kernel refused.
pub fn give_up() -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let may_drop = rustix::thread::capabilities(None)?.effective.contains(CapabilitySet::SETPCAP);
    // An ordinary user has none, and cannot get one either after the last line here.
    for number in 0..64_u32 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Beyond the last one that this kernel knows.
            Err(Errno::INVAL) => break,
            Err(Errno::PERM) if !may_drop => break,
            Err(error) => return Err(error.into()),
        }
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}
