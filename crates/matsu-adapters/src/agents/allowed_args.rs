//! Arguments that a caller may pass to a program: the flags that its definition lists, each with a kind of value. A
//! value is checked for what it says, so that none reaches further than the run's mode and roots, and none becomes a
//! flag of its own.

use std::path::{Path, PathBuf};

use matsu_core::job::end::clip;
use matsu_core::run::Mode;

use super::git_paths;

const ARGS_MAX: usize = 64;
const VALUE_BYTES_MAX: usize = 4_096;

/// One line of a definition's `allow_args`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    pub flag: String,
    pub value: Option<(Form, Kind)>,
}

/// How a flag and its value are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `--flag=value`, one argument.
    Joined,
    /// `--flag value`, two.
    Apart,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One line of any text.
    Text,
    /// Letters, digits and a few signs.
    Word,
    Number,
    /// Something that exists inside the roots. In a mode that writes it must have nothing to do with a repository:
    /// there a run works in a tree of its own.
    PathInRoots,
    OneOf(Vec<String>),
    /// Some of these, separated by commas or spaces.
    SomeOf(Vec<String>),
}

impl Allowed {
    /// `--switch`, `--flag=KIND` or `--flag KIND`; without a kind it is text.
    pub fn parse(line: &str) -> Result<Self, String> {
        let (flag, value) = match line.find(['=', ' ']) {
            None => (line, None),
            Some(at) => {
                let form = if line[at..].starts_with('=') { Form::Joined } else { Form::Apart };
                (&line[..at], Some((form, Kind::parse(&line[at + 1..])?)))
            }
        };
        if !flag.starts_with('-') || flag.trim_matches('-').is_empty() {
            return Err(format!(
                "allow_args contains {line:?}; each entry must begin with a flag, such as --flag=KIND"
            ));
        }
        Ok(Self { flag: flag.to_owned(), value })
    }
}

impl Kind {
    fn parse(text: &str) -> Result<Self, String> {
        let words = |list: &str| list.split(',').map(str::to_owned).collect();
        match text.split_once(':') {
            Some(("one-of", list)) => return Ok(Self::OneOf(words(list))),
            Some(("some-of", list)) => return Ok(Self::SomeOf(words(list))),
            _ => {}
        }
        match text {
            "" | "text" => Ok(Self::Text),
            "word" => Ok(Self::Word),
            "number" => Ok(Self::Number),
            "path-in-roots" => Ok(Self::PathInRoots),
            other => Err(format!(
                "allow_args contains the unknown kind {other:?}; the kinds are text, word, number, path-in-roots, one-of:A,B and \
                 some-of:A,B"
            )),
        }
    }

    fn expected(&self) -> String {
        match self {
            Self::Text => "one line of text that does not begin with -".to_owned(),
            Self::Word => "a name of letters, digits, . _ : / @ + -, that does not begin with -".to_owned(),
            Self::Number => "a whole number".to_owned(),
            Self::PathInRoots => "a path inside the roots".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::SomeOf(words) => format!("some of {}", words.join(", ")),
        }
    }
}

/// What a value is held against.
pub struct Bounds<'a> {
    pub mode: Mode,
    /// Relative paths are meant from here.
    pub directory: Option<&'a Path>,
    /// With links resolved.
    pub roots: &'a [PathBuf],
}

/// Why an argument is refused: the flag, what is expected, and the whole sentence.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused {
    pub flag: String,
    pub expected: String,
    pub message: String,
}

