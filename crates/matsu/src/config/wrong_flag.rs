//! Values of the options of every command that are wrong in themselves: such a command line ends with exit code 2, as one
//! that cannot be parsed does.

use std::fmt;
use std::path::Path;

use super::without_password;

/// What is wrong with an option.
#[derive(Debug)]
pub struct WrongFlag(pub String);

impl fmt::Display for WrongFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongFlag {}

/// `url` is the absolute address of `--store`. A folder is made only for the data directory: a mistyped path must not
/// become an empty store in new folders.
pub fn check_store(url: &str, data_dir: &Path) -> Result<(), WrongFlag> {
    let is_known = url == "memory:" || url.starts_with("postgres:") || url.starts_with("postgresql:");
    if is_known {
        return Ok(());
    }
    let Some(file) = url.strip_prefix("sqlite:").filter(|path| !path.is_empty()) else {
        return Err(WrongFlag(format!(
            "--store {}: this names no store; expected memory:, sqlite:PATH or postgres://…",
            without_password(url)
        )));
    };
    match Path::new(file).parent() {
        Some(folder) if !folder.is_dir() && !folder.starts_with(data_dir) => Err(WrongFlag(format!(
            "--store {url}: there is no folder {}; correct the path, or make the folder first",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_needs_a_known_kind_and_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (here, data) = (folder.path(), folder.path().join("data"));
        let check = |url: String| check_store(&url, &data).map_err(|wrong| wrong.to_string());
        for url in ["memory:", "postgres://u:p@h/db", "postgresql://h/db"] {
            check(url.to_owned()).unwrap();
        }
        check(format!("sqlite:{}", here.join("a.db").display())).unwrap();
        // The data directory is made by the first command.
        check(format!("sqlite:{}", data.join("a.db").display())).unwrap();
        let missing = check(format!("sqlite:{}", here.join("typo/a.db").display())).unwrap_err();
        assert!(missing.contains("no folder") && missing.contains("typo"), "{missing}");
        let unknown = check("mysql://u:secret@h/db".to_owned()).unwrap_err();
        assert!(unknown.contains("sqlite:PATH") && !unknown.contains("secret"), "{unknown}");
        check("sqlite:".to_owned()).unwrap_err();
    }
}
