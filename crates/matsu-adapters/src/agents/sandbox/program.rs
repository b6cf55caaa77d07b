//! Where a program lies, with what it needs to run: the links that lead to it, the folder it was installed in, and its
//! interpreter. Programs of the system need nothing; those below a home folder (nvm, pipx, cargo) are found here.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::view::{Entry, SYSTEM};

/// Links that lead to links that lead …
const HOPS_MAX: usize = 16;

/// A line `#!…` is not longer than this.
const SHEBANG_BYTES_MAX: u64 = 512;

/// What must be in the view for `program` to start. `path` is the PATH that its interpreter is looked for in; `home`
/// is never shown as a whole.
#[must_use]
pub fn needs(program: &Path, path: &str, home: &Path) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut program = program.to_owned();
    // A script, its interpreter, and perhaps one more of a wrapper.
    for _ in 0..3 {
        follow(&program, home, &mut entries);
        let Ok(real) = program.canonicalize() else { break };
        let Some(interpreter) = interpreter(&real, path) else { break };
        program = interpreter;
    }
    entries
}

/// The links from `program` to the file itself, and the folder that the file was installed in.
fn follow(program: &Path, home: &Path, entries: &mut Vec<Entry>) {
    let mut path = program.to_owned();
    for _ in 0..HOPS_MAX {
        let Ok(target) = std::fs::read_link(&path) else { break };
        // The folder of the link may itself be reached over a link, and is named as it really is.
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok()).unwrap_or_default();
        let link = folder.join(path.file_name().unwrap_or_default());
        if !is_system(&link) {
            entries.push(Entry::Link { path: link, target: target.clone() });
        }
        path = folder.join(target);
    }
    let Ok(real) = program.canonicalize() else { return };
    if is_system(&real) {
        return;
    }
    entries.push(Entry::Read(installation(&real, home)));
    // Seen under the name it was called by, where a folder on the way is a link.
    if program != real && !program.is_symlink() {
        entries.push(Entry::Link { path: program.to_owned(), target: real });
    }
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|name| path.starts_with(Path::new("/").join(name)))
}

/// The folder that a program was installed in, as far as its path tells; the file alone where it does not.
fn installation(real: &Path, home: &Path) -> PathBuf {
    let parts: Vec<_> = real.components().collect();
    // Of several nested ones the outermost: its packages share their dependencies.
    if let Some(at) = parts.iter().position(|part| part.as_os_str() == "node_modules") {
        let above: PathBuf = parts[..at].iter().collect();
        let prefix = if above.ends_with("lib") { above.parent().map(Path::to_owned) } else { None };
        let found = prefix.filter(|prefix| is_narrow(prefix, home));
        return found.unwrap_or_else(|| parts[..=at].iter().collect());
    }
    let folder = real.parent().unwrap_or(real);
    let prefix = if folder.ends_with("bin") { folder.parent() } else { None };
    match prefix.filter(|prefix| is_narrow(prefix, home)) {
        Some(prefix) => prefix.to_owned(),
        None => real.to_owned(),
    }
}

/// Whether a folder holds one installation and nothing of the user's own.
fn is_narrow(folder: &Path, home: &Path) -> bool {
    let shared = [".local", ".cargo", "bin", ".config", ".cache"];
    let is_shared = shared.iter().any(|name| folder == home.join(name));
    !home.starts_with(folder) && !is_shared && folder.parent().is_some_and(|parent| parent != Path::new("/"))
}

/// What the first line of a script names.
fn interpreter(script: &Path, path: &str) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(script).ok()?.take(SHEBANG_BYTES_MAX).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let first = PathBuf::from(words.next()?);
    if !first.ends_with("env") {
        return Some(first);
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    crate::agents::process::find(name, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(path: &str) -> PathBuf {
        installation(Path::new(path), Path::new("/home/u"))
    }

    #[test]
    fn the_folder_of_an_installation_is_found() {
        let nvm = "/home/u/.nvm/versions/node/v20";
        assert_eq!(installed(&format!("{nvm}/lib/node_modules/@x/cli/cli.js")), Path::new(nvm));
        assert_eq!(installed(&format!("{nvm}/bin/node")), Path::new(nvm));
        assert_eq!(installed("/srv/a/node_modules/x/bin/x.js"), Path::new("/srv/a/node_modules"));
        assert_eq!(installed("/home/u/.venv/bin/python"), Path::new("/home/u/.venv"));
    }

    #[test]
    fn shared_folders_and_homes_are_never_shown_as_a_whole() {
        for path in ["/home/u/.local/bin/x", "/home/u/bin/x", "/home/u/.cargo/bin/x", "/home/u/x", "/data/bin/x"] {
            assert_eq!(installed(path), Path::new(path));
        }
    }

    #[test]
    fn a_script_brings_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let (script, tool) = (folder.path().join("a/bin/tool"), folder.path().join("b/bin/interp"));
        for path in [&script, &tool] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        std::fs::write(&script, format!("#!{}\n", tool.display())).unwrap();
        std::fs::write(&tool, "").unwrap();
        let real = |name: &str| folder.path().canonicalize().unwrap().join(name);
        let entries = needs(&script, "", Path::new("/home/u"));
        assert_eq!(entries, [Entry::Read(real("a")), Entry::Read(real("b"))]);
    }
}