/// The arguments as the program gets them.
pub fn check(agent: &str, allowed: &[Allowed], args: &[String], bounds: &Bounds<'_>) -> Result<Vec<String>, Refused> {
    if args.len() > ARGS_MAX {
        let expected = format!("at most {ARGS_MAX} arguments");
        let message = format!("args has {} arguments; {expected} are allowed", args.len());
        return Err(Refused { flag: "args".to_owned(), expected, message });
    }
    let mut passed = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let (flag, value) = arg.split_once('=').map_or((arg.as_str(), None), |(flag, value)| (flag, Some(value)));
        let known = allowed.iter().find(|allowed| allowed.flag == flag);
        match known.map(|known| &known.value) {
            Some(None) if value.is_none() => passed.push(flag.to_owned()),
            Some(Some((form, kind))) => {
                let Some(value) = value.or_else(|| rest.next().map(String::as_str)) else {
                    let message = format!("args: {flag} needs a value: {}", kind.expected());
                    return Err(Refused { flag: flag.to_owned(), expected: format!("{flag} VALUE"), message });
                };
                let value = check_value(kind, value, bounds).map_err(|why| {
                    let shown: String = value.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
                    let message = format!("args: {flag} has the value {:?}, {why}", clip(&shown, 80));
                    Refused { flag: flag.to_owned(), expected: kind.expected(), message }
                })?;
                match form {
                    Form::Joined => passed.push(format!("{flag}={value}")),
                    Form::Apart => passed.extend([flag.to_owned(), value]),
                }
            }
            _ => return Err(unknown(agent, allowed, flag, value.or(rest.next().map(String::as_str)))),
        }
    }
    Ok(passed)
}

fn unknown(agent: &str, allowed: &[Allowed], flag: &str, value: Option<&str>) -> Refused {
    let value =
        value.filter(|value| !value.starts_with('-')).map(|value| format!(" with its value {}", clip(value, 80)));
    let names = allowed.iter().map(|allowed| allowed.flag.as_str()).collect::<Vec<_>>().join(", ");
    let names = if names.is_empty() { "none".to_owned() } else { names };
    let shown = clip(flag, 80);
    let message =
        format!("args: {shown}{} is not allowed for {agent}; allowed are: {names}", value.unwrap_or_default());
    Refused { flag: shown, expected: format!("one of: {names}"), message }
}

fn check_value(kind: &Kind, value: &str, bounds: &Bounds<'_>) -> Result<String, String> {
    let expected = || format!("which is not {}", kind.expected());
    if value.len() > VALUE_BYTES_MAX {
        return Err(format!("which has {} bytes; at most {VALUE_BYTES_MAX} are allowed", value.len()));
    }
    if value.starts_with('-') {
        return Err("which begins with - and could be read as a flag".to_owned());
    }
    if value.chars().any(char::is_control) {
        return Err("which contains a line break or another control character".to_owned());
    }
    let is_listed = |words: &[String], value: &str| words.iter().any(|word| word == value);
    match kind {
        Kind::Text => Ok(value.to_owned()),
        Kind::Word => {
            let is_good = |c: char| c.is_ascii_alphanumeric() || "._:/@+-".contains(c);
            let is_word = (1..=200).contains(&value.len()) && value.chars().all(is_good);
            is_word.then(|| value.to_owned()).ok_or_else(expected)
        }
        Kind::Number => {
            let is_number = (1..=9).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| value.to_owned()).ok_or_else(expected)
        }
        Kind::OneOf(words) => is_listed(words, value).then(|| value.to_owned()).ok_or_else(expected),
        Kind::SomeOf(words) => {
            let some: Vec<&str> = value.split([',', ' ']).filter(|word| !word.is_empty()).collect();
            let is_good = !some.is_empty() && some.iter().all(|word| is_listed(words, word));
            is_good.then(|| some.join(",")).ok_or_else(expected)
        }
        Kind::PathInRoots => path(value, bounds),
    }
}

