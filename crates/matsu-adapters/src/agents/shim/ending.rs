//! The end of a tree of processes: all are asked to end, after a while all are killed, and the run is over when the
//! last one is gone.

use std::collections::HashSet;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::limits::RUN_TERM_GRACE;
use rustix::process::Signal;

use super::order::{EndWord, Report};
use super::program::{Exit, Program};
use super::tree::{self, Children};

/// How soon the tree is looked at again while it ends, first and at most: mostly only the processes that set up the
/// sandbox are left, and they end within a few milliseconds.
const LOOK_FIRST: Duration = Duration::from_millis(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ends every descendant of this process. `exit` is set if the program has ended by itself.
pub async fn end_tree(program: &mut Program, exit: Option<Exit>, word: EndWord) -> Report {
    let clock = Clock::system();
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let kill_at = clock.instant() + RUN_TERM_GRACE;
    let ask = match word {
        EndWord::Term => Signal::TERM,
        EndWord::Int => Signal::INT,
    };
    let mut exit = exit;
    let mut asked = HashSet::new();
    let mut pause = LOOK_FIRST;
    loop {
        tree::reap_adopted(program.id());
        if exit.is_some() && tree::children() == Children::None {
            break;
        }
        let all = tree::all();
        let mut alive = tree::below(&[me], &all);
        alive.retain(|process| !process.is_zombie);
        if alive.is_empty() && exit.is_some() {
            break;
        }
        let is_late = clock.instant() >= kill_at;
        // The set-up of a sealed run ends by itself after the last process; if it were asked, all would be killed.
        let set_up = program.set_up(&all);
        for process in &alive {
            if is_late {
                tree::send(process, Signal::KILL);
            }
            if set_up.contains(&process.pid) {
                continue;
            }
            // A process that appeared after the first look is asked as well, once.
            let is_new = asked.insert((process.pid, process.started));
            if is_new && !is_late {
                tree::send(process, ask);
                // A stopped process gets nothing but this.
                tree::send(process, Signal::CONT);
            }
        }
        tokio::select! {
            ended = program.ended(), if exit.is_none() => exit = Some(ended),
            () = clock.sleep(pause) => pause = LOOK_EVERY.min(pause * 2),
        }
    }
    let Exit { code, signal } = exit.unwrap_or_default();
    Report::Ended { code, signal, processes: u32::try_from(asked.len()).unwrap_or(u32::MAX) }
}
