//! Runs that attack through git: each has a shell and may write its tree, `.git` included. None reaches the user's
//! repository, and no program of theirs is executed outside a confinement, by the daemon or by the user's next command.
//! Each is tried sealed and fenced, as root and as an ordinary user.

mod nested;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::worktrees::begin;
use crate::containment::{Yard, prepared};
use crate::home::Home;

/// A repository, a file that no run may make, and what is in `.git` before the attack.
struct Target<'a> {
    yard: &'a mut Yard,
    root: PathBuf,
    escaped: PathBuf,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

/// A target at every level, as every kind of user.
fn at_every_level(test: impl Fn(&mut Target<'_>)) {
    with_settings("", test);
}

/// The same with more lines below `[agents]`.
fn with_settings(lines: &str, test: impl Fn(&mut Target<'_>)) {
    let prepare = |home: &mut Home| {
        let path = home.path(".config/matsu/config.toml");
        let settings = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, format!("{settings}{lines}")).unwrap();
    };
    prepared(&prepare, |yard| {
        let root = yard.project.clone();
        begin(&root, |args| git_of(&yard.home, &root, args));
        yard.home.give_away();
        let (escaped, before) = (yard.home.path("ESCAPED"), settings_of(&root.join(".git")));
        test(&mut Target { yard, root, escaped, before });
    });
}

/// Git as the user of this home calls it.
fn git_of(home: &Home, directory: &Path, args: &[&str]) -> String {
    let output = home.of_its_user("git").current_dir(directory).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

impl Target<'_> {
    /// Git in the user's tree.
    fn git(&self, args: &[&str]) -> String {
        git_of(&self.yard.home, &self.root, args)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.root.join(name)).unwrap()
    }

    /// Runs a script that may name the user's tree as `$USER_TREE`, the file as `$ESCAPED` and the token as `$TOKEN`.
    fn run(&mut self, script: &str) -> (String, Value) {
        let identity = "git config user.name Run; git config user.email run@localhost";
        self.run_as(&format!("{identity}\n{script}\n:"), json!({ "isolation": "worktree" }))
    }

    fn run_as(&mut self, script: &str, more: Value) -> (String, Value) {
        let names = [
            ("USER_TREE", self.root.display().to_string()),
            ("ESCAPED", self.escaped.display().to_string()),
            ("TOKEN", self.yard.home.data_dir().join("token").display().to_string()),
        ];
        let names: String = names.iter().map(|(name, value)| format!("{name}='{value}'\n")).collect();
        let mut wish = json!({ "mode": "workspace-write" });
        wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let begun = self.yard.start("project", &format!("# attack\n{names}{script}"), wish);
        let task = begun["task_id"].as_str().unwrap_or_else(|| panic!("{}: {begun}", self.yard.show())).to_owned();
        let end = self.yard.end_of(&begun["task_id"]);
        (task, end)
    }

    /// Everything that the daemon and the user do with a result, and then: nothing has escaped.
    fn use_and_check(&self, task: &str) {
        let shown = self.yard.home.command(&["apply", task, "--show"]).output().unwrap();
        assert!(shown.status.success(), "{shown:?}");
        self.yard.home.run(&["apply", task]);
        self.git(&["status"]);
        self.git(&["log", "--all", "-p"]);
        self.check();
    }

    fn check(&self) {
        let escaped = std::fs::read_to_string(&self.escaped);
        assert!(!self.escaped.exists(), "{}: {escaped:?}", self.yard.show());
        assert_eq!(settings_of(&self.root.join(".git")), self.before, "the user's .git has changed");
        self.git(&["fsck", "--strict", "--no-dangling"]);
        let names = self.git(&["for-each-ref", "--format=%(refname)"]);
        for name in names.lines() {
            let is_ours = ["refs/heads/matsu/", "refs/matsu/task_"].iter().any(|start| name.starts_with(start));
            assert!(is_ours || name == "refs/heads/main", "{names}");
        }
    }
}

/// What git obeys, without objects, our own references and what the user's own commands write.
fn settings_of(git_dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![git_dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let inside = entry.strip_prefix(git_dir).unwrap().to_owned();
            let is_ours = inside.components().any(|part| part.as_os_str() == "matsu");
            let is_working = ["index", "objects", "logs"].iter().any(|name| inside == Path::new(name));
            if is_ours || is_working {
                continue;
            }
            if entry.is_dir() && !entry.is_symlink() {
                folders.push(entry);
            } else {
                found.insert(inside, std::fs::read(&entry).unwrap_or_default());
            }
        }
    }
    found
}

/// The branch is removed when its changes were applied; this stays.
fn head_of(end: &Value) -> String {
    format!("refs/matsu/{}/head", end["task_id"].as_str().unwrap_or_else(|| panic!("{end}")))
}

