//! A look at the repository that a run is to start from. Git looks from inside a confinement: if the directory belongs
//! to another run, everything in it, `.git` too, may be that run's work.

use std::path::{Path, PathBuf};

use super::super::confined::{Cell, View, Work, confined};
use super::super::git::{Format, GIT_MAX, Git, Whose};
use super::super::git_paths;
use super::super::shim::order::Stdin;

/// Rules about ignored files, settings and the like are short.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// What is known of it.
#[derive(Clone, Debug)]
pub struct Source {
    pub top: PathBuf,
    /// Where references and objects lie; linked worktrees share it.
    pub common: PathBuf,
    pub objects: PathBuf,
    pub format: Format,
    /// `None`: there is no commit yet.
    pub head: Option<String>,
    /// Of a history that is cut: where.
    pub shallow: Option<String>,
    /// Files that are not committed. `None`: they could not be counted.
    pub uncommitted: Option<u64>,
    /// What is ignored by the user's own rules, which are not part of the tree.
    pub excludes: String,
    /// The settings that decide about names and line ends, as lines of a configuration file.
    pub settings: String,
}

/// Sections end with a zero byte; none of them but the last can contain one.
const LOOK: &str = r#"
set -u
git rev-parse --path-format=absolute --show-toplevel --git-common-dir --git-path objects --show-object-format || exit 1
printf '\0'
git rev-parse --verify --quiet 'HEAD^{commit}'
printf '\0'
if [ "$(git rev-parse --is-shallow-repository)" = true ]; then cat "$(git rev-parse --git-path shallow)"; fi
printf '\0'
{ git status --porcelain -z --untracked-files=normal --ignore-submodules=dirty || echo failed; } | tr '\0' '\n' | tail -n 100000
printf '\0'
mine=$(git config --type=path --get core.excludesFile) || mine=${XDG_CONFIG_HOME:-$HOME/.config}/git/ignore
cat "$mine" "$(git rev-parse --git-path info/exclude)" 2>/dev/null | head -c 1000000 | tr -d '\0'
printf '\0'
git config --list -z
"#;

impl Source {
    /// # Errors
    /// Why it cannot be started from, and what to do.
    pub async fn look(git: &Git, cell: &Cell, directory: &Path) -> Result<Self, String> {
        let top = git_paths::top_of(directory).unwrap_or(directory).to_owned();
        let known = git_paths::repository_of(&top, cell.confiner.layout())?;
        known.iter().try_for_each(|folder| git_paths::check_plain(folder))?;
        let mut read = known.clone();
        read.push(top);
        read.extend(git.user_files());
        let mut args = vec!["-c".to_owned(), LOOK.to_owned()];
        args.extend(["sh".to_owned()]);
        let mut env = git.environment(Whose::Users);
        env.extend(with_flags());
        let work = Work {
            program: Path::new("/bin/sh"),
            args,
            env,
            directory,
            stdin: Stdin::Nothing,
            within: GIT_MAX,
            bytes_max: BYTES_MAX,
            into: None,
        };
        let done = confined(cell, work, View { read, write: Vec::new() }).await?;
        if done.code != Some(0) {
            return Err(format!("git cannot read the repository: {}", done.stderr.trim()));
        }
        let source = parse(&done.stdout).ok_or_else(|| {
            "the repository cannot be used: its path has a line break, or git printed unexpected output about \
             it. Rename the folder, or use isolation none"
                .to_owned()
        })?;
        source.checked(&known)
    }

    /// What git said about where things lie is believed as far as it was known before: everything in the tree may be the
    /// work of a run, its `.git` too. From here on the paths have no links in them.
    fn checked(self, known: &[PathBuf]) -> Result<Self, String> {
        let real = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
        let (common, objects) = (real(&self.common)?, real(&self.objects)?);
        if !known.contains(&common) || !objects.starts_with(&common) {
            return Err(format!(
                "the repository has its objects in {}, which does not belong to the tree {}; use isolation none",
                objects.display(),
                self.top.display()
            ));
        }
        Ok(Self { common, objects, ..self })
    }
}

