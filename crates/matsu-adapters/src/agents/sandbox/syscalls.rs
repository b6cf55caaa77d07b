//! Calls of the kernel that a run has no use for and that reach past its files: keys of the user's login session, files
//! that run with the rights of their owner, which would outlive the run, and control groups, by which it could end the
//! daemon. A fenced run shares the processes and the memory of the machine, so more is refused there.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// Bits of a mode with which a program runs as its owner or its group.
const SET_ID: [u64; 2] = [0o4000, 0o2000];

/// Flags of an open call with which its mode counts: `O_CREAT`, and the bit of `O_TMPFILE` that is its own.
const CREATES: [u64; 2] = [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64];

/// Refuses the calls for this process and all that it starts. They fail with "not permitted"; those whose arguments
/// cannot be looked at fail with "not implemented", after which programs use the older form.
///
/// # Errors
/// The kernel refused.
pub fn restrict() -> io::Result<()> {
    apply(refused()?, libc::EPERM)?;
    apply(whole(&[libc::SYS_openat2, libc::SYS_io_uring_setup, libc::SYS_clone3]), libc::ENOSYS)
}

/// The same for a fenced run, which has no namespaces of its own.
///
/// # Errors
/// The kernel refused.
pub fn restrict_fenced() -> io::Result<()> {
    restrict()?;
    let mut rules = Rules::new();
    for (call, argument) in OF_PROCESSES {
        rules.insert(*call, vec![rule(vec![is_other(*argument)?])?]);
    }
    apply(rules, libc::EPERM)?;
    apply(whole(SHARED_MEMORY), libc::ENOSYS)
}

/// Calls that change limits or priorities, and the argument that says whose. Zero is the caller itself.
const OF_PROCESSES: &[(i64, u8)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
];

/// Memory and queues that all programs of a user share, by numbers and names that are no files.
const SHARED_MEMORY: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

fn whole(calls: &[i64]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn refused() -> io::Result<Rules> {
    let mut rules = whole(&[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key]);
    // Who has a namespace of control groups can mount them.
    for call in [libc::SYS_unshare, libc::SYS_clone] {
        rules.insert(call, vec![rule(vec![has(0, libc::CLONE_NEWCGROUP.unsigned_abs().into())?])?]);
    }
    for (call, mode) in changing() {
        rules.insert(call, set_id(mode, None)?);
    }
    for (call, flags, mode) in opening() {
        rules.insert(call, set_id(mode, Some(flags))?);
    }
    Ok(rules)
}

/// Calls with a mode, and which argument it is.
fn changing() -> Vec<(i64, u8)> {
    let everywhere = [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2), (libc::SYS_mknodat, 2)];
    #[cfg(target_arch = "x86_64")]
    let older = [(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
    #[cfg(not(target_arch = "x86_64"))]
    let older = [];
    everywhere.into_iter().chain(older).collect()
}

/// Calls with flags and a mode that counts with some of them.
fn opening() -> Vec<(i64, u8, u8)> {
    let everywhere = [(libc::SYS_openat, 2, 3)];
    #[cfg(target_arch = "x86_64")]
    let older = [(libc::SYS_open, 1, 2)];
    #[cfg(not(target_arch = "x86_64"))]
    let older = [];
    everywhere.into_iter().chain(older).collect()
}

fn set_id(mode: u8, flags: Option<u8>) -> io::Result<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    for bit in SET_ID {
        match flags {
            None => rules.push(rule(vec![has(mode, bit)?])?),
            Some(flags) => {
                for creates in CREATES {
                    rules.push(rule(vec![has(flags, creates)?, has(mode, bit)?])?);
                }
            }
        }
    }
    Ok(rules)
}

fn rule(conditions: Vec<SeccompCondition>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions).map_err(io::Error::other)
}

fn has(argument: u8, bit: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit), bit).map_err(io::Error::other)
}

fn is_other(argument: u8) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0).map_err(io::Error::other)
}

fn apply(rules: Rules, errno: i32) -> io::Result<()> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let answer = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, arch).map_err(io::Error::other)?;
    let program = BpfProgram::try_from(filter).map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}