#[test]
fn the_users_repository_cannot_be_written() {
    at_every_level(|target| {
        let (task, end) = target.run(
            "printf '#!/bin/sh\\ntouch %s\\n' \"$ESCAPED\" > \"$USER_TREE/.git/hooks/post-checkout\"
             chmod +x \"$USER_TREE/.git/hooks/post-checkout\"
             git --git-dir=\"$USER_TREE/.git\" config core.fsmonitor \"touch $ESCAPED\"
             git --git-dir=\"$USER_TREE/.git\" update-ref refs/heads/main $(git commit-tree -m moved HEAD^{tree})
             echo evil >> \"$USER_TREE/a.txt\"
             echo work > work.txt",
        );
        assert_eq!(end["status"], "completed", "{end}");
        assert_eq!(target.read("a.txt"), "a\n");
        target.use_and_check(&task);
        assert_eq!(target.read("work.txt"), "work\n");
    });
}

#[test]
fn a_filter_of_a_replaced_git_runs_in_a_confinement_only() {
    at_every_level(|target| {
        let (task, end) = target.run(
            "mv .git e; echo 'gitdir: e' > .git; echo e > .gitignore
             git config filter.x.clean \"sh -c 'touch $ESCAPED; cat; cat $TOKEN 2>/dev/null'\"
             git config filter.x.smudge \"sh -c 'touch $ESCAPED; cat'\"
             echo '*.txt filter=x' > .gitattributes
             echo changed > a.txt",
        );
        assert_eq!(end["status"], "completed", "{end}");
        target.use_and_check(&task);
        let token = std::fs::read_to_string(target.yard.home.data_dir().join("token")).unwrap();
        let kept = target.git(&["show", &format!("{}:a.txt", head_of(&end))]);
        assert!(!kept.contains(token.trim()), "the token has left through a filter");
        assert_eq!(target.read("a.txt"), "changed\n");
    });
}

