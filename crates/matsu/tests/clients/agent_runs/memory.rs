//! How much memory a process has, as `/proc` says it.

/// In bytes, now. From now on its peak counts anew.
pub fn now(pid: u32) -> u64 {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    line(pid, "VmRSS")
}

/// In bytes, now; its peak goes on counting.
pub fn resident(pid: u32) -> u64 {
    line(pid, "VmRSS")
}

/// The most it has had since [`now`] was asked, in bytes.
pub fn peak(pid: u32) -> u64 {
    line(pid, "VmHWM")
}

fn line(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':')).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}
