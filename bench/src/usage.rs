//! What processes have used, as the kernel counts it.

use std::time::Duration;

use anyhow::{Context, Result};

/// User and system time of these processes so far. The kernel shows it in hundredths of a second.
pub fn cpu(pids: &[u32]) -> Result<Duration> {
    pids.iter().map(|pid| ticks(*pid)).sum::<Result<u64>>().map(|ticks| Duration::from_millis(ticks * 10))
}

fn ticks(pid: u32) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name is in parentheses and may have anything in it.
    let after_name = text.rsplit_once(')').context("no name in /proc/PID/stat")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).context("no times");
    Ok(field(11)? + field(12)?)
}

/// Resident memory in MiB.
pub fn resident_mib(pid: u32) -> Result<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}
