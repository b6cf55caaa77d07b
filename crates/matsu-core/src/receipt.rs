//! Checks and receipts: the command that must pass before a run counts as done, and the stored proof that it did.

use serde::{Deserialize, Serialize};

use crate::confinement::Confinement;
use crate::usage::Usage;
use crate::words::words;

/// A command that Matsu runs on the last commit of a run. Exit code 0 is the proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub command: CheckCommand,
    pub timeout_seconds: u32,
    /// Whether the check may use the network.
    #[serde(default)]
    pub network: bool,
    /// Files that the run must not change, as patterns of paths from the top of the repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protect: Vec<String>,
}

/// A file of a repository that names a command. A person must allow it before anything of it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    pub file: String,
    /// Of its content.
    pub sha256: String,
    /// What it wants to run.
    pub command: String,
}

/// The id of the question whether such a file may be used. It is answered by `matsu allow`, and not over any wire.
pub const CONSENT_QUESTION: &str = "matsu.allow";

/// One line for the shell, or a program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CheckCommand {
    Line(String),
    Words(Vec<String>),
}

impl CheckCommand {
    /// The program and its arguments.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        match self {
            Self::Line(line) => ["/bin/sh", "-c", line].map(str::to_owned).to_vec(),
            Self::Words(words) => words.clone(),
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Line(line) => line.trim().is_empty(),
            Self::Words(words) => words.first().is_none_or(|program| program.trim().is_empty()),
        }
    }
}

impl std::fmt::Display for CheckCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(line) => f.write_str(line),
            Self::Words(words) => {
                let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                f.write_str(&quoted.join(" "))
            }
        }
    }
}

/// A word as a shell would have to read it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

words! {
    /// Which network a check had.
    pub enum CheckNetwork {
        Off = "off",
        On = "on",
        /// It was to be off, and the confinement of this machine cannot cut it.
        NotCut = "not cut",
    }
}

/// What is known of a check before it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFacts {
    /// The hash of the tree that is checked.
    pub tree: String,
    /// Files of tests and of the build that the run changed.
    #[serde(default)]
    pub changed_tests: Vec<String>,
    /// Protected files that the run changed; then the command is not run.
    #[serde(default)]
    pub changed_protected: Vec<String>,
    /// Protected files that are not as committed after setup has run; then the command is not run.
    #[serde(default)]
    pub changed_by_setup: Vec<String>,
    pub confinement: Confinement,
    pub network: CheckNetwork,
    /// Milliseconds since 1970.
    pub started_at: i64,
}

/// The stored proof of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub passed: bool,
    /// Why it did not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub repository: String,
    pub base: String,
    pub head: String,
    pub tree: String,
    pub check: Check,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub seconds: f64,
    /// SHA-256 of everything that the check printed, as text.
    pub log_sha256: String,
    pub log_bytes: u64,
    /// How often the agent worked and was checked.
    pub rounds: u32,
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    pub confinement: Confinement,
    pub network: CheckNetwork,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_tests: Vec<String>,
    /// Milliseconds since 1970.
    pub checked_at: i64,
}

/// The names that `make` looks for, so one of them can stand in for another.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// What is wrong with a pattern of protected files. A pattern that can match no file of the repository protects nothing,
/// and that must not go unnoticed.
///
/// # Errors
/// Why it protects nothing, and what is expected.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let expected = "a path or pattern inside the repository, such as tests/**, *.sh or Makefile, is expected";
    let wrong = |why: &str| Err(format!("the pattern {pattern:?} {why}; {expected}"));
    if pattern.starts_with('/') {
        return wrong("begins with /");
    }
    if pattern.chars().any(|c| c.is_control() || matches!(c, '[' | ']' | '{' | '}' | '\\' | '!')) {
        return wrong("has an unsupported pattern character ([ ] { } \\ !) or a control character");
    }
    let parts: Vec<&str> = meant(pattern).split('/').collect();
    if parts.iter().any(|part| part.trim().is_empty() || *part == ".") {
        return wrong("is empty, or has an empty part between two /");
    }
    if parts.contains(&"..") {
        return wrong("leads out of the repository with ..");
    }
    if parts.first() == Some(&".git") {
        return wrong("names .git, which cannot be protected");
    }
    Ok(())
}

