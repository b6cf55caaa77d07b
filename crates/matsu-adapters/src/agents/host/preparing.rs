//! Prepares a tree before anything works in it, as the repository's own file says: ignored files of the user's tree are
//! copied, then the setup command runs, confined and with the network. If setup makes nothing but `node_modules` or
//! `vendor`, that is kept by the content of the lock files, and the next tree with the same ones gets a copy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use matsu_core::job::end::clip;
use matsu_core::receipt::CheckCommand;
use matsu_core::run::TreeSetup;
use sha2::{Digest, Sha256};

use super::super::confined::{Cell, View, Work, confined, run};
use super::super::environment;
use super::super::git::{Git, SCRATCH};
use super::super::removal::remove_folder;
use super::super::runs_folder::make_private;
use super::super::sandbox::reach::Folders;
use super::super::sandbox::view::Network;
use super::super::shim::order::{EndWord, Order, Stdin};
use super::{CliHost, uuid};

/// How long setup, or a copy, may take.
const WITHIN: Duration = Duration::from_secs(1_800);

/// Of what setup prints.
const LOG_BYTES_MAX: u64 = 256 * 1024 * 1024;
const TAIL_CHARS: usize = 2_000;

/// Results of setup that are kept.
const KEPT_MAX: usize = 8;
const KEPT: &str = "setups";
const CACHES: &str = "caches";

/// Both streams are one log.
const ONE_STREAM: &str = "exec 2>&1; exec \"$@\"";

/// What names every package with its version.
const LOCK_FILES: &[&str] = &[
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "composer.lock",
    "Gemfile.lock",
    "go.sum",
];

/// Folders that work wherever they are; others may have the path of their tree in them.
const MOVABLE: &[&str] = &["node_modules", "vendor"];

/// Copies what exists and is not there yet. Links stay links.
const COPY: &str = r#"
set -eu
for name in "$@"; do
  if [ ! -e "$FROM/$name" ] || [ -e "$TO/$name" ] || [ -L "$TO/$name" ]; then continue; fi
  mkdir -p -- "$(dirname -- "$TO/$name")"
  cp -RPp -- "$FROM/$name" "$TO/$name"
done
"#;

/// A tree to prepare.
pub struct Preparing<'a> {
    pub setup: &'a TreeSetup,
    /// The top of the user's tree.
    pub from: &'a Path,
    pub tree: &'a Path,
    /// Objects that the tree's repository borrows.
    pub borrowed: &'a [PathBuf],
    /// The run that it is for.
    pub marker: &'a str,
    /// Nothing in the tree is the work of a run, so what setup makes there may be used again.
    pub is_users: bool,
}

impl CliHost {
    /// # Errors
    /// What could not be done, with the end of what setup printed.
    pub(super) async fn prepare(&self, preparing: &Preparing<'_>) -> Result<(), String> {
        if preparing.setup.is_plain() {
            return Ok(());
        }
        let scratch = self.options.data_dir.join(SCRATCH).join(uuid());
        make_private(&scratch).map_err(|error| error.to_string())?;
        let (confiner, marker) = (Arc::clone(&self.confiner), preparing.marker.to_owned());
        let cell = Cell { confiner, marker, scratch };
        let done = self.prepare_in(&cell, preparing).await;
        let _ = remove_folder(&cell.scratch);
        done
    }

    async fn prepare_in(&self, cell: &Cell, preparing: &Preparing<'_>) -> Result<(), String> {
        let Preparing { setup, from, tree, .. } = preparing;
        if !setup.copy.is_empty() {
            let copied = self.copy(cell, from, tree, &setup.copy).await;
            copied.map_err(|error| format!("the files of worktree.copy cannot be copied: {error}"))?;
        }
        let Some(command) = &setup.setup else { return Ok(()) };
        let kept = key(command, from, tree).map(|key| self.options.data_dir.join(KEPT).join(key));
        if let Some(kept) = kept.as_ref().filter(|kept| kept.is_dir()) {
            let names = names_in(kept);
            let copied = self.copy(cell, kept, tree, &names).await;
            return copied.map_err(|error| format!("what setup made before cannot be copied: {error}"));
        }
        let git = Git::find(&self.options.environment)?;
        let before = git.ignored(cell, tree, preparing.borrowed.to_vec()).await?;
        self.run_setup(cell, preparing, command).await?;
        let Some(kept) = kept.filter(|_| preparing.is_users) else { return Ok(()) };
        let mut made = git.ignored(cell, tree, preparing.borrowed.to_vec()).await?;
        made.retain(|name| !before.contains(name));
        let is_movable = |name: &String| MOVABLE.contains(&name.trim_end_matches('/'));
        // A result that cannot be kept is made again the next time.
        if !made.is_empty()
            && made.iter().all(is_movable)
            && let Err(error) = self.keep(cell, tree, &kept, &made).await
        {
            tracing::info!(error, "what setup made is not kept");
        }
        Ok(())
    }

