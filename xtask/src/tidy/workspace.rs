//! What the checks look at: the text of every source and Markdown file, all paths, and the packages.
//!
//! It is read once and then only looked at, so a check can be tested on a workspace made of three strings.

#![expect(clippy::disallowed_methods, reason = "asks cargo for the packages, and is no part of the product")]

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Command;

use super::dependencies::Package;
use super::dependencies::packages_from_metadata;

/// Paths are relative to the root of the workspace and written with `/`.
#[derive(Default)]
pub struct Workspace {
    pub files: Vec<File>,
    /// Every file and folder, of whatever kind.
    pub paths: BTreeSet<String>,
    pub packages: Vec<Package>,
}

pub struct File {
    pub path: String,
    pub text: String,
}

/// Folders that are not ours to check: what a tool made, or what a test reads as data.
const SKIPPED: &[&str] = &["target", "node_modules", "dist", "testdata", ".git"];

/// Whether the text of a file is looked at.
fn is_read(folder: &str, name: &str) -> bool {
    name.ends_with(".rs")
        || name.ends_with(".md")
        || folder == "ui/src/text"
        || name == "structure.svg"
        || name == "Makefile"
        || is_script(folder, name)
}

/// Files whose words are looked at although no compiler of the workspace reads them: the page, scripts, clients that
/// test, definitions of agents, plugins.
fn is_script(folder: &str, name: &str) -> bool {
    let top = folder.split('/').next().unwrap_or_default();
    let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
    SCRIPT_FOLDERS.contains(&top) && SCRIPT_KINDS.contains(&kind)
}

const SCRIPT_FOLDERS: &[&str] = &["ui", "scripts", "tests", "agents", "plugins"];
const SCRIPT_KINDS: &[&str] = &["css", "html", "js", "mjs", "py", "sh", "svelte", "toml", "ts"];

impl Workspace {
    pub fn load() -> io::Result<Workspace> {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let mut workspace = Workspace { packages: packages(root)?, ..Workspace::default() };
        workspace.read_folder(root, "")?;
        Ok(workspace)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> io::Result<()> {
        let mut entries = std::fs::read_dir(root.join(folder))?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let is_folder = entry.file_type()?.is_dir();
            if is_folder && SKIPPED.contains(&name.as_str()) {
                continue;
            }
            self.paths.insert(path.clone());
            if is_folder {
                self.read_folder(root, &path)?;
            } else if is_read(folder, &name) {
                let text = std::fs::read_to_string(root.join(&path))?;
                self.files.push(File { path, text });
            }
        }
        Ok(())
    }

    /// The Rust files the rules hold for: those of the workspace, not of the separate `bench/` and `fuzz/`.
    pub fn rust_files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| {
            file.path.ends_with(".rs") && (file.path.starts_with("crates/") || file.path.starts_with("xtask/"))
        })
    }

    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl File {
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub fn stem(&self) -> &str {
        self.name().trim_end_matches(".rs").trim_end_matches(".md")
    }

    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// Offline and without dependencies, so it takes no lock and needs no network.
fn packages(root: &Path) -> io::Result<Vec<Package>> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata = serde_json::from_slice(&output.stdout)?;
    Ok(packages_from_metadata(&metadata))
}

/// A workspace made of the given files, for the tests of the checks.
#[cfg(test)]
pub fn of(files: &[(&str, &str)]) -> Workspace {
    let mut workspace = Workspace::default();
    for (path, text) in files {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        workspace.paths.extend(ends.map(|end| path[..end].to_owned()));
        workspace.files.push(File { path: (*path).to_owned(), text: (*text).to_owned() });
    }
    workspace
}

/// The workspace this test runs in, read once.
#[cfg(test)]
pub fn this() -> &'static Workspace {
    use std::sync::LazyLock;
    static THIS: LazyLock<Workspace> = LazyLock::new(|| Workspace::load().expect("the workspace is readable"));
    &THIS
}

#[cfg(test)]
mod tests {
    use super::this;

    #[test]
    fn finds_the_files_and_packages_of_this_workspace() {
        let workspace = this();
        assert!(workspace.file("xtask/src/tidy/workspace.rs").is_some());
        assert!(workspace.paths.contains("xtask/Cargo.toml"));
        assert!(workspace.packages.iter().any(|package| package.name == "matsu-core"));
        assert!(!workspace.paths.contains("target"));
    }
}
