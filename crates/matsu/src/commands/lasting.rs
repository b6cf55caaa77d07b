//! The path of this program that is written into the files of clients and services. They start it for months, so a path
//! that goes away with the next upgrade or with a cache is not written.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::installed::{self, NPM_INSTALL, PIPX_INSTALL, UV_INSTALL};

/// # Errors
/// This program is in a cache of a package runner, or Homebrew has no link to it.
pub fn program() -> Result<PathBuf> {
    lasting(&installed::program()?)
}

fn lasting(program: &Path) -> Result<PathBuf> {
    if let Some((runner, install)) = cache_of(program) {
        bail!(
            "this program is {}, in the cache of {runner}; files there are deleted, and then no client and no service \
             could start it. Install it first with `{install}`, then run this command again with the installed matsu",
            program.display()
        );
    }
    match prefix_of_homebrew(program) {
        Some(prefix) => link(&prefix, program),
        None => Ok(program.to_owned()),
    }
}

/// Who has unpacked it for one call, and how it is installed instead.
fn cache_of(program: &Path) -> Option<(&'static str, &'static str)> {
    let has = |is_meant: &dyn Fn(&str) -> bool| {
        program.components().any(|part| part.as_os_str().to_str().is_some_and(is_meant))
    };
    let is = |name: &'static str| has(&|part| part == name);
    if is("_npx") {
        Some(("npx", NPM_INSTALL))
    } else if has(&|part| part == "dlx" || part.starts_with("dlx-")) && is("node_modules") {
        Some(("dlx of pnpm or yarn", NPM_INSTALL))
    } else if has(&|part| part.starts_with("bunx-")) {
        Some(("bunx", NPM_INSTALL))
    } else if has(&|part| part.starts_with("archive-v") || part.starts_with("environments-v")) {
        Some(("uvx", UV_INSTALL))
    } else if is("pipx") && is(".cache") {
        Some(("pipx run", PIPX_INSTALL))
    } else {
        None
    }
}

/// `PREFIX/Cellar/matsu/VERSION/bin/matsu`: an upgrade removes that folder.
fn prefix_of_homebrew(program: &Path) -> Option<PathBuf> {
    program
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "Cellar"))?
        .parent()
        .map(Path::to_owned)
}

/// The link that Homebrew sets to the newest version.
fn link(prefix: &Path, program: &Path) -> Result<PathBuf> {
    let is_this = |link: &PathBuf| match (std::fs::canonicalize(link), std::fs::canonicalize(program)) {
        (Ok(leads_to), Ok(program)) => leads_to == program,
        _ => false,
    };
    let links = [prefix.join("bin/matsu"), prefix.join("opt/matsu/bin/matsu")];
    links.into_iter().find(is_this).with_context(|| {
        format!(
            "this program is {}, which the next `brew upgrade` removes, and neither bin/matsu nor opt/matsu/bin/matsu \
             below {} leads to it; run `brew link matsu`, then run this command again",
            program.display(),
            prefix.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_program_in_a_cache_is_refused_with_the_command_that_installs_it() {
        for (place, install) in [
            (".npm/_npx/0123abcd/node_modules/@matsu/cli-linux-x64/bin/matsu", "npm install --global"),
            (".cache/pnpm/dlx/0123abcd/node_modules/@matsu/cli-linux-x64/bin/matsu", "npm install --global"),
            (".cache/uv/archive-v0/0123abcd/bin/matsu", "uv tool install"),
            (".cache/uv/environments-v2/0123abcd/bin/matsu", "uv tool install"),
            (".local/share/pipx/.cache/0123abcd/bin/matsu", "pipx install"),
        ] {
            let refused = lasting(&Path::new("/home/a").join(place)).unwrap_err().to_string();
            assert!(refused.contains(install) && refused.contains(place), "{refused}");
        }
        for place in [
            "/usr/bin/matsu",
            "/home/a/.local/bin/matsu",
            "/home/a/.cargo/bin/matsu",
            "/usr/lib/node_modules/@matsu/cli/node_modules/@matsu/cli-linux-x64/bin/matsu",
            "/home/a/.local/share/uv/tools/matsu-cli/bin/matsu",
            "/home/a/.local/share/pipx/venvs/matsu-cli/bin/matsu",
        ] {
            assert_eq!(lasting(Path::new(place)).unwrap(), Path::new(place));
        }
    }

    #[test]
    fn the_link_of_homebrew_is_taken_and_a_version_without_a_link_is_refused() {
        let prefix = tempfile::tempdir().unwrap();
        let program = prefix.path().join("Cellar/matsu/1.0.0/bin/matsu");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, "").unwrap();
        let refused = lasting(&program).unwrap_err().to_string();
        assert!(refused.contains("brew link matsu"), "{refused}");

        let opt = prefix.path().join("opt");
        fs::create_dir(&opt).unwrap();
        std::os::unix::fs::symlink(prefix.path().join("Cellar/matsu/1.0.0"), opt.join("matsu")).unwrap();
        assert_eq!(lasting(&program).unwrap(), opt.join("matsu/bin/matsu"));

        let bin = prefix.path().join("bin");
        fs::create_dir(&bin).unwrap();
        // Another program of that name is not ours.
        fs::write(bin.join("matsu"), "").unwrap();
        assert_eq!(lasting(&program).unwrap(), opt.join("matsu/bin/matsu"));
        fs::remove_file(bin.join("matsu")).unwrap();
        std::os::unix::fs::symlink("../Cellar/matsu/1.0.0/bin/matsu", bin.join("matsu")).unwrap();
        assert_eq!(lasting(&program).unwrap(), bin.join("matsu"));
    }
}
