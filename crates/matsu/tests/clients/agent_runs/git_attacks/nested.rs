//! Repositories inside the tree, and repositories that a run has made: what git would obey there is a run's work, and
//! reaches neither the user's repository nor any program outside a confinement.

use serde_json::{Value, json};

use super::{Target, at_every_level, git_of, head_of, with_settings};
use crate::containment::SECRET;

/// A run in the user's own tree that makes a repository in `sub/made`, with programs wherever git has a place for one,
/// and leaves it so that the next git that looks at the tree would start them.
const MAKES: &str = r#"
mkdir sub/made; cd sub/made; git init -q -b main .; git config user.name x; git config user.email x@localhost
git config filter.x.clean "sh -c 'touch $ESCAPED; cat'"; git config filter.x.smudge "sh -c 'touch $ESCAPED; cat'"
git config filter.y.process "touch $ESCAPED"
git config merge.x.driver "touch $ESCAPED"; git config diff.x.textconv "touch $ESCAPED; cat"
git config core.fsmonitor "touch $ESCAPED"; git config core.sshCommand "touch $ESCAPED"
git config core.alternateRefsCommand "touch $ESCAPED"; git config core.editor "touch $ESCAPED"
git config gpg.program "touch $ESCAPED"; git config commit.gpgSign true
for hook in post-checkout reference-transaction post-index-change pre-commit; do
  printf '#!/bin/sh\ntouch %s\n' "$ESCAPED" > .git/hooks/$hook; chmod +x .git/hooks/$hook
done
echo '*.txt filter=x merge=x diff=x' > .gitattributes; echo one > a.txt; echo one > b.txt; echo one > c.dat
git -c core.fsmonitor=false -c commit.gpgSign=false -c core.hooksPath=/dev/null add -A
git -c core.fsmonitor=false -c commit.gpgSign=false -c core.hooksPath=/dev/null commit -qm begin
echo '*.dat filter=y' >> .gitattributes
echo two >> a.txt; echo two > c.dat; echo new > new.txt; git rev-parse HEAD"#;

impl Target<'_> {
    fn makes_a_repository(&mut self, then: &str) -> Value {
        std::fs::create_dir_all(self.root.join("sub")).unwrap();
        self.yard.home.give_away();
        let script = format!("{MAKES}\n{then}\n:");
        let (_, end) = self.run_as(&script, json!({ "isolation": "none", "cli_name": "back" }));
        assert_eq!(end["status"], "completed", "{}: {end}", self.yard.show());
        assert!(self.root.join("sub/made/.git/config").exists(), "{}: nothing was tried: {end}", self.yard.show());
        self.check();
        end
    }
}

#[test]
fn a_run_cannot_make_a_repository_that_the_daemon_obeys() {
    at_every_level(|target| {
        let wish = json!({ "cli_name": "script", "message": "echo three >> a.txt; echo three >> b.txt",
            "mode": "workspace-write", "isolation": "worktree", "working_directory": target.root.join("sub/made") });
        let way_back = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/agent_runs/way_back.py");
        // It asks for another run on what it has made.
        let end = target.makes_a_repository(&format!("python3 {way_back} use_agent '{wish}'"));
        let printed = end["result"].as_str().unwrap().lines().last().unwrap_or_default();
        let child: Value = serde_json::from_str(printed).unwrap_or_else(|error| panic!("{error}: {end}"));
        assert!(child["error_code"].is_string() || child["task_id"].is_string(), "{child}");
        // So does the user, who does not know of it, and takes the result over.
        let (task, end) = target.run_as("echo three >> a.txt; echo three >> b.txt", wish_without_agent(&wish));
        assert_eq!(end["status"], "completed", "{}: {end}", target.yard.show());
        target.check();
        // A filter that cannot do its work confined may make these fail; they start nothing outside.
        for more in [&["--show"][..], &[], &["--merge"], &["--undo"]] {
            target.yard.home.command(&[&["apply", &task], more].concat()).output().unwrap();
            target.check();
        }
    });
}

fn wish_without_agent(wish: &Value) -> Value {
    let mut wish = wish.clone();
    wish.as_object_mut().unwrap().remove("message");
    wish
}

/// What a child prints of what its parent has led it to, backwards as every secret.
const PRINTS: &str = "{ cat .git/token x/.git/token ../.git/token .git/../token 2>/dev/null; find . -name 'id_ed*' -exec cat {} + ; \
                      git log -p --all 2>/dev/null; for o in $(cat .git/objects/info/alternates 2>/dev/null); do ls -R $o; cat $o/token; done; } \
                      2>/dev/null | rev; true";

