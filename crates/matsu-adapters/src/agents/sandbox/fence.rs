//! Landlock: which files a process may open, which processes it may signal, which abstract sockets it may reach. It
//! holds for every process below the one that asked for it, and cannot be taken off again.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use serde::{Deserialize, Serialize};

use super::step::{self, StepOrder};
use super::view::{Network, SYSTEM};
use super::{Sandbox, privileges, syscalls};
use crate::agents::process;

/// The newest that was tried; older kernels enforce what they have.
const NEWEST: ABI = ABI::V7;

/// Since this one processes outside cannot be signalled, nor reached by abstract sockets.
const WITH_SCOPES: ABI = ABI::V6;

/// What a fenced run may open. Nothing else can be opened; names of files can still be listed in allowed folders only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// Folders and files that may be read; what does not exist is skipped.
    pub read: Vec<PathBuf>,
    /// Folders and files that may be written.
    pub write: Vec<PathBuf>,
    /// `None` refuses TCP, where the kernel can.
    pub network: Network,
}

/// What `matsu __fence` does: restricts itself and becomes the program, so a fenced run has no process in between.
#[must_use]
pub fn run() -> ExitCode {
    let confined = step::socket().and_then(|socket| StepOrder::receive(&socket));
    let error = match confined {
        Ok((order, stdin)) => become_program(&order, stdin),
        Err(error) => error.to_string(),
    };
    step::report_failure(&error);
    ExitCode::FAILURE
}

/// Returns only if that failed, and why.
fn become_program(order: &StepOrder, stdin: OwnedFd) -> String {
    let Sandbox::Fenced(fence) = &order.sandbox else { return "the order has no rules".to_owned() };
    let confined = privileges::give_up().and_then(|()| syscalls::restrict());
    let confined = confined.map_err(|error| error.to_string()).and_then(|()| apply(fence));
    match confined {
        Ok(()) => format!("{}: {}", order.program.display(), process::become_program(order, stdin)),
        Err(error) => error,
    }
}

/// Whether this kernel can restrict files at all.
#[must_use]
pub fn is_available() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create).is_ok()
}

/// Whether this kernel also restricts signals and abstract sockets.
#[must_use]
pub fn has_scopes() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::from_all(WITH_SCOPES)).and_then(Ruleset::create).is_ok()
}

/// Restricts signals and abstract sockets only, where the kernel can. File rules would keep a program from mounting,
/// and so keep a sandbox of its own from working.
///
/// # Errors
/// The kernel refused.
pub fn apply_scopes() -> Result<(), String> {
    if !has_scopes() {
        return Ok(());
    }
    let rules = Ruleset::default().scope(Scope::from_all(WITH_SCOPES)).and_then(Ruleset::create);
    let applied = rules.and_then(RulesetCreated::restrict_self);
    applied.map(drop).map_err(|error| error.to_string())
}

/// Confines this thread and all that it will start.
///
/// # Errors
/// The kernel refused.
pub fn apply(fence: &Fence) -> Result<(), String> {
    let (all, look) = (AccessFs::from_all(NEWEST), AccessFs::from_read(NEWEST));
    let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(all);
    let mut rules = rules
        .and_then(|ruleset| match fence.network {
            Network::Shared => Ok(ruleset),
            Network::None => ruleset.handle_access(AccessNet::from_all(NEWEST)),
        })
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .map_err(|error| error.to_string())?;
    let system = SYSTEM.iter().map(|name| Path::new("/").join(name));
    for path in system.chain([PathBuf::from("/proc")]).chain(resolver()).chain(fence.read.iter().cloned()) {
        rules = allow(rules, &path, look)?;
    }
    let devices = ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm"];
    for path in devices.iter().map(|name| Path::new("/dev").join(name)).chain(fence.write.iter().cloned()) {
        rules = allow(rules, &path, all)?;
    }
    rules.restrict_self().map(drop).map_err(|error| error.to_string())
}

/// Names are still resolved where `/etc/resolv.conf` is a link into another folder.
fn resolver() -> Option<PathBuf> {
    Path::new("/etc/resolv.conf").canonicalize().ok()
}

fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, String> {
    // What is not there, or not ours to open, needs no permission.
    let Ok(file) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    if access.is_empty() {
        return Ok(rules);
    }
    rules.add_rule(PathBeneath::new(file, access)).map_err(|error| error.to_string())
}