/// Without the `./` before and the `/` behind it.
fn meant(pattern: &str) -> &str {
    let mut pattern = pattern;
    while let Some(rest) = pattern.strip_prefix("./") {
        pattern = rest;
    }
    pattern.trim_matches('/')
}

/// Whether a file is protected. With any pattern `.gitattributes` is too, for it changes what other files are when they
/// are checked out; and with one name of a makefile the other two.
#[must_use]
pub fn is_protected(patterns: &[String], path: &str) -> bool {
    let is_meant = |path: &str| patterns.iter().any(|pattern| matches(pattern, path));
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    if name == ".gitattributes" && !patterns.is_empty() {
        return true;
    }
    is_meant(path) || (MAKEFILES.contains(&name) && MAKEFILES.iter().any(|other| is_meant(&beside(folder, other))))
}

/// The other names of a makefile, in the same folder. Empty for any other file.
#[must_use]
pub fn other_makefiles(path: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let is_other = |other: &&&str| MAKEFILES.contains(&name) && **other != name;
    MAKEFILES.iter().filter(is_other).map(|other| beside(folder, other)).collect()
}

fn beside(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Whether a path is meant by a pattern, as in `.gitignore`: `*` and `?` stay inside one name, `**` stands for any
/// folders, a folder means everything in it, and a pattern without a slash is looked for in every folder.
fn matches(pattern: &str, path: &str) -> bool {
    let mut pattern: Vec<&str> = meant(pattern).split('/').collect();
    if pattern.len() == 1 {
        pattern.insert(0, "**");
    }
    let path: Vec<&str> = path.split('/').collect();
    folders_match(&pattern, &path)
}

fn folders_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern, path) {
        ([], _) => true,
        (["**"], rest) => !rest.is_empty(),
        (["**", after @ ..], rest) => (0..=rest.len()).any(|skipped| folders_match(after, &rest[skipped..])),
        (_, []) => false,
        ([name, after @ ..], [first, rest @ ..]) => {
            let (name, first): (Vec<char>, Vec<char>) = (name.chars().collect(), first.chars().collect());
            name_matches(&name, &first) && folders_match(after, rest)
        }
    }
}

fn name_matches(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['*', after @ ..], _) => (0..=name.len()).any(|skipped| name_matches(after, &name[skipped..])),
        (['?', after @ ..], [_, rest @ ..]) => name_matches(after, rest),
        ([one, after @ ..], [other, rest @ ..]) => one == other && name_matches(after, rest),
        _ => false,
    }
}

/// Whether a path looks like a test, in the habits of the common languages.
#[must_use]
pub fn is_test(path: &str) -> bool {
    let lower = path.to_lowercase();
    let mut folders = lower.split('/').rev();
    let name = folders.next().unwrap_or_default();
    let is_folder = |folder: &str| matches!(folder, "test" | "tests" | "__tests__" | "spec" | "specs" | "testdata");
    let stem = name.split('.').next().unwrap_or_default();
    let has_suffix = |suffix: &str| stem.ends_with(suffix);
    folders.any(is_folder)
        || stem == "test"
        || stem == "tests"
        || stem == "conftest"
        || stem.starts_with("test_")
        || ["_test", "_tests", "_spec", "-test", "-spec"].into_iter().any(has_suffix)
        || name.contains(".test.")
        || name.contains(".spec.")
        || path.rsplit('/').next().is_some_and(|name| name.contains("Test.") || name.contains("Tests."))
}

