//! The descendants of a process, as the kernel shows them.

use std::collections::HashSet;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid};

/// One process. The start time tells it from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    /// 0 if its leader is in a namespace above.
    pub session: i32,
    pub started: u64,
    pub is_zombie: bool,
}

/// Every process that can be seen.
#[must_use]
pub fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(read).collect()
}

pub fn read(pid: i32) -> Option<Process> {
    parse(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (name) state ppid …`; the name may contain anything, closing brackets too.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let rest = stat.get(stat.rfind(')')? + 1..)?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        is_zombie: matches!(fields.first(), Some(&("Z" | "X"))),
    })
}

/// Everything below these processes, themselves not included.
#[must_use]
pub fn below(roots: &[i32], all: &[Process]) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut parents: HashSet<i32> = roots.iter().copied().collect();
    loop {
        let next: Vec<Process> = all
            .iter()
            .filter(|process| parents.contains(&process.parent) && !found.contains(process))
            .filter(|process| !roots.contains(&process.pid))
            .copied()
            .collect();
        if next.is_empty() {
            return found;
        }
        parents.extend(next.iter().map(|process| process.pid));
        found.extend(next);
    }
}

pub fn send(process: &Process, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process.pid) {
        let _ = kill_process(pid, signal);
    }
}

/// What this process has of children. As it is the one that orphans come to, without children it has no descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    None,
    /// All of them are at work.
    Alive,
    /// At least one has ended and was not collected.
    Ended,
}

/// One call of the kernel, however many processes there are on the machine.
#[must_use]
pub fn children() -> Children {
    match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT) {
        Ok(None) => Children::Alive,
        Err(Errno::CHILD) => Children::None,
        Ok(Some(_)) | Err(_) => Children::Ended,
    }
}

/// Collects ended processes that became our children. The program itself is left to the task that awaits it.
pub fn reap_adopted(program: Option<u32>) {
    if children() != Children::Ended {
        return;
    }
    let me = rustix::process::getpid().as_raw_nonzero().get();
    for process in all().into_iter().filter(|process| process.parent == me && process.is_zombie) {
        if program.is_none_or(|program| i64::from(program) != i64::from(process.pid)) {
            collect(&process);
        }
    }
}

/// Collects one ended child of ours.
pub fn collect(process: &Process) {
    if let Some(pid) = Pid::from_raw(process.pid) {
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_confuse() {
        let fields = "S 42 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 9876 0 0";
        let process = parse(7, &format!("7 (a) b) {fields}")).unwrap();
        assert_eq!((process.parent, process.session), (42, 7));
        assert_eq!((process.started, process.is_zombie), (9_876, false));
    }

    #[test]
    fn descendants_are_found_at_every_depth() {
        let process = |pid, parent| Process { pid, parent, session: 1, started: 0, is_zombie: false };
        let all = [process(4, 3), process(2, 1), process(3, 2), process(9, 8), process(1, 0)];
        let mut below: Vec<i32> = below(&[1], &all).iter().map(|process| process.pid).collect();
        below.sort_unstable();
        assert_eq!(below, [2, 3, 4]);
    }

    #[test]
    fn this_process_is_among_all() {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        assert!(all().iter().any(|process| process.pid == me && !process.is_zombie));
    }
}
