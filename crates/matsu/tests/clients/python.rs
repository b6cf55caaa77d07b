//! The official Python SDK on the real binary: what it does is in `tests/clients/python_sdk.py`.

use std::path::Path;
use std::process::Command;

use crate::home::Home;

#[test]
fn the_python_sdk_works_over_both_transports_in_both_eras() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let made = Command::new(root.join("scripts/clients.sh")).arg("python").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let python = String::from_utf8(made.stdout).unwrap();

    let home = Home::new();
    let _daemon = home.serve();
    let output = Command::new(python.trim())
        .arg(root.join("tests/clients/python_sdk.py"))
        .arg(home.data_dir())
        .arg(env!("CARGO_BIN_EXE_matsu"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.matches("ok: ").count(), 6, "{said}");
}
