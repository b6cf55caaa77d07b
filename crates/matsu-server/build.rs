//! Puts the built page (`ui/dist`, made by `make ui`) into the binary. Without it the build goes on, and the server
//! shows a page that says how to build one.
#![expect(clippy::disallowed_methods, reason = "cargo passes values to build scripts through the environment")]

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../ui");
    let dist = root.join("dist");
    let dist = fs::canonicalize(&dist).unwrap_or(dist);
    // The folder itself, so that its coming and going is noticed; the stamp, so that a new build is.
    println!("cargo::rerun-if-changed={}", dist.display());
    println!("cargo::rerun-if-changed={}", dist.join("stamp").display());
    let mut files = Vec::new();
    if dist.join("stamp").is_file() {
        collect(&dist, &mut files)?;
        files.sort();
    }
    let mut code = String::from("static ASSETS: &[Asset] = &[\n");
    for file in &files {
        let name = file.strip_prefix(&dist)?.to_string_lossy().replace('\\', "/");
        let gzip = PathBuf::from(format!("{}.gz", file.display()));
        let gzip = if gzip.is_file() { format!("include_bytes!({gzip:?})") } else { "&[]".to_owned() };
        writeln!(
            code,
            "    Asset {{ path: {name:?}, kind: {:?}, plain: include_bytes!({file:?}), gzip: {gzip} }},",
            kind(&name)
        )?;
    }
    code.push_str("];\n");
    let build = fs::read_to_string(dist.join("stamp")).unwrap_or_default();
    writeln!(code, "const BUILD: &str = {:?};", build.trim())?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("assets.rs"), code)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end != "gz") {
            files.push(fs::canonicalize(path)?);
        }
    }
    Ok(())
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or("") {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webmanifest" => "application/manifest+json",
        "json" => "application/json",
        _ => "application/octet-stream",
    }
}
