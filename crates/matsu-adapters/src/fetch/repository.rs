//! Which repository a document belongs to, by the remote that git knows: documents of one repository are one source.

use std::io::Read;
use std::path::{Path, PathBuf};

/// Settings of a repository are small; what is larger is not read.
const CONFIG_BYTES_MAX: u64 = 256 * 1024;

/// The address of the repository that a folder lies in, as `host/owner/name`; nothing without a remote.
#[must_use]
pub fn remote_of(folder: &Path) -> Option<String> {
    let git = folder.ancestors().map(|ancestor| ancestor.join(".git")).find(|git| git.exists())?;
    let config = text(&settings(&git)?.join("config"))?;
    let mut remotes = remotes(&config);
    remotes.sort_by_key(|(name, _)| name != "origin");
    remotes.first().and_then(|(_, url)| plain(url))
}

/// The folder with the settings: `.git` itself, or what the file of that name in a worktree leads to.
fn settings(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let beside = git.parent()?;
    let own = beside.join(text(git)?.trim().strip_prefix("gitdir:")?.trim());
    let common = text(&own.join("commondir")).map(|common| own.join(common.trim()));
    Some(common.unwrap_or(own))
}

fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Names and addresses of remotes, in their order.
fn remotes(config: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut section: Option<String> = None;
    for line in config.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let name = header.trim_end_matches(']').strip_prefix("remote");
            section = name.map(|name| name.trim().trim_matches('"').to_owned());
        } else if let (Some(name), Some(("url", url))) =
            (&section, line.split_once('=').map(|(k, v)| (k.trim(), v.trim())))
        {
            found.push((name.clone(), url.to_owned()));
        }
    }
    found
}

/// The same for all ways to name one repository: no scheme, no user, no `.git`.
fn plain(url: &str) -> Option<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    // `git@host:owner/name` divides by a colon what an address divides by a slash.
    let rest = if url.contains("://") { rest.to_owned() } else { rest.replacen(':', "/", 1) };
    let rest = rest.trim_matches('/').trim_end_matches(".git").to_lowercase();
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remote_of_a_repository_or_of_its_worktree_is_found() {
        let home = tempfile::tempdir().expect("a folder");
        let (main, work) = (home.path().join("main"), home.path().join("work"));
        std::fs::create_dir_all(main.join(".git/worktrees/work")).expect("folders");
        std::fs::create_dir_all(main.join("docs/deep")).expect("folders");
        std::fs::create_dir_all(&work).expect("folders");
        assert_eq!(remote_of(&main.join("docs")), None, "no settings");
        let config = "[core]\n\tbare = false\n[remote \"fork\"]\n\turl = https://me@example.org/me/tool.git\n\
                      [remote \"origin\"]\n\turl = git@example.org:Team/Tool.git\n\tfetch = +refs\n";
        std::fs::write(main.join(".git/config"), config).expect("written");
        std::fs::write(main.join(".git/worktrees/work/commondir"), "../..\n").expect("written");
        std::fs::write(work.join(".git"), format!("gitdir: {}\n", main.join(".git/worktrees/work").display()))
            .expect("written");
        for folder in [main.join("docs/deep"), work] {
            assert_eq!(remote_of(&folder).as_deref(), Some("example.org/team/tool"), "{}", folder.display());
        }
    }

    #[test]
    fn every_spelling_of_an_address_is_one_repository() {
        for url in [
            "https://example.org/a/b.git",
            "git@example.org:a/b.git",
            "ssh://git@example.org/a/b",
            "https://u:p@example.org/A/B/",
        ] {
            assert_eq!(plain(url).as_deref(), Some("example.org/a/b"), "{url}");
        }
    }
}
