//! Landlock: which files a process may open, which processes it may signal, which abstract sockets it may reach. It
//! holds for every process below the one that asked for it, and cannot be taken off again.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::step::{self, Received, StepOrder};
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
    /// Those of them that a run may have been able to write around: no link on the way to them is followed.
    #[serde(default)]
    pub real: Vec<PathBuf>,
    /// `None` refuses TCP, where the kernel can.
    pub network: Network,
}

/// What `matsu __fence` does: restricts itself and becomes the program, so a fenced run has no process in between.
#[must_use]
pub fn run() -> ExitCode {
    let confined = step::socket().and_then(|socket| StepOrder::receive(&socket));
    let error = match confined {
        Ok(Received { order, stdin, .. }) => become_program(&order, stdin),
        Err(error) => error.to_string(),
    };
    step::report_failure(&error);
    ExitCode::FAILURE
}

/// Returns only if that failed, and why.
fn become_program(order: &StepOrder, stdin: OwnedFd) -> String {
    let Sandbox::Fenced(fence) = &order.sandbox else { return "the order has no rules".to_owned() };
    let words = |error: io::Error| error.to_string();
    // The rules first: to open what they are about needs a call that is refused afterwards.
    let confined = privileges::give_up().map_err(words).and_then(|()| apply(fence));
    let confined = confined.and_then(|()| syscalls::restrict_fenced().map_err(words));
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
        rules = allow(rules, &path, look, fence.real.contains(&path))?;
    }
    // No terminals and no shared memory: those of the user's other programs would be open too.
    let devices = ["null", "zero", "full", "random", "urandom", "tty"];
    for path in devices.iter().map(|name| Path::new("/dev").join(name)).chain(fence.write.iter().cloned()) {
        rules = allow(rules, &path, all, fence.real.contains(&path))?;
    }
    rules.restrict_self().map(drop).map_err(|error| error.to_string())
}

/// Names are still resolved where `/etc/resolv.conf` is a link into another folder.
fn resolver() -> Option<PathBuf> {
    Path::new("/etc/resolv.conf").canonicalize().ok()
}

/// Opens a path of which no part is a link. `None`: there is nothing, or it is not ours to open.
///
/// # Errors
/// A part of it is a link.
pub fn open_real(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::LOOP) => Err(io::Error::other(
            "it is a link now or is reached through one, and it was not when the run was requested",
        )),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
    is_real: bool,
) -> Result<RulesetCreated, String> {
    // What is not there, or not ours to open, needs no permission.
    let opened = if is_real {
        open_real(path).map_err(|error| format!("{}: {error}", path.display()))?
    } else {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).ok()
    };
    let Some(opened) = opened else { return Ok(rules) };
    let kind = rustix::fs::fstat(&opened).map(|stat| FileType::from_raw_mode(stat.st_mode));
    let access = if kind.is_ok_and(FileType::is_dir) { access } else { access & AccessFs::from_file(NEWEST) };
    if access.is_empty() {
        return Ok(rules);
    }
    rules.add_rule(PathBeneath::new(opened, access)).map_err(|error| error.to_string())
}