#[test]
fn hooks_of_the_runs_own_repository_are_not_run() {
    at_every_level(|target| {
        let (task, end) = target.run(
            "mkdir -p .git/hooks evil
             for hook in pre-commit post-commit reference-transaction post-index-change post-checkout pre-auto-gc; do
               printf '#!/bin/sh\\ntouch %s hooked-%s\\n' \"$ESCAPED\" $hook > .git/hooks/$hook; chmod +x .git/hooks/$hook
             done
             cp .git/hooks/* evil; git config core.hooksPath \"$PWD/evil\"
             echo work > work.txt",
        );
        assert_eq!(end["status"], "completed", "{end}");
        target.use_and_check(&task);
        let files = target.git(&["ls-tree", "-r", "--name-only", &head_of(&end)]);
        assert!(files.contains("work.txt") && !files.contains("hooked-"), "{files}");
    });
}

#[test]
fn textconv_external_diff_fsmonitor_and_includes_are_not_run() {
    at_every_level(|target| {
        let (task, end) = target.run(
            "git config diff.x.textconv \"touch $ESCAPED; cat\"
             git config diff.x.command \"touch $ESCAPED\"; git config diff.external \"touch $ESCAPED\"
             git config core.fsmonitor \"touch $ESCAPED\"; git config core.pager \"touch $ESCAPED\"
             printf '[filter \"x\"]\\n\\tclean = touch %s\\n[alias]\\n\\tadd = !touch %s\\n' \"$ESCAPED\" \"$ESCAPED\" > included
             git config include.path \"$PWD/included\"
             echo '* diff=x' > .gitattributes
             git add -A; git commit -qm 'with attributes'
             echo more >> a.txt",
        );
        assert_eq!(end["status"], "completed", "{end}");
        target.use_and_check(&task);
    });
}

#[test]
fn attributes_of_the_run_do_not_hide_what_it_changed() {
    at_every_level(|target| {
        let (task, end) =
            target.run("echo '* -diff' > .gitattributes; git add -A; git commit -qm x; echo seen >> a.txt");
        let shown = target.yard.home.run(&["apply", &task, "--show"]);
        assert!(shown["patch"].as_str().unwrap().contains("+seen"), "{shown}");
        assert_eq!((&shown["is_exact"], &end["changes"]["insertions"]), (&json!(true), &json!(2)), "{shown} {end}");
    });
}

#[test]
fn moving_main_in_its_own_repository_moves_nothing_of_the_users() {
    at_every_level(|target| {
        let main = target.git(&["rev-parse", "main"]);
        let (task, end) = target.run(
            "git checkout -qb main; echo work > work.txt; git add -A; git commit -qm work
             git tag v1; git update-ref 'refs/heads/--upload-pack=touch' HEAD; git update-ref refs/heads/matsu/other HEAD
             git symbolic-ref refs/heads/link refs/heads/main",
        );
        assert_eq!(target.git(&["rev-parse", "main"]), main);
        target.use_and_check(&task);
        assert_eq!(target.git(&["tag"]), "");
        let message = target.git(&["log", "-1", "--format=%s", &head_of(&end)]);
        assert_eq!(message, "work\n", "its own commits are kept");
    });
}

#[test]
fn alternates_that_point_elsewhere_bring_nothing_along() {
    at_every_level(|target| {
        let other = target.yard.home.path("other");
        std::fs::create_dir_all(&other).unwrap();
        target.yard.home.give_away();
        begin(&other, |args| git_of(&target.yard.home, &other, args));
        // Made in the same second, the first commits of both repositories are the same one.
        git_of(&target.yard.home, &other, &["commit", "-q", "--allow-empty", "-m", "foreign"]);
        let foreign = git_of(&target.yard.home, &other, &["rev-parse", "HEAD"]).trim().to_owned();
        let (task, end) = target.run(&format!(
            "echo '{}' >> .git/objects/info/alternates
             echo '{}' >> .git/objects/info/alternates
             git reset -q --hard {foreign} # a sealed run does not see it
             echo work > work.txt && git add -A && git commit -qm 'on a foreign history'",
            other.join(".git/objects").display(),
            target.yard.home.data_dir().display(),
        ));
        assert_eq!(end["status"], "completed", "{end}");
        std::fs::remove_dir_all(&other).unwrap();
        target.use_and_check(&task);
        let base = end["changes"]["base"].as_str().unwrap();
        target.git(&["merge-base", "--is-ancestor", base, &head_of(&end)]);
        let commits = target.git(&["rev-list", "--count", &format!("main..{}", head_of(&end))]);
        assert_eq!(commits, "1\n", "a history that is not the user's becomes one commit");
    });
}

#[test]
fn a_result_that_is_too_large_stays_in_its_folder() {
    with_settings("bundle_max = 1\n", |target| {
        let (task, end) = target.run("head -c 3000000 /dev/urandom > huge");
        let left = &end["left_work"];
        assert!(left["why"].as_str().is_some_and(|why| why.contains("1048576")), "{end}");
        let folder = PathBuf::from(left["folder"].as_str().unwrap());
        assert_eq!(std::fs::metadata(folder.join("huge")).unwrap().len(), 3_000_000);
        assert!(end["changes"].is_null(), "{end}");
        let said = target.yard.home.command(&["apply", &task]).output().unwrap();
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains(folder.to_str().unwrap()), "{said}");
        target.check();
    });
}

#[test]
fn a_link_as_git_leads_nowhere() {
    at_every_level(|target| {
        let (task, end) = target.run("rm -rf .git; ln -s \"$USER_TREE/.git\" .git; echo work > work.txt");
        assert_eq!((&end["status"], &end["changes"]["files"]), (&json!("completed"), &json!(1)), "{end}");
        target.use_and_check(&task);
        assert_eq!(target.read("work.txt"), "work\n");
    });
}

#[test]
fn without_any_git_left_the_files_are_taken_over() {
    at_every_level(|target| {
        let (task, end) = target.run("rm -rf .git; rm b.txt; echo work > work.txt");
        assert_eq!(end["changes"]["files"], 2, "{end}");
        target.use_and_check(&task);
        assert!(!target.root.join("b.txt").exists() && target.root.join("work.txt").exists());
    });
}

#[test]
fn a_repository_inside_the_tree_is_left_out_and_kept() {
    at_every_level(|target| {
        let (task, end) = target.run(
            "git init -q sub; cd sub; git config user.name x; git config user.email x@localhost
             echo inner > inner.txt; git add -A; git commit -qm inner; git config core.fsmonitor \"touch $ESCAPED\"; cd ..
             git add -A 2>/dev/null; git commit -qm 'with a repository'; echo work > work.txt",
        );
        assert_eq!(end["changes"]["left_out"], json!(["sub"]), "{end}");
        let folder = PathBuf::from(end["left_work"]["folder"].as_str().unwrap_or_else(|| panic!("{end}")));
        assert_eq!(std::fs::read_to_string(folder.join("sub/inner.txt")).unwrap(), "inner\n");
        target.use_and_check(&task);
        let tree = target.git(&["ls-tree", "-r", &head_of(&end)]);
        assert!(tree.contains("work.txt") && !tree.contains("160000"), "{tree}");
    });
}

#[test]
fn a_tree_that_cannot_be_entered_does_not_stop_the_daemon() {
    at_every_level(|target| {
        let (_, end) =
            target.run("mkdir -p deep/er; echo work > deep/er/work.txt; chmod 000 deep/er deep; mkfifo pipe");
        assert!(["completed", "failed"].contains(&end["status"].as_str().unwrap()), "{end}");
        target.check();
        let (task, end) = target.run("echo work > work.txt");
        assert_eq!(end["changes"]["files"], 1, "{end}");
        target.use_and_check(&task);
    });
}

#[test]
fn a_repository_that_makes_git_hang_does_not_keep_the_result() {
    with_settings("bundle_timeout = 3\n", |target| {
        let began = std::time::Instant::now();
        let (task, end) = target.run(
            "git config filter.slow.clean 'sleep 600; cat'
             echo '*.slow filter=slow' > .git/info/attributes
             echo work > a.slow",
        );
        assert_eq!(end["status"], "completed", "{}: {end}", target.yard.show());
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "{:?}", began.elapsed());
        assert_eq!(target.git(&["show", &format!("{}:a.slow", head_of(&end))]), "work\n", "its files are taken over");
        target.use_and_check(&task);
    });
}
