//! Checks and generators for the workspace: `cargo run -p xtask -- tidy`, `-- structure`, `-- plugins`.

mod plugins;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["plugins"] => plugins::write(),
        ["structure"] => tidy::write_structure(),
        ["tidy"] => tidy::run(),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy|structure|plugins");
            ExitCode::from(2)
        }
    }
}
