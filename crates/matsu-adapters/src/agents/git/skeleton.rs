//! Repositories that are written file by file.

use std::io;
use std::path::{Path, PathBuf};

use super::super::runs_folder::{make_private, write_private};

/// How a repository names its objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Sha1,
    Sha256,
}

impl Format {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "sha1" => Some(Self::Sha1),
            "sha256" => Some(Self::Sha256),
            _ => None,
        }
    }

    /// Whether this is the name of an object, and nothing else.
    pub fn is_object(self, text: &str) -> bool {
        let length = if self == Self::Sha1 { 40 } else { 64 };
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    }
}

/// A repository that is written file by file, so that nothing but this is in it.
pub struct Skeleton<'a> {
    pub format: Format,
    pub is_bare: bool,
    /// Object folders that it borrows from.
    pub borrows: &'a [PathBuf],
    /// What the history lacks, where it is cut.
    pub shallow: Option<&'a str>,
    /// More lines of its configuration.
    pub settings: &'a str,
}

impl Skeleton<'_> {
    /// # Errors
    /// A folder cannot be written, or the name of one cannot stand in a list of them.
    pub fn write(&self, git_dir: &Path) -> io::Result<()> {
        for folder in ["objects/info", "objects/pack", "refs/heads", "info"] {
            make_private(&git_dir.join(folder))?;
        }
        let mut lenders = String::new();
        for path in self.borrows {
            let line = path.to_str().filter(|line| !line.contains('\n') && line.starts_with('/'));
            let line = line.ok_or_else(|| {
                io::Error::other(format!("git cannot use the objects in {}: its name contains a line break or is not UTF-8; rename the folder", path.display()))
            })?;
            lenders.push_str(line);
            lenders.push('\n');
        }
        write_private(&git_dir.join("objects/info/alternates"), &lenders)?;
        let (version, extension) = match self.format {
            Format::Sha1 => (0, ""),
            Format::Sha256 => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        };
        let (bare, settings) = (self.is_bare, self.settings);
        let config = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tfilemode = true\n\tbare = {bare}\n\
             \tlogallrefupdates = true\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n{extension}{settings}"
        );
        write_private(&git_dir.join("config"), &config)?;
        if let Some(shallow) = self.shallow {
            write_private(&git_dir.join("shallow"), shallow)?;
        }
        write_private(&git_dir.join("HEAD"), "ref: refs/heads/none\n")
    }
}

/// A value in a configuration file.
pub fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{}\"", escaped.chars().filter(|c| !c.is_control()).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_of_objects_are_names() {
        assert!(Format::Sha1.is_object(&"a1".repeat(20)) && Format::Sha256.is_object(&"a1".repeat(32)));
        for bad in ["", "HEAD", "--all", "A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1", &"a1".repeat(32)] {
            assert!(!Format::Sha1.is_object(bad), "{bad}");
        }
    }

    #[test]
    fn a_value_stays_one_value() {
        assert_eq!(quoted("a\"b\\c\nd\u{7}"), "\"a\\\"b\\\\c\\nd\"");
    }
}
