//! Checks and generators for the workspace: `cargo run -p xtask -- tidy`, `-- structure`, `-- plugins`,
//! `-- book-links`.

mod book_links;
mod plugins;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["book-links"] => book_links::run(),
        // mdBook asks first whether this preprocessor knows its renderer. Links are the same for each of them.
        ["book-links", "supports", _] => ExitCode::SUCCESS,
        ["plugins"] => plugins::write(),
        ["structure"] => tidy::write_structure(),
        ["tidy"] => tidy::run(),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy|structure|plugins|book-links");
            ExitCode::from(2)
        }
    }
}
