//! Isolation by git: a run that writes does so in a fresh worktree on a branch of its own, and leaves a patch.
//!
//! The user's own tree is only looked at. The worktree goes when the run ends; the branch stays.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::run::Changes;

use super::process::{self, Answered, Ask};

/// Git is local; this long means something is wrong with the disk.
const GIT_MAX: Duration = Duration::from_secs(120);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A larger patch is not shown; it is there to be fetched from the branch.
const PATCH_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Whether a directory lies in a git tree, without asking git.
#[must_use]
pub fn is_inside_git(directory: &Path) -> bool {
    directory.ancestors().any(|folder| folder.join(".git").exists())
}

/// How git is called: with the user's environment, but without hooks, signatures or questions.
#[derive(Clone, Debug)]
pub struct Git {
    pub program: PathBuf,
    pub env: BTreeMap<String, String>,
}

const ALWAYS: &[&str] = &["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgsign=false", "-c", "core.fsmonitor=false"];

impl Git {
    pub fn find(own: &BTreeMap<String, String>) -> Option<Self> {
        let path = own.get("PATH").map_or("", String::as_str);
        let mut env: BTreeMap<String, String> = BTreeMap::new();
        for name in ["PATH", "HOME", "XDG_CONFIG_HOME"] {
            env.extend(own.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        for (name, value) in [("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C"), ("GIT_OPTIONAL_LOCKS", "0")] {
            env.insert(name.to_owned(), value.to_owned());
        }
        Some(Self { program: process::find("git", path)?, env })
    }

    async fn run(&self, directory: &Path, args: &[&str], stdin: Option<&str>) -> Result<String, String> {
        let args: Vec<String> = ALWAYS.iter().chain(args).map(|arg| (*arg).to_owned()).collect();
        let (program, env) = (self.program.as_path(), &self.env);
        let directory = Some(directory);
        let ask = Ask { program, args: &args, env, directory, stdin, within: GIT_MAX, bytes_max: PATCH_BYTES_MAX };
        match process::ask(ask).await {
            Some(Answered { code: Some(0), stdout, .. }) => Ok(stdout),
            Some(answered) => Err(format!("git: {}", answered.stderr.trim())),
            None => Err("git did not answer".to_owned()),
        }
    }

    /// Makes the worktree at `path`: on a new branch from the user's last commit, or on the branch of an earlier run.
    ///
    /// # Errors
    /// What git says; nothing is left behind.
    pub async fn open(&self, directory: &Path, path: &Path, branch: &str) -> Result<Worktree, String> {
        let top = self.run(directory, &["rev-parse", "--show-toplevel"], None).await?;
        let repository = PathBuf::from(top.trim_end_matches('\n'));
        let inside = directory.strip_prefix(&repository).unwrap_or(Path::new("")).to_owned();
        let status = self.run(&repository, &["status", "--porcelain", "-z", "--untracked-files=normal"], None).await?;
        let uncommitted = status.split('\0').filter(|entry| !entry.is_empty()).count() as u64;
        let common = self.run(&repository, &["rev-parse", "--path-format=absolute", "--git-common-dir"], None).await?;
        let place = path.display().to_string();
        let common = PathBuf::from(common.trim());
        let _alone = alone(&common).await?;
        // A worktree whose folder is gone would still hold its branch.
        self.run(&repository, &["worktree", "prune"], None).await?;
        let reference = format!("refs/heads/{branch}");
        let known = self.run(&repository, &["rev-parse", "--verify", "--quiet", &reference], None).await.is_ok();
        let add: &[&str] = if known {
            &["worktree", "add", "--quiet", &place, branch]
        } else {
            &["worktree", "add", "--quiet", "-b", branch, &place, "HEAD"]
        };
        // One that a killed daemon left behind is taken up as it is.
        if !path.join(".git").exists() {
            self.run(&repository, add, None).await?;
        }
        let base = self.run(path, &["rev-parse", "HEAD"], None).await?.trim().to_owned();
        Ok(Worktree {
            git: self.clone(),
            directory: path.join(&inside),
            path: path.to_owned(),
            common,
            branch: branch.to_owned(),
            repository,
            base,
            uncommitted,
        })
    }

    /// The patch between two commits.
    ///
    /// # Errors
    /// What git says.
    pub async fn diff(&self, changes: &Changes) -> Result<String, String> {
        let repository = Path::new(&changes.repository);
        self.run(repository, &["diff", "--binary", "--no-color", "--no-ext-diff", &changes.base, &changes.head], None)
            .await
    }

    /// Puts the patch into the user's tree, all of it or nothing; the index and what is not touched stay as they are.
    ///
    /// # Errors
    /// Why it does not fit.
    pub async fn apply(&self, changes: &Changes) -> Result<(), String> {
        let patch = self.diff(changes).await?;
        if patch.is_empty() {
            return Ok(());
        }
        let repository = Path::new(&changes.repository);
        self.run(repository, &["apply", "--whitespace=nowarn", "-"], Some(&patch)).await.map(drop)
    }
}

/// A worktree in use.
#[derive(Clone, Debug)]
pub struct Worktree {
    git: Git,
    pub path: PathBuf,
    /// The wished directory, inside the worktree.
    pub directory: PathBuf,
    /// Where objects and branches lie; a commit writes there.
    pub common: PathBuf,
    pub branch: String,
    pub repository: PathBuf,
    base: String,
    uncommitted: u64,
}

impl Worktree {
    /// Commits what was left uncommitted, says what came of it, and removes the folder.
    ///
    /// # Errors
    /// What git says; the folder is left as it is then.
    pub async fn close(self, message: &str) -> Result<Changes, String> {
        let git = &self.git;
        git.run(&self.path, &["add", "--all"], None).await?;
        if git.run(&self.path, &["diff", "--cached", "--quiet"], None).await.is_err() {
            let name = ["-c", "user.name=Matsu", "-c", "user.email=matsu@localhost"];
            let commit = ["commit", "--quiet", "--no-verify", "-m", message];
            git.run(&self.path, &[&name[..], &commit[..]].concat(), None).await?;
        }
        let head = git.run(&self.path, &["rev-parse", "HEAD"], None).await?.trim().to_owned();
        // The run may have gone elsewhere; what it ended with is what the branch shows.
        let reference = format!("refs/heads/{}", self.branch);
        git.run(&self.path, &["update-ref", &reference, &head], None).await?;
        let counted = git.run(&self.path, &["diff", "--numstat", &self.base, &head], None).await?;
        let (files, insertions, deletions) = count(&counted);
        let path = self.path.display().to_string();
        let _alone = alone(&self.common).await?;
        git.run(&self.repository, &["worktree", "remove", "--force", &path], None).await?;
        Ok(Changes {
            base: self.base,
            head,
            branch: self.branch,
            files,
            insertions,
            deletions,
            uncommitted_at_start: self.uncommitted,
            repository: self.repository.display().to_string(),
        })
    }
}

/// Git removes the folder of all worktrees with the last of them and makes it for the next: two runs that begin and end
/// at once would take it from each other. The lock is on the repository's own folder and goes with what is returned.
async fn alone(common: &Path) -> Result<File, String> {
    let clock = Clock::system();
    let until = clock.instant() + GIT_MAX;
    let folder = File::open(common).map_err(|error| format!("git: {error}"))?;
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::WouldBlock) if clock.instant() < until => clock.sleep(LOOK_EVERY).await,
            Err(error) => return Err(format!("git: the repository is busy: {error}")),
        }
    }
}

/// Files, insertions and deletions; of a binary file git counts no lines.
fn count(numstat: &str) -> (u64, u64, u64) {
    let mut sum = (0, 0, 0);
    for line in numstat.lines() {
        let mut fields = line.split('\t').map(|field| field.parse::<u64>().unwrap_or(0));
        sum.0 += 1;
        sum.1 += fields.next().unwrap_or(0);
        sum.2 += fields.next().unwrap_or(0);
    }
    sum
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_are_counted_and_binary_files_are_files() {
        assert_eq!(super::count("3\t1\ta.txt\n-\t-\tb.png\n0\t7\tc d.txt\n"), (3, 3, 8));
        assert_eq!(super::count(""), (0, 0, 0));
    }
}
