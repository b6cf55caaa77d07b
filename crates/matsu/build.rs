//! Puts what the pages in `docs/errors` say to do next into the binary, so that the terminal can say it.
#![expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]

use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../docs/errors");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages: Vec<PathBuf> =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    pages.sort();
    let mut code = String::from("static NEXT_STEPS: &[(&str, &str)] = &[\n");
    for page in pages {
        let (Some(name), text) = (page.file_stem().and_then(|name| name.to_str()), fs::read_to_string(&page)?) else {
            continue;
        };
        let Some((_, next)) = text.split_once("## What to do next") else { continue };
        let paragraph = next.trim_start().split("\n\n").next().unwrap_or_default();
        let lines = paragraph.lines().map(|line| line.trim_start_matches("- ").trim());
        let words = lines.collect::<Vec<_>>().join(" ");
        writeln!(code, "    ({name:?}, {:?}),", without_links(&words))?;
    }
    code.push_str("];\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("next_steps.rs"), code)?;
    Ok(())
}

/// `[words](page.md)` reads `words`.
fn without_links(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, link)) = rest.split_once('[') {
        let Some((words, after)) = link.split_once("](") else { break };
        let Some((_, after)) = after.split_once(')') else { break };
        plain.push_str(before);
        plain.push_str(words);
        rest = after;
    }
    plain + rest
}
