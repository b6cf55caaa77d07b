//! The rules of this repository that no compiler checks, run by `cargo test` and by `xtask tidy`.
//!
//! Each check is a pure function from a [`Workspace`] to findings. A finding is one line that names the place and
//! what to do about it, so that the check need not be read to satisfy it.

mod behaviours;
mod book;
mod dependencies;
mod error_pages;
mod folder_list;
mod forbidden;
mod lib_exports;
pub mod links;
mod module_cycles;
mod named_files;
mod names;
mod one_meaning;
mod opening;
mod size;
mod source;
mod structure;
mod visible_writes;
mod words;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

struct Check {
    name: &'static str,
    run: fn(&Workspace) -> Vec<String>,
}

/// Lists every check once, for the command line and as one test each on the real workspace.
macro_rules! checks {
    ($($name:ident),* $(,)?) => {
        const CHECKS: &[Check] = &[$(Check { name: stringify!($name), run: $name::findings }),*];

        #[cfg(test)]
        mod on_this_workspace {
            $(#[test]
            fn $name() {
                super::assert_clean(super::$name::findings);
            })*
        }
    };
}

checks! {
    behaviours,
    book,
    dependencies,
    error_pages,
    folder_list,
    forbidden,
    lib_exports,
    links,
    module_cycles,
    named_files,
    names,
    one_meaning,
    opening,
    size,
    structure,
    visible_writes,
    words,
}

/// Prints all findings, and what is only a warning; fails if there is a finding.
pub fn run() -> ExitCode {
    let workspace = match Workspace::load() {
        Ok(workspace) => workspace,
        Err(error) => {
            eprintln!("tidy: cannot read the workspace: {error}");
            return ExitCode::FAILURE;
        }
    };
    for warning in size::warnings(&workspace) {
        println!("warning: {warning}");
    }
    let mut count = 0;
    for check in CHECKS {
        for finding in (check.run)(&workspace) {
            println!("{}: {finding}", check.name);
            count += 1;
        }
    }
    println!("tidy: {} checks, {count} findings", CHECKS.len());
    if count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes the drawing of the modules.
pub fn write_structure() -> ExitCode {
    let written = Workspace::load().and_then(|workspace| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../").to_owned() + structure::PATH;
        std::fs::write(path, structure::drawing(&workspace))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", structure::PATH);
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
fn assert_clean(findings: fn(&Workspace) -> Vec<String>) {
    let findings = findings(workspace::this());
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}
