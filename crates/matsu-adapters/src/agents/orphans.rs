//! Processes of a run, found by its mark: those of a killed supervisor are ended, stopped ones are woken for their end.

use std::time::Duration;

use matsu_core::clock::Clock;
use rustix::process::Signal;

use super::command_line::MARKER;
use super::shim::tree::{self, Process};
use super::worktree::Closed;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process that cannot be killed within this time waits for a disk or a server; it dies when that answers.
const END_WITHIN: Duration = Duration::from_secs(5);

/// From now on orphans of our runs come to us and not to the system's first process.
///
/// # Errors
/// The kernel has no such thing.
pub fn adopt() -> std::io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Kills everything of a run, at once: its supervisor, which could end it in order, is gone. There are no changes to tell.
pub async fn end(marker: String, clock: Clock) -> Closed {
    let until = clock.instant() + END_WITHIN;
    loop {
        let all = tree::all();
        let mut of_run: Vec<Process> = all.iter().filter(|process| is_of_run(process, &marker)).copied().collect();
        let roots: Vec<i32> = of_run.iter().map(|process| process.pid).collect();
        of_run.extend(tree::below(&roots, &all));
        for process in &of_run {
            if process.is_zombie { tree::collect(process) } else { tree::send(process, Signal::KILL) }
        }
        if of_run.is_empty() || clock.instant() >= until {
            return Closed::default();
        }
        clock.sleep(LOOK_EVERY).await;
    }
}

/// Lets stopped processes of a run go on: a supervisor that was stopped would not see the word that ends the run.
pub fn wake(marker: &str) {
    for process in tree::all().iter().filter(|process| !process.is_zombie && is_of_run(process, marker)) {
        tree::send(process, Signal::CONT);
    }
}

fn environment(process: &Process) -> Vec<u8> {
    std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default()
}

fn has(environment: &[u8], wanted: &str) -> bool {
    environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
}

/// By the variable that every process of a run inherits; only below this process, whatever others carry.
fn is_of_run(process: &Process, marker: &str) -> bool {
    if process.is_zombie {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        // Its environment is gone; a child of ours that no task awaits can only be an orphan that we killed.
        return process.parent == me && is_adopted(process);
    }
    has(&environment(process), &format!("{MARKER}={marker}"))
}

/// Children that were started here lead no session of another process; a shim's descendants are in a session whose
/// leader is not us.
fn is_adopted(process: &Process) -> bool {
    // Not by getsid(2), whose binding takes a session from a namespace above for impossible.
    let ours = tree::read(rustix::process::getpid().as_raw_nonzero().get()).map(|own| own.session);
    Some(process.session) != ours
}