    async fn run_setup(&self, cell: &Cell, preparing: &Preparing<'_>, command: &CheckCommand) -> Result<(), String> {
        let folder = |name: &str| -> Result<PathBuf, String> {
            let path = cell.scratch.join("setup").join(name);
            make_private(&path).map_err(|error| error.to_string())?;
            Ok(path)
        };
        let folders = Folders { root: folder("root")?, tmp: folder("tmp")?, home: folder("home")? };
        let caches = self.caches(cell, preparing)?;
        let Preparing { tree, borrowed, .. } = preparing;
        let confined = self.confiner.check(&folders, tree, borrowed, std::slice::from_ref(&caches), Network::Shared)?;
        let mut env: BTreeMap<String, String> = environment::plain(&self.options.environment);
        env.extend(confined.env);
        let variables = [
            ("npm_config_cache", "npm"),
            ("PIP_CACHE_DIR", "pip"),
            ("GOMODCACHE", "go"),
            ("YARN_CACHE_FOLDER", "yarn"),
        ];
        env.extend(variables.map(|(name, folder)| (name.to_owned(), caches.join(folder).display().to_string())));
        let mut args = ["-c", ONE_STREAM, "sh"].map(str::to_owned).to_vec();
        args.extend(command.words());
        let order = Order {
            program: "/bin/sh".into(),
            args,
            env,
            directory: tree.to_path_buf(),
            stdin: Stdin::Nothing,
            lock: cell.scratch.join("lock"),
            sandbox: confined.sandbox,
            keep: confined.keep,
            socket: None,
            stop_signal: EndWord::Term,
        };
        let log = cell.scratch.join("setup.log");
        let ended = run(cell, &order, WITHIN, LOG_BYTES_MAX, Some(&log)).await;
        let why = match ended {
            Ok(done) if done.code == Some(0) => return Ok(()),
            Ok(done) => done.code.map_or_else(|| "it was ended".to_owned(), |code| format!("exit code {code}")),
            Err(error) => error,
        };
        Err(format!(
            "setup (`{command}`, worktree.setup in .matsu.toml) failed: {why}. The end of its output:\n{}",
            end_of(&log)
        ))
    }

    /// Where package managers keep what they have loaded: for setup of the user's own files a folder that stays, for
    /// that of a run's files one of its own.
    fn caches(&self, cell: &Cell, preparing: &Preparing<'_>) -> Result<PathBuf, String> {
        let of_repository = hex(&Sha256::digest(preparing.from.as_os_str().as_encoded_bytes()));
        let path = if preparing.is_users {
            self.options.data_dir.join(CACHES).join(of_repository)
        } else {
            cell.scratch.join(CACHES)
        };
        make_private(&path).map_err(|error| error.to_string())?;
        Ok(path)
    }

    async fn copy(&self, cell: &Cell, from: &Path, to: &Path, names: &[String]) -> Result<(), String> {
        let mut env = environment::plain(&self.options.environment);
        env.insert("FROM".to_owned(), from.display().to_string());
        env.insert("TO".to_owned(), to.display().to_string());
        let mut args = ["-c", COPY, "sh"].map(str::to_owned).to_vec();
        args.extend_from_slice(names);
        let (program, stdin) = (Path::new("/bin/sh"), Stdin::Nothing);
        let work = Work { program, args, env, directory: to, stdin, within: WITHIN, bytes_max: 1_000, into: None };
        let view = View { read: vec![from.to_owned()], write: vec![to.to_owned()] };
        let done = confined(cell, work, view).await?;
        if done.code == Some(0) { Ok(()) } else { Err(clip(done.stderr.trim(), 500)) }
    }

    /// Keeps folders of a tree for the next one.
    async fn keep(&self, cell: &Cell, tree: &Path, kept: &Path, names: &[String]) -> Result<(), String> {
        let unfinished = kept.with_added_extension(uuid());
        make_private(&unfinished).map_err(|error| error.to_string())?;
        let copied = self.copy(cell, tree, &unfinished, names).await;
        let moved = copied.and_then(|()| std::fs::rename(&unfinished, kept).map_err(|error| error.to_string()));
        if moved.is_err() {
            let _ = remove_folder(&unfinished);
        }
        forget_old(kept.parent().unwrap_or(kept));
        moved
    }
}

/// The newest ones stay.
fn forget_old(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<_> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    all.sort();
    let old = all.len().saturating_sub(KEPT_MAX);
    for (_, path) in all.into_iter().take(old) {
        let _ = remove_folder(&path);
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The command, the repository and the lock files of the tree. `None`: it has no lock file.
fn key(command: &CheckCommand, repository: &Path, tree: &Path) -> Option<String> {
    let mut hash = Sha256::new();
    hash.update(command.to_string());
    hash.update([0]);
    hash.update(repository.as_os_str().as_encoded_bytes());
    let mut is_locked = false;
    for name in LOCK_FILES {
        let path = tree.join(name);
        // A link may lead anywhere.
        if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
            continue;
        }
        hash.update([0]);
        hash.update(name);
        hash.update([0]);
        hash.update(std::fs::read(path).ok()?);
        is_locked = true;
    }
    is_locked.then(|| hex(&hash.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn end_of(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let from = text.chars().count().saturating_sub(TAIL_CHARS);
    text.chars().skip(from).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_setup_made_is_known_by_command_repository_and_lock_files() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, command) = (folder.path(), CheckCommand::Line("npm ci".to_owned()));
        let of = |command: &CheckCommand, from: &str| key(command, Path::new(from), tree);
        assert_eq!(of(&command, "/a"), None, "nothing is locked");
        std::fs::write(tree.join("package-lock.json"), "{}").unwrap();
        let first = of(&command, "/a").unwrap();
        assert_eq!(of(&command, "/a"), Some(first.clone()));
        assert_ne!(of(&command, "/b"), Some(first.clone()));
        assert_ne!(of(&CheckCommand::Line("npm install".to_owned()), "/a"), Some(first.clone()));
        std::fs::write(tree.join("package-lock.json"), "{ }").unwrap();
        assert_ne!(of(&command, "/a"), Some(first));
    }
}
