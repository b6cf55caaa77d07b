//! The first step into a sealed run, `matsu __seal`: enters namespaces of its own and starts `matsu __init`, the first
//! process in them. A process enters a PID namespace only with its children, so this takes two processes.
//!
//! Stdin is the socket to the supervisor; it is passed on untouched, as are stdout and stderr.

use std::io;
use std::process::ExitCode;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::Signal;
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};

use super::step;
use super::view::Network;
use crate::agents::process;

/// To mount, to give capabilities up, and for what a layer does with the mounter's rights on folders of its own.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETFCAP);

/// What `matsu __seal` does.
#[must_use]
pub fn run(network: Network) -> ExitCode {
    match seal(network) {
        Ok(code) => code,
        Err(error) => {
            step::report_failure(&format!("cannot enter namespaces: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What `matsu __nest` does: enters one more set of namespaces, as a program with a sandbox of its own would.
#[must_use]
pub fn nest() -> ExitCode {
    match enter(UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn seal(network: Network) -> io::Result<ExitCode> {
    // Before anything else: a sealed process must not outlive its supervisor.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut spaces = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
    if network == Network::None {
        spaces |= UnshareFlags::NEWNET;
    }
    enter(spaces)?;
    keep_over_exec(NEEDED)?;
    // A change of capabilities may have cleared it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    process::start_init()
}

fn enter(spaces: UnshareFlags) -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    #[expect(deprecated, reason = "the replacement is unsafe because of one flag, which is not used here")]
    rustix::thread::unshare(spaces)?;
    // Ids stay what they are. Groups beyond the first cannot be changed from inside.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// A user other than root loses capabilities with the next program, unless they are ambient.
fn keep_over_exec(wanted: CapabilitySet) -> io::Result<()> {
    let now = rustix::thread::capabilities(None)?;
    let sets = CapabilitySets { inheritable: now.inheritable | wanted, ..now };
    rustix::thread::set_capabilities(None, sets)?;
    for capability in wanted.iter() {
        rustix::thread::configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}
