//! What a reader process takes from itself: files, network, other processes, and memory, time and output without a
//! bound. None of it can be taken back.
//!
//! Three layers, so that none stands alone. No new descriptor can be opened at all (a limit that every Unix has);
//! Landlock denies all files, TCP and signals (where the kernel has it, as much as it has); and namespaces of its own
//! hold no network (where an unprivileged process may make some).

mod raw;

use std::io;

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Address space, the program itself and its stacks included.
pub const MEMORY_MAX: u64 = 512 * 1024 * 1024;
/// CPU time for one document.
const CPU_SECONDS_MAX: u64 = 20;
/// Poll takes as many descriptors as this allows and the process watches one, so it cannot be 0. Number 0 is in use.
const DESCRIPTORS_MAX: u64 = 1;
/// What the newest kernels know; older ones enforce what they have.
const NEWEST: ABI = ABI::V9;

/// Locks this process down. Must be called before there is a second thread, for the layers hold for the calling
/// thread and those it starts.
///
/// # Errors
/// The kernel refused a limit. The process must not read anything then.
pub fn apply() -> io::Result<()> {
    // First, for it needs rights that the others take away. Where it is not allowed the other layers remain.
    let _ = leave_network();
    deny_files_and_connections()?;
    limit_resources()
}

/// The layer that every Unix has.
///
/// # Errors
/// The kernel refused.
pub fn limit_resources() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    limit(Resource::As, MEMORY_MAX)?;
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Nofile, DESCRIPTORS_MAX)
}

/// Namespaces of its own.
///
/// # Errors
/// This user may make none.
pub fn leave_network() -> io::Result<()> {
    Ok(raw::leave_network()?)
}

/// Lets the process compute for one document more.
///
/// # Errors
/// The kernel refused.
pub fn allow_cpu_for_one_document() -> io::Result<()> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0);
    // Seconds are counted whole, so the one that has begun is added.
    setrlimit(Resource::Cpu, Rlimit { current: Some(used + 1 + CPU_SECONDS_MAX), maximum: None })?;
    Ok(())
}

/// No further process or thread. (It does not bind the superuser.)
///
/// # Errors
/// The kernel refused.
pub fn forbid_processes() -> io::Result<()> {
    limit(Resource::Nproc, 0)
}

fn limit(resource: Resource, max: u64) -> io::Result<()> {
    setrlimit(resource, Rlimit { current: Some(max), maximum: Some(max) })?;
    Ok(())
}

/// A Landlock ruleset without a single rule: everything that it handles is denied. `false`: this
/// kernel has no Landlock.
///
/// # Errors
/// The kernel refused.
pub fn deny_files_and_connections() -> io::Result<bool> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let status = ruleset.restrict_self().map_err(io::Error::other)?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}
