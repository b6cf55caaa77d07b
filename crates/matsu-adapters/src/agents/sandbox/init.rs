//! The first process of a sealed run, `matsu __init`: builds the view, gives up every capability, starts the program
//! and collects what ends. When it ends, the kernel ends every process of the namespace.

use std::io;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions};

use super::step::{self, Received, StepOrder, StepReport};
use super::{Sandbox, fence, mounts, privileges, syscalls};
use crate::agents::process;

/// What `matsu __init` does.
#[must_use]
pub fn run() -> ExitCode {
    match init() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            step::report_failure(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn init() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let socket = step::socket()?;
    // The lock is held until this process ends: while it is taken, processes of the run may be left.
    let Received { order, stdin, lock: _lock } = StepOrder::receive(&socket)?;
    let Sandbox::Sealed(view) = &order.sandbox else { return Err(io::Error::other("the order has no view")) };
    mounts::build(view)?;
    privileges::give_up()?;
    fence::apply_scopes().map_err(io::Error::other)?;
    syscalls::restrict()?;
    // The program has the same user id, and could read this process's memory otherwise.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let program = process::start_in_view(&order, stdin)
        .map_err(|error| io::Error::other(format!("{}: {error}", order.program.display())))?;
    // A supervisor that died before the death signal was set is noticed here: the write fails.
    step::report(&socket, &StepReport::Started)?;
    collect(&socket, program)
}

/// Collects ended processes until none is left.
fn collect(socket: &UnixStream, program: u32) -> io::Result<()> {
    let program = i32::try_from(program).ok().and_then(Pid::from_raw);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == program => {
                let (code, signal) = (status.exit_status(), status.terminating_signal());
                step::report(socket, &StepReport::Exited { code, signal })?;
            }
            Ok(_) | Err(Errno::INTR) => {}
            // No process is left.
            Err(_) => return Ok(()),
        }
    }
}
