//! The end of a tree: everybody is asked, after a while everybody is killed, and nothing is over before all are gone.

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::limits::RUN_TERM_GRACE;
use rustix::process::Signal;
use tokio::process::Child;

use super::order::{EndWord, Report};
use super::tree;

/// How often the tree is looked at while it ends.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Ends every descendant of this process. `status` is set if the program has ended by itself.
pub async fn end_tree(child: &mut Child, status: Option<ExitStatus>, word: EndWord) -> Report {
    let clock = Clock::system();
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let kill_at = clock.instant() + RUN_TERM_GRACE;
    let ask = match word {
        EndWord::Term => Signal::TERM,
        EndWord::Int => Signal::INT,
    };
    let mut status = status;
    let mut asked = HashSet::new();
    loop {
        if status.is_none() {
            status = child.try_wait().ok().flatten();
        }
        tree::reap_adopted(if status.is_none() { child.id() } else { None });
        let mut alive = tree::below(&[me], &tree::all());
        alive.retain(|process| !process.is_zombie);
        if alive.is_empty() && status.is_some() {
            break;
        }
        let is_late = clock.instant() >= kill_at;
        for process in &alive {
            // Who appeared after the first look is asked as well, once.
            let is_new = asked.insert((process.pid, process.started));
            if is_late {
                tree::send(process, Signal::KILL);
            } else if is_new {
                tree::send(process, ask);
                // A stopped process hears nothing but this.
                tree::send(process, Signal::CONT);
            }
        }
        clock.sleep(LOOK_EVERY).await;
    }
    Report::Ended {
        code: status.and_then(|status| status.code()),
        signal: status.and_then(|status| status.signal()),
        processes: u32::try_from(asked.len()).unwrap_or(u32::MAX),
    }
}