/// Ways in which a run in the user's own tree can lead the daemon elsewhere, each a script that runs in an empty folder
/// of its own and leaves it for another run.
const LEADS: &[(&str, &str)] = &[
    ("a link as .git", "ln -s $DATA_DIR .git; ln -s $KEYS .git2"),
    ("a link as .git below", "mkdir x; ln -s $DATA_DIR x/.git"),
    ("a file as .git", "echo \"gitdir: $DATA_DIR\" > .git"),
    ("a file as .git below", "mkdir x; echo \"gitdir: $DATA_DIR\" > x/.git"),
    ("a shared folder", "git init -q .; echo $DATA_DIR > .git/commondir"),
    ("another repository", "echo \"gitdir: $OTHER/.git\" > .git"),
    ("a shared folder of another repository", "git init -q .; echo $OTHER/.git > .git/commondir"),
    (
        "lent objects",
        "git init -q .; git config user.name x; git config user.email x@x; git commit -q --allow-empty -m x
      printf '%s\n%s\n' $DATA_DIR $OTHER/.git/objects > .git/objects/info/alternates
      git update-ref refs/heads/other $(cat $OTHER_HEAD) 2>/dev/null || cp $OTHER_HEAD .git/refs/heads/other",
    ),
    (
        "linked objects",
        "git init -q .; git config user.name x; git config user.email x@x; git commit -q --allow-empty -m x
      mv .git/objects .git/o; ln -s $OTHER/.git/objects .git/objects; cp $OTHER_HEAD .git/refs/heads/main",
    ),
];

