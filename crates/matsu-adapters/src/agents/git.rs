//! How the daemon calls git: never with hooks, filters, attributes or settings that a run could have written, and
//! always bounded in time, output and memory.
//!
//! Two kinds of calls. *Ours* work in a bare repository that was just written by us and borrows the objects it looks
//! at, so no configuration but ours is read. *The user's* work in the user's own repository, whose `.git` no run can
//! write; they are few: setting references, and bringing a change into the user's tree.

mod skeleton;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::confined::{Cell, View, Work, confined};
use super::process::{self, Answered, Ask, Input};
use super::runs_folder::write_private;
use super::shim::order::Stdin;
use crate::agents::removal::remove_folder;

pub use skeleton::{Format, Skeleton, quoted};

/// The lowest version that has all that is used here: `--attr-source` came with it.
pub const GIT_MIN: (u32, u32) = (2, 41);

/// Git is local; this long means something is wrong with the disk.
pub const GIT_MAX: Duration = Duration::from_secs(120);

/// Address space of a git that reads what a run has made. Deltas can grow without bound otherwise.
const MEMORY_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// A program with bounded memory: kibibytes, the program, its arguments.
const LIMITED: &str = "ulimit -v \"$1\" || exit 1; shift; exec \"$@\"";

/// Below the data directory: folders of ours for one call or one run, gone with it.
pub const SCRATCH: &str = "quarantine";

/// Longer than any run lasts.
const SCRATCH_KEPT: Duration = Duration::from_secs(48 * 3600);

/// A larger patch is not shown; it is there to be fetched from the branch.
pub const PATCH_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// In front of every command.
const ALWAYS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.untrackedCache=false",
    "core.packedGitWindowSize=32m",
    "core.packedGitLimit=512m",
    "core.bigFileThreshold=32m",
    "core.quotePath=true",
    "protocol.ext.allow=never",
    "commit.gpgsign=false",
    "submodule.recurse=false",
    "pack.threads=1",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Git's own refusals of the environment: no questions, no network, no replaced objects.
const QUIET: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "file"),
    ("GIT_ADVICE", "0"),
    ("LC_ALL", "C"),
];

#[derive(Clone, Debug)]
pub struct Git {
    pub program: PathBuf,
    own: BTreeMap<String, String>,
}

/// Whose configuration a call reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Ours,
    Users,
}

/// One call.
pub struct Call<'a> {
    pub whose: Whose,
    pub git_dir: &'a Path,
    pub args: Vec<String>,
    pub work_tree: Option<&'a Path>,
    /// Attributes are those of this commit.
    pub attributes: Option<&'a str>,
    pub env: Vec<(&'static str, String)>,
    pub stdin: Input,
    pub bytes_max: u64,
}

impl<'a> Call<'a> {
    pub fn new(whose: Whose, git_dir: &'a Path, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let (env, stdin) = (Vec::new(), Input::Nothing);
        Self { whose, git_dir, args, work_tree: None, attributes: None, env, stdin, bytes_max: PATCH_BYTES_MAX }
    }

    pub fn attributes(mut self, commit: &'a str) -> Self {
        self.attributes = Some(commit);
        self
    }

    pub fn work_tree(mut self, tree: &'a Path) -> Self {
        self.work_tree = Some(tree);
        self
    }

    pub fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// What is committed is Matsu's own.
    pub fn by_matsu(self) -> Self {
        self.env("GIT_AUTHOR_NAME", "Matsu")
            .env("GIT_AUTHOR_EMAIL", "matsu@localhost")
            .env("GIT_COMMITTER_NAME", "Matsu")
            .env("GIT_COMMITTER_EMAIL", "matsu@localhost")
    }

    pub fn stdin(mut self, stdin: Input) -> Self {
        self.stdin = stdin;
        self
    }

    /// Everything behind the name of the program.
    fn line(&self) -> Vec<String> {
        let mut args = Git::flags();
        args.push(format!("--git-dir={}", self.git_dir.display()));
        args.extend(self.work_tree.map(|tree| format!("--work-tree={}", tree.display())));
        args.extend(self.attributes.map(|commit| format!("--attr-source={commit}")));
        args.extend(self.args.iter().cloned());
        args
    }
}

/// The version of the git that runs of agents use.
///
/// # Errors
/// There is none, or it is too old.
pub async fn git_version(environment: &BTreeMap<String, String>) -> Result<String, String> {
    Git::find(environment)?.check_version().await
}

impl Git {
    pub fn find(own: &BTreeMap<String, String>) -> Result<Self, String> {
        let path = own.get("PATH").map_or("", String::as_str);
        let program = process::find("git", path).ok_or("git is not installed; install it, or use isolation none")?;
        Ok(Self { program, own: own.clone() })
    }

