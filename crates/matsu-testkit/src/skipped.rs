//! Tests that this machine cannot run. A test that passes prints nothing, so they are also listed in a file.
#![expect(clippy::disallowed_methods, reason = "the environment names the file in which skipped tests are listed")]

use std::io::Write;

/// Names the list, which `scripts/test.sh` prints at its end.
const LIST: &str = "MATSU_TEST_SKIPPED";

/// Notes what was not tried, and why.
pub fn skipped(what: &str) {
    let line = format!("SKIPPED: {what}\n");
    eprint!("{line}");
    let list = std::env::var_os(LIST).map(|list| std::fs::File::options().create(true).append(true).open(list));
    if let Some(Err(error)) = list.map(|list| list.and_then(|mut list| list.write_all(line.as_bytes()))) {
        eprintln!("the list of tests that were not run cannot be written: {error}");
    }
}