/// The flags of every call, for commands that a script starts: as settings in the environment.
pub fn with_flags() -> Vec<(String, String)> {
    let flags = Git::flags();
    let settings: Vec<&String> = flags.iter().skip(1).step_by(2).collect();
    let mut env = vec![("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())];
    for (number, setting) in settings.iter().enumerate() {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        env.push((format!("GIT_CONFIG_KEY_{number}"), name.to_owned()));
        env.push((format!("GIT_CONFIG_VALUE_{number}"), value.to_owned()));
    }
    env
}

fn parse(bytes: &[u8]) -> Option<Source> {
    let mut sections = bytes.splitn(6, |byte| *byte == 0);
    let mut text = || sections.next().map(|section| String::from_utf8_lossy(section).into_owned());
    let (places, head, shallow, status, excludes) = (text()?, text()?, text()?, text()?, text()?);
    let config = sections.next()?;
    let lines: Vec<&str> = places.lines().collect();
    let [top, common, objects, format] = lines.as_slice() else { return None };
    let format = Format::parse(format)?;
    let head = Some(head.trim().to_owned()).filter(|head| !head.is_empty());
    let is_name = |name: &str| format.is_object(name);
    if !head.as_deref().is_none_or(is_name) || !shallow.lines().all(is_name) {
        return None;
    }
    let is_path = |path: &&str| path.starts_with('/');
    if ![top, common, objects].into_iter().all(is_path) {
        return None;
    }
    Some(Source {
        top: PathBuf::from(top),
        common: PathBuf::from(common),
        objects: PathBuf::from(objects),
        format,
        head,
        shallow: Some(shallow).filter(|shallow| !shallow.is_empty()),
        uncommitted: (!status.ends_with("failed\n")).then(|| status.lines().count() as u64),
        excludes,
        settings: settings(config),
    })
}

/// What a repository of the run's own takes over: who commits, and how files are written. Everything else a setting
/// can do, a run does not need.
pub fn settings(config: &[u8]) -> String {
    let mut found: Vec<(&str, &str, String)> = Vec::new();
    for entry in config.split(|byte| *byte == 0) {
        let entry = String::from_utf8_lossy(entry);
        let Some((name, value)) = entry.split_once('\n') else { continue };
        let known = [
            ("user.name", "user", "name"),
            ("user.email", "user", "email"),
            ("core.autocrlf", "core", "autocrlf"),
            ("core.eol", "core", "eol"),
            ("core.ignorecase", "core", "ignorecase"),
            ("core.precomposeunicode", "core", "precomposeunicode"),
        ];
        if let Some((_, section, key)) = known.into_iter().find(|(known, ..)| *known == name) {
            // The last one counts, as with git.
            found.retain(|(_, other, _)| *other != key);
            found.push((section, key, super::super::git::quoted(value)));
        }
    }
    found.iter().map(|(section, key, value)| format!("[{section}]\n\t{key} = {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_is_read_and_nothing_else_believed() {
        let oid = "a1".repeat(20);
        let said = |places: &str, head: &str| {
            let text = format!(
                "{places}\0{head}\n\0\0 M a\n?? b\n\0*.swp\n\0user.name\nAda\0core.fsmonitor\nevil\0user.name\nBob\0"
            );
            parse(text.as_bytes())
        };
        let source = said("/p\n/p/.git\n/p/.git/objects\nsha1\n", &oid).unwrap();
        assert_eq!((source.head.as_deref(), source.uncommitted), (Some(oid.as_str()), Some(2)));
        assert_eq!(source.settings, "[user]\n\tname = \"Bob\"\n");
        assert_eq!(said("/p\n/p/.git\n/p/.git/objects\nsha1\n", "").unwrap().head, None);
        assert!(said("/p\nq\n/p/.git\n/p/.git/objects\nsha1\n", &oid).is_none(), "a line break in a path");
        assert!(said("/p\n/p/.git\n/p/.git/objects\nsha1\n", "--all").is_none());
        assert!(said("p\n/p/.git\n/p/.git/objects\nsha1\n", &oid).is_none());
    }
}