    /// The flags that go before every command.
    pub fn flags() -> Vec<String> {
        ALWAYS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]).collect()
    }

    /// The whole environment of a call.
    pub fn environment(&self, whose: Whose) -> BTreeMap<String, String> {
        let own = |name: &str| self.own.get(name).map(|value| (name.to_owned(), value.clone()));
        let mut env: BTreeMap<String, String> = own("PATH").into_iter().collect();
        env.extend(QUIET.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        match whose {
            Whose::Users => env.extend(["HOME", "XDG_CONFIG_HOME"].into_iter().filter_map(own)),
            Whose::Ours => {
                let nothing = [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("HOME", "/")];
                env.extend(nothing.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
        }
        env
    }

    /// The files of the user's own settings for git, for a view that must read them.
    pub fn user_files(&self) -> Vec<PathBuf> {
        let home = self.own.get("HOME").map(PathBuf::from).unwrap_or_default();
        let config = self.own.get("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        vec![home.join(".gitconfig"), config.join("git")]
    }

    /// What it says about its version.
    ///
    /// # Errors
    /// Too old, or it does not answer.
    pub async fn check_version(&self) -> Result<String, String> {
        let env = self.environment(Whose::Ours);
        let ask = Ask { args: vec!["version".to_owned()], within: GIT_MAX, ..Ask::new(&self.program, &env) };
        let answered = process::ask(ask).await.ok_or("git does not answer")?;
        let text = String::from_utf8_lossy(&answered.stdout).trim().to_owned();
        let (major, minor) = GIT_MIN;
        match version_of(&text) {
            Some(version) if version >= GIT_MIN => Ok(text),
            _ => Err(format!(
                "git is too old: `{text}`; version {major}.{minor} or newer is needed. Update git, or use \
                 isolation none"
            )),
        }
    }

    /// # Errors
    /// It did not answer in time.
    pub async fn ask(&self, call: Call<'_>) -> Result<Answered, String> {
        let args = call.line();
        let name = call.args.first().cloned().unwrap_or_default();
        let mut env = self.environment(call.whose);
        env.extend(call.env.into_iter().map(|(name, value)| (name.to_owned(), value)));
        let ask = Ask {
            args,
            directory: Some(call.work_tree.unwrap_or(call.git_dir)),
            stdin: call.stdin,
            within: GIT_MAX,
            bytes_max: call.bytes_max,
            memory_max: Some(MEMORY_MAX),
            ..Ask::new(&self.program, &env)
        };
        let answered = process::ask(ask).await;
        answered.ok_or_else(|| format!("git {name} did not end within {} seconds", GIT_MAX.as_secs()))
    }

    /// The same from inside a confinement: for calls that start what the settings of the repository name, such as
    /// filters. A run may have made that repository.
    ///
    /// # Errors
    /// It could not be confined, did not end in time, or printed too much.
    pub async fn ask_confined(&self, cell: &Cell, view: View, call: Call<'_>) -> Result<Answered, String> {
        let mut args = ["-c", LIMITED, "sh"].map(str::to_owned).to_vec();
        args.extend([(MEMORY_MAX / 1024).to_string(), self.program.display().to_string()]);
        args.extend(call.line());
        let name = call.args.first().cloned().unwrap_or_default();
        let mut env = self.environment(call.whose);
        env.extend(call.env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let stdin = cell.scratch.join("stdin");
        match call.stdin {
            Input::Nothing => write_private(&stdin, ""),
            Input::Bytes(bytes) => fs::write(&stdin, bytes),
            Input::File(mut file) => File::create(&stdin).and_then(|mut copy| io::copy(&mut file, &mut copy)).map(drop),
        }
        .map_err(|error| error.to_string())?;
        let work = Work {
            program: Path::new("/bin/sh"),
            args,
            env,
            directory: call.work_tree.unwrap_or(call.git_dir),
            stdin: Stdin::File(stdin),
            within: GIT_MAX,
            bytes_max: call.bytes_max,
            into: None,
        };
        let done = confined(cell, work, view).await.map_err(|error| format!("git {name}: {error}"))?;
        Ok(Answered { code: done.code, stdout: done.stdout, stderr: done.stderr, is_cut: false })
    }

    /// Of the user's own tree: its `.git`, the shared one, and its objects, one on each line.
    ///
    /// # Errors
    /// It is no repository.
    pub async fn places(&self, top: &Path) -> Result<String, String> {
        let words = ["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--git-path", "objects"];
        let found = self.ask_in(top, &words, Ask::OUTPUT_BYTES_MAX).await?;
        Ok(String::from_utf8_lossy(&found).into_owned())
    }

    /// Every setting that holds in the user's own tree, each ended by a zero byte.
    ///
    /// # Errors
    /// It is no repository.
    pub async fn config(&self, top: &Path) -> Result<Vec<u8>, String> {
        self.ask_in(top, &["config", "--list", "-z"], PATCH_BYTES_MAX).await
    }

    /// Lets git find the repository of a folder by itself.
    async fn ask_in(&self, top: &Path, words: &[&str], bytes_max: u64) -> Result<Vec<u8>, String> {
        let mut args = Self::flags();
        args.extend(words.iter().map(|word| (*word).to_owned()));
        let env = self.environment(Whose::Users);
        let ask = Ask { args, directory: Some(top), within: GIT_MAX, bytes_max, ..Ask::new(&self.program, &env) };
        match process::ask(ask).await {
            Some(Answered { code: Some(0), stdout, .. }) => Ok(stdout),
            Some(answered) => {
                Err(format!("{} is not a git repository any more: {}", top.display(), words_of(&answered)))
            }
            None => Err(format!("git could not be started, or did not answer in time, in {}", top.display())),
        }
    }

    /// What it prints.
    ///
    /// # Errors
    /// Why git failed, in its own words.
    pub async fn run(&self, call: Call<'_>) -> Result<Vec<u8>, String> {
        let name = call.args.first().cloned().unwrap_or_default();
        let bytes_max = call.bytes_max;
        match self.ask(call).await? {
            Answered { is_cut: true, .. } => Err(format!("git {name} printed more than {bytes_max} bytes")),
            answered => printed(&name, answered),
        }
    }

    /// The one line it prints.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn line(&self, call: Call<'_>) -> Result<String, String> {
        let bytes = self.run(call).await?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    /// Whether it exits with 0 and not with 1.
    ///
    /// # Errors
    /// Any other end.
    pub async fn is_true(&self, call: Call<'_>) -> Result<bool, String> {
        let name = call.args.first().cloned().unwrap_or_default();
        match self.ask(call).await? {
            Answered { code: Some(0), .. } => Ok(true),
            Answered { code: Some(1), .. } => Ok(false),
            answered => Err(format!("git {name}: {}", words_of(&answered))),
        }
    }
}

/// What it printed, if it went well.
///
/// # Errors
/// Why git failed, in its own words.
pub fn printed(name: &str, answered: Answered) -> Result<Vec<u8>, String> {
    match answered {
        Answered { code: Some(0), stdout, .. } => Ok(stdout),
        answered => Err(format!("git {name}: {}", words_of(&answered))),
    }
}

fn words_of(answered: &Answered) -> String {
    match (answered.stderr.trim(), answered.code) {
        ("", Some(code)) => format!("it exited with code {code} and printed no error"),
        ("", None) => "it was ended by a signal".to_owned(),
        (words, _) => matsu_core::job::end::clip(words, 1_000),
    }
}

fn version_of(text: &str) -> Option<(u32, u32)> {
    let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut parts = number.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Copies an index, with its time: git looks into a file whose time is not before that of the index, and would take an
/// edit of the same second for none if the copy were newer. No index yet is none afterwards.
pub fn copy_index(git_dir: &Path, to: &Path) -> Result<(), String> {
    copy_index_file(&git_dir.join("index"), to)
}

/// The same for an index that has another name.
pub fn copy_index_file(from: &Path, to: &Path) -> Result<(), String> {
    let copied = fs::copy(from, to).and_then(|_| {
        let at = fs::metadata(from)?.modified()?;
        File::options().write(true).open(to)?.set_modified(at)
    });
    match copied {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        copied => copied.map_err(|error| format!("the index cannot be read: {error}")),
    }
}

/// Removes what calls of a killed daemon have left. Others may be at work beside us, so only what is old.
pub fn sweep_scratch(data_dir: &Path) {
    for entry in fs::read_dir(data_dir.join(SCRATCH)).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > SCRATCH_KEPT) {
            let _ = remove_folder(&entry.path());
        }
    }
}

/// A file from where it is now, as the input of a call.
pub fn file_from(path: &Path, offset: u64) -> io::Result<Input> {
    use std::io::{Seek, SeekFrom};
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(Input::File(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version_of("git version 2.47.3"), Some((2, 47)));
        assert_eq!(version_of("git version 2.39.5 (Apple Git-154)"), Some((2, 39)));
        assert_eq!(version_of("nothing"), None);
        assert!(version_of("git version 2.9.1").is_some_and(|version| version < GIT_MIN));
    }
}