fn path(value: &str, bounds: &Bounds<'_>) -> Result<String, String> {
    let base = bounds.directory.unwrap_or(Path::new("/"));
    let real = base.join(value).canonicalize().map_err(|_| "which does not exist".to_owned())?;
    if !bounds.roots.iter().any(|root| real.starts_with(root)) {
        return Err("which lies outside the roots of this run".to_owned());
    }
    // Several programs take a list here.
    let text = real.to_str().filter(|text| !text.contains(',') && !text.chars().any(char::is_control));
    let text = text.ok_or("whose name contains a comma or a character that is not allowed in an argument")?;
    if bounds.mode.writes() && (git_paths::is_inside_git(&real) || git_paths::has_git_below(&real)) {
        return Err(
            "which belongs to a git repository; a run that writes may write only in its own worktree".to_owned()
        );
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<Allowed> {
        let lines = [
            "--fast",
            "--level=",
            "--apart text",
            "--name=word",
            "--count=number",
            "--dir=path-in-roots",
            "--kind=one-of:a,b",
            "--tools=some-of:Read,Grep",
        ];
        lines.iter().map(|line| Allowed::parse(line).unwrap()).collect()
    }

    fn checked(args: &[&str], bounds: &Bounds<'_>) -> Result<Vec<String>, String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        check("x", &allowed(), &args, bounds).map_err(|refused| refused.message)
    }

    fn nowhere() -> Bounds<'static> {
        Bounds { mode: Mode::ReadOnly, directory: None, roots: &[] }
    }

    #[test]
    fn both_spellings_of_a_flag_pass_and_are_written_as_the_definition_says() {
        let given = ["--fast", "--level", "m n", "--level=o", "--apart=p", "--count", "7", "--tools", "Read Grep"];
        let passed = checked(&given, &nowhere()).unwrap();
        let expected = ["--fast", "--level=m n", "--level=o", "--apart", "p", "--count=7", "--tools=Read,Grep"];
        assert_eq!(passed, expected);
    }

    #[test]
    fn what_is_not_listed_is_refused_with_its_value() {
        for (given, words) in [
            (&["--evil", "value"][..], "--evil with its value value"),
            (&["--evil=value"], "--evil with its value value"),
            (&["--evil", "--fast"], "--evil is not allowed"),
            (&["positional"], "positional is not allowed"),
            (&["--"], "-- is not allowed"),
            (&["--fast=1"], "--fast"),
            (&["--level"], "needs a value"),
        ] {
            let refusal = checked(given, &nowhere()).unwrap_err();
            assert!(refusal.contains(words), "{given:?}: {refusal}");
        }
    }

    #[test]
    fn no_value_becomes_a_flag_or_says_more_than_its_kind() {
        let long = "x".repeat(VALUE_BYTES_MAX + 1);
        for given in [
            &["--level", "--fast"][..],
            &["--level=-x"],
            &["--apart", "-x"],
            &["--level", "a\nb"],
            &["--level", "a\0b"],
            &["--level", &long],
            &["--name", "a b"],
            &["--name="],
            &["--count", "1e9"],
            &["--count", "-1"],
            &["--kind", "c"],
            &["--tools", "Read,Bash"],
            &["--tools", "Bash(rm *)"],
            &["--tools", ","],
        ] {
            assert!(checked(given, &nowhere()).is_err(), "{given:?}");
        }
        let many = vec!["--fast"; ARGS_MAX + 1];
        assert!(checked(&many, &nowhere()).unwrap_err().contains("at most"));
    }

    #[test]
    fn a_path_stays_in_the_roots_and_away_from_repositories() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        for name in ["docs", "repo/.git", "repo/src", "a,b"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("/", root.join("out")).unwrap();
        let roots = [root.clone()];
        let of = |mode, value: &str| {
            let bounds = Bounds { mode, directory: Some(&root), roots: &roots };
            checked(&["--dir", value], &bounds)
        };
        let docs = format!("--dir={}", root.join("docs").display());
        assert_eq!(of(Mode::ReadOnly, "docs").unwrap(), std::slice::from_ref(&docs));
        assert_eq!(of(Mode::WorkspaceWrite, "docs").unwrap(), [docs]);
        assert!(of(Mode::ReadOnly, "repo/src").is_ok());
        for value in ["/", "..", "out", "out/etc", "nowhere", "a,b", "docs/../../.."] {
            assert!(of(Mode::ReadOnly, value).is_err(), "{value}");
        }
        for value in ["repo", "repo/src", "."] {
            assert!(of(Mode::WorkspaceWrite, value).unwrap_err().contains("git repository"), "{value}");
        }
    }

    #[test]
    fn a_bad_line_of_a_definition_is_named() {
        for line in ["fast", "--", "--x=path", "--x=one-off:a"] {
            assert!(Allowed::parse(line).unwrap_err().contains("allow_args"), "{line}");
        }
    }
}
