//! Seven minutes in one call, fed by progress, with the official Python SDK: `tests/clients/long_wait.py`.

use std::path::Path;
use std::process::Command;

use super::programs;
use crate::home::Home;

#[test]
fn a_call_that_is_fed_for_seven_minutes_arrives() {
    if programs("seven minutes").is_none() {
        return;
    }
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let made = Command::new(root.join("scripts/clients.sh")).arg("python").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let python = String::from_utf8(made.stdout).unwrap();
    let home = Home::new();
    // Eight sleepers at once.
    let _daemon = home.serve_with(&[("MATSU_WAIT_HOLD_MAX_PROGRESS", "600"), ("MATSU_SLOTS_CPU", "8")]);
    let mut command = Command::new(python.trim());
    command.arg(root.join("tests/clients/long_wait.py")).arg(home.data_dir()).arg(env!("CARGO_BIN_EXE_matsu"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    assert_eq!(said.matches("ok: ").count(), 8, "{said}");
}
