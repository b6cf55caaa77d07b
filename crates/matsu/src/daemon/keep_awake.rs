//! Keeps the machine from sleeping while a run of an agent lives, by a program of the system that holds the lock until
//! its input ends. It ends with this process, so no lock is left behind.

use std::path::Path;

use matsu_core::clock::Clock;
use matsu_core::limits::TICK;
use matsu_server::App;

use crate::config::KeepAwake;
use crate::process::{self, Inhibitor};

/// Runs until it is dropped.
pub async fn run(app: App, wish: KeepAwake) {
    if wish == KeepAwake::Off {
        return;
    }
    let clock = Clock::system();
    let mut held: Option<Inhibitor> = None;
    let mut has_warned = false;
    loop {
        let is_wanted = app.runtime().has_runs() && (wish == KeepAwake::Always || is_on_power(Path::new(POWER)));
        let is_held = held.as_mut().is_some_and(Inhibitor::lives);
        match (is_wanted, is_held) {
            (true, false) => {
                held = process::inhibit_sleep();
                if held.is_none() && !has_warned {
                    has_warned = true;
                    tracing::warn!("agents.keep_awake has no effect: {} could not be started", process::INHIBITOR);
                }
            }
            (false, true) => held = None,
            _ => {}
        }
        clock.sleep(TICK).await;
    }
}

const POWER: &str = "/sys/class/power_supply";

/// Whether the machine is plugged in. One without a battery is.
fn is_on_power(supplies: &Path) -> bool {
    let Ok(supplies) = std::fs::read_dir(supplies) else { return true };
    let read = |path: &Path, name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default().trim().to_owned();
    let supplies: Vec<_> = supplies.flatten().map(|supply| supply.path()).collect();
    let has_battery = supplies.iter().any(|supply| read(supply, "type") == "Battery");
    !has_battery || supplies.iter().any(|supply| read(supply, "type") != "Battery" && read(supply, "online") == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_on_its_battery_is_not_plugged_in() {
        let folder = std::env::temp_dir().join(format!("matsu-power-{}", std::process::id()));
        let supply = |name: &str, kind: &str, online: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("type"), kind).unwrap();
            std::fs::write(path.join("online"), online).unwrap();
        };
        assert!(is_on_power(&folder), "a machine that has no such folder");
        supply("AC", "Mains\n", "0\n");
        assert!(is_on_power(&folder), "a machine without a battery");
        supply("BAT0", "Battery\n", "");
        assert!(!is_on_power(&folder));
        supply("AC", "Mains\n", "1\n");
        assert!(is_on_power(&folder));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