#[test]
fn what_a_run_leaves_as_git_leads_no_other_run_elsewhere() {
    at_every_level(|target| {
        let home = &target.yard.home;
        let other = home.path("other");
        std::fs::create_dir_all(&other).unwrap();
        std::fs::write(other.join("plans.txt"), SECRET).unwrap();
        home.give_away();
        super::super::worktrees::begin(&other, |args| git_of(home, &other, args));
        let head = git_of(home, &other, &["rev-parse", "HEAD"]);
        std::fs::write(home.signal("other-head"), head).unwrap();
        let names = [
            ("DATA_DIR", home.data_dir()),
            ("KEYS", home.path(".ssh")),
            ("OTHER", other.clone()),
            ("OTHER_HEAD", home.signal("other-head")),
        ];
        let names: String = names.iter().map(|(name, path)| format!("{name}='{}'\n", path.display())).collect();
        let (token, way_back) =
            (target.yard.token(), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/agent_runs/way_back.py"));
        for (number, (what, lead)) in LEADS.iter().enumerate() {
            let folder = target.root.join(format!("sub/{number}"));
            std::fs::create_dir_all(&folder).unwrap();
            target.yard.home.give_away();
            let wish = |isolation: &str| {
                json!({ "cli_name": "script", "message": PRINTS, "mode": "workspace-write", "isolation": isolation,
                    "working_directory": folder })
            };
            // The run itself asks for another, in both ways; and then the user does, who does not know of it.
            let asks = ["none", "worktree"].map(|isolation| {
                let wish = wish(isolation).to_string().replace('\'', "'\\''");
                format!("use_agent '{wish}'")
            });
            let script = format!("{names}cd {}\n{lead}\npython3 {way_back} {}\n:", folder.display(), asks.join(" "));
            let (_, end) = target.run_as(&script, json!({ "isolation": "none", "cli_name": "back" }));
            let mut said = end.to_string();
            for isolation in ["none", "worktree"] {
                let mut wish = wish(isolation);
                wish["run_async"] = json!(true);
                let begun = target.yard.call("use_agent", &wish);
                said += &begun.to_string();
                if begun["task_id"].is_string() {
                    said += &target.yard.end_of(&begun["task_id"]).to_string();
                }
            }
            let shown: String = said.chars().rev().collect();
            for secret in [token.as_str(), SECRET] {
                assert!(!shown.contains(secret), "{}: {what}: {said}", target.yard.show());
            }
            std::fs::remove_dir_all(&folder).unwrap();
        }
        let refs = git_of(&target.yard.home, &other, &["for-each-ref", "--format=%(refname)"]);
        assert_eq!(refs, "refs/heads/main\n", "{}: another repository was written", target.yard.show());
        target.check();
    });
}

/// A folder is checked when a run in it is asked for. What it is when the run starts is another question: the run that
/// asked can put a link in its place.
#[test]
fn a_folder_that_becomes_a_link_is_not_followed() {
    with_settings("[slots]\nagent_cli = 2\n", |target| {
        std::fs::create_dir_all(target.root.join("sub/later")).unwrap();
        target.yard.home.give_away();
        let print = |name: &str| {
            json!({ "cli_name": "script", "message": "cat token id_ed25519 2>/dev/null | rev; pwd", "run_async": true,
                "mode": "workspace-write", "isolation": "none", "working_directory": target.root.join(name) })
        };
        let busy = json!({ "cli_name": "script", "message": "sleep 4", "run_async": true });
        let way_back = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/agent_runs/way_back.py");
        // The second place is taken, so what is asked for waits.
        let wish = print("sub/later").to_string().replace('\'', "'\\''");
        let data = target.yard.home.data_dir();
        let script = format!(
            "python3 {way_back} use_agent '{busy}' use_agent '{wish}'\nmv sub/later sub/away\nln -s {} sub/later\nsleep 1",
            data.display()
        );
        let (_, end) = target.run_as(&script, json!({ "isolation": "none", "cli_name": "back" }));
        let lines: Vec<Value> =
            end["result"].as_str().unwrap().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert!(lines.len() == 2 && lines[1]["task_id"].is_string(), "{}: {end}", target.yard.show());
        let child = target.yard.end_of(&lines[1]["task_id"]);
        let shown: String = child.to_string().chars().rev().collect();
        assert!(!shown.contains(&target.yard.token()), "{}: {child}", target.yard.show());
        assert_eq!(child["status"], "failed", "{}: {child}", target.yard.show());
        assert!(child["error"].as_str().unwrap().contains("is a link"), "{}: {child}", target.yard.show());
        std::fs::remove_file(target.root.join("sub/later")).unwrap();
    });
}

#[test]
fn a_git_file_inside_the_tree_that_names_the_users_repository_reaches_nothing() {
    at_every_level(|target| {
        let (task, end) = target.run(
            "mkdir a b c; echo \"gitdir: $USER_TREE/.git\" > a/.git; ln -s \"$USER_TREE/.git\" b/.git
             git init -q c; echo \"$USER_TREE/.git\" > c/.git/commondir; git -C c config core.fsmonitor \"touch $ESCAPED\"
             for folder in a b c; do echo x > $folder/file; done; echo work > work.txt",
        );
        assert_eq!(end["status"], "completed", "{}: {end}", target.yard.show());
        // Taken over as files, or left where the report says.
        let left = end["left_work"]["folder"].as_str().map(std::path::PathBuf::from);
        if end["changes"].is_object() {
            target.use_and_check(&task);
        }
        target.check();
        let is_there = |folder: &std::path::Path| folder.join("a/file").exists();
        assert!(left.as_deref().is_some_and(is_there) || is_there(&target.root), "{}: {end}", target.yard.show());
        assert!(!target.root.join("a/.git").exists() && !target.root.join("c/.git").exists());
    });
}

#[test]
fn a_submodule_that_a_run_adds_starts_nothing() {
    at_every_level(|target| {
        let (task, end) = target.run(
            "git init -q lent; git -C lent config user.name x; git -C lent config user.email x@localhost
             git -C lent commit -q --allow-empty -m x; oid=$(git -C lent rev-parse HEAD); rm -rf lent
             printf '[submodule \"s\"]\\n\\tpath = s\\n\\turl = ext::touch %s\\n' \"$ESCAPED\" > .gitmodules
             git config submodule.recurse true; git config submodule.s.update \"!touch $ESCAPED\"
             git config submodule.s.url \"ext::touch $ESCAPED\"; git config protocol.ext.allow always
             mkdir -p .git/modules/s/hooks; printf '#!/bin/sh\\ntouch %s\\n' \"$ESCAPED\" > .git/modules/s/hooks/post-checkout
             chmod +x .git/modules/s/hooks/post-checkout
             git update-index --add --cacheinfo 160000,$oid,s; git add .gitmodules; git commit -qm 'a submodule'
             echo work > work.txt",
        );
        target.use_and_check(&task);
        let tree = target.git(&["ls-tree", "-r", &head_of(&end)]);
        assert!(tree.contains("work.txt") && !tree.contains("160000"), "{tree}");
    });
}

/// Git takes a folder for a repository that looks like one, and obeys it: files that a commit can hold are enough.
#[test]
fn a_bare_repository_among_the_files_is_not_taken_over() {
    at_every_level(|target| {
        let (task, end) = target.run(
            "git init -q --bare docs; git -C docs config core.bare false; git -C docs config core.fsmonitor \"touch $ESCAPED;\"
             git -C docs config core.worktree ..; touch docs/objects/keep docs/refs/keep; echo work > work.txt",
        );
        target.yard.home.command(&["apply", &task]).output().unwrap();
        let docs = target.root.join("docs");
        if docs.is_dir() {
            let _ = target.yard.home.of_its_user("git").current_dir(docs).arg("status").output().unwrap();
        }
        target.check();
        let why = end["left_work"]["why"].as_str().unwrap_or_else(|| panic!("{}: {end}", target.yard.show()));
        assert!(why.contains("docs") && why.contains("repository"), "{why}");
    });
}