/// Whether a path says how the repository is built, tested or checked: a change of it can change what a check proves.
#[must_use]
pub fn is_build(path: &str) -> bool {
    const NAMES: &[&str] = &[
        ".gitattributes",
        ".gitlab-ci.yml",
        ".matsu.toml",
        ".travis.yml",
        "azure-pipelines.yml",
        "build.gradle",
        "build.gradle.kts",
        "build.rs",
        "cargo.toml",
        "cmakelists.txt",
        "gnumakefile",
        "jenkinsfile",
        "justfile",
        "makefile",
        "noxfile.py",
        "package.json",
        "pom.xml",
        "pyproject.toml",
        "pytest.ini",
        "rakefile",
        "setup.cfg",
        "setup.py",
        "taskfile.yml",
        "tox.ini",
    ];
    let lower = path.to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or_default();
    NAMES.contains(&name)
        || std::path::Path::new(name).extension().is_some_and(|extension| extension == "mk")
        || name.starts_with("jest.config.")
        || name.starts_with("vitest.config.")
        || [".github/workflows/", ".github/actions/", ".circleci/"].iter().any(|folder| lower.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_known_by_their_names() {
        for path in [
            "tests/a.rs",
            "src/__tests__/a.js",
            "test.sh",
            "a/test_x.py",
            "a_test.go",
            "a.spec.ts",
            "src/ATest.java",
            "conftest.py",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in ["src/a.rs", "contest.py", "src/latest.rs", "attestation/a.go", "Makefile"] {
            assert!(!is_test(path), "{path}");
        }
    }

    #[test]
    fn files_of_the_build_are_known_by_their_names() {
        for path in ["Makefile", "sub/GNUmakefile", "web/package.json", ".github/workflows/ci.yml", "rules.mk"] {
            assert!(is_build(path) && !is_test(path), "{path}");
        }
        for path in ["src/a.rs", "docs/Makefile.md", "package-lock.json", "x/.github/workflows.md"] {
            assert!(!is_build(path), "{path}");
        }
    }

    #[test]
    fn protected_paths_are_known_by_their_patterns() {
        for (pattern, path) in [
            ("tests/**", "tests/a/b.rs"),
            ("tests/**", "tests/a.rs"),
            ("tests", "tests/a/b.rs"),
            ("tests/", "tests/a/b.rs"),
            ("./tests/**", "tests/a.rs"),
            ("**/*.test.ts", "src/x/a.test.ts"),
            ("**/*.test.ts", "a.test.ts"),
            ("Makefile", "Makefile"),
            ("Makefile", "sub/Makefile"),
            ("Makefile", "GNUmakefile"),
            ("sub/Makefile", "sub/makefile"),
            ("*.sh", "tests/t.sh"),
            ("t.sh", "tests/t.sh"),
            ("tests/**", "docs/.gitattributes"),
            ("src/?.rs", "src/a.rs"),
        ] {
            assert!(is_protected(&[pattern.to_owned()], path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("tests/**", "src/tests.rs"),
            ("tests/**", "GNUmakefile"),
            ("sub/Makefile", "GNUmakefile"),
            ("src/*.rs", "src/a/b.rs"),
        ] {
            assert!(!is_protected(&[pattern.to_owned()], path), "{pattern} {path}");
        }
        assert!(!is_protected(&[], ".gitattributes"));
        assert_eq!(other_makefiles("a/Makefile"), ["a/GNUmakefile", "a/makefile"]);
        assert!(other_makefiles("a/b.mk").is_empty());
    }

    #[test]
    fn a_pattern_that_protects_nothing_is_named() {
        for good in ["tests/**", "./tests/**", "*.sh", "t.sh", "Makefile", "a/b/", "**", "日本/*.sh", ".github/**"] {
            assert_eq!(check_pattern(good), Ok(()), "{good}");
        }
        for bad in ["", " ", "./", "../x", "a/../b", "/etc/**", "[bad", "!a", "a//b", ".git/config", "a\\b", "a\nb"] {
            let why = check_pattern(bad).unwrap_err();
            assert!(why.contains(&format!("{bad:?}")), "{bad}: {why}");
        }
    }

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let words = ["make", "check all", "it's"].map(str::to_owned).to_vec();
        assert_eq!(CheckCommand::Words(words).to_string(), r"make 'check all' 'it'\''s'");
        let line: CheckCommand = serde_json::from_str("\"cargo test && echo ok\"").unwrap();
        assert_eq!((line.to_string().as_str(), line.words().len()), ("cargo test && echo ok", 3));
        assert!(CheckCommand::Line(" ".to_owned()).is_empty() && CheckCommand::Words(Vec::new()).is_empty());
    }
}
