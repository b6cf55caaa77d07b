//! Files that a run was not given: Matsu's token, other users' logins, the user's own folders, through every path.

use serde_json::{Value, json};

use super::{SECRET, Yard, at_every_level};

/// What no run may ever print.
fn assert_kept(yard: &Yard, printed: &str) {
    assert!(!printed.contains(&yard.token()), "{}: the token is out: {printed}", yard.show());
    assert!(!printed.contains(SECRET), "{}: a secret is out: {printed}", yard.show());
}

#[test]
fn the_token_cannot_be_read_from_a_project() {
    at_every_level(|yard| {
        let data = yard.home.data_dir();
        let printed = yard.attack(&format!(
            "cat {0}/token; cat ../data/token; cat {0}/*; cat /proc/self/root{0}/token; find {0} -type f -exec cat {{}} +",
            data.display()
        ));
        assert_kept(yard, &printed);
    });
}

#[test]
fn the_token_cannot_be_read_from_a_run_in_the_home_folder() {
    at_every_level(|yard| {
        let script = "cat data/token .ssh/* .aws/* .netrc .local/share/keyrings/*; ls -la data; echo done";
        if !yard.is_sealed() {
            let refused = yard.start(".", script, json!({}));
            assert_eq!(refused["error_code"], "CONFINEMENT_UNAVAILABLE", "{}: {refused}", yard.show());
            return;
        }
        for mode in ["read-only", "workspace-write"] {
            let printed = yard.attack_in(".", script, json!({ "mode": mode }));
            assert!(printed.contains("done"), "{printed}");
            assert_kept(yard, &printed);
        }
    });
}

#[test]
fn no_run_gets_a_folder_of_logins_or_of_matsu_itself() {
    const FOLDERS: [&str; 6] = ["data", "data/runs", "data/worktrees", ".config/matsu", ".ssh", ".aws"];
    at_every_level(|yard| {
        for made_later in ["worktrees", "runs"] {
            std::fs::create_dir_all(yard.home.data_dir().join(made_later)).unwrap();
        }
        yard.home.give_away();
        for folder in FOLDERS {
            let refused = yard.start(folder, "cat *", json!({}));
            assert_eq!(refused["error_code"], "FORBIDDEN", "{}: {folder}: {refused}", yard.show());
            assert!(refused["error"].as_str().unwrap().contains("name a project folder"), "{refused}");
        }
        if !yard.is_sealed() {
            return;
        }
        // A run in the home folder asks for a child in there.
        let calls = FOLDERS.map(|folder| {
            let wish = json!({ "cli_name": "script", "message": "cat * | rev", "working_directory": folder });
            format!("use_agent '{wish}'")
        });
        let answered = super::identity::answers_in(yard, ".", &super::identity::way_back(&calls.join(" ")), json!({}));
        assert_eq!(answered.len(), FOLDERS.len(), "{answered:?}");
        for (folder, answer) in FOLDERS.iter().zip(answered) {
            assert!(answer.to_string().contains("FORBIDDEN"), "{}: {folder}: {answer}", yard.show());
        }
    });
}

#[test]
fn links_lead_nowhere_that_the_run_may_not_go() {
    at_every_level(|yard| {
        let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, yard.home.path(name)).unwrap();
        link("../data", "project/inside");
        link("data", "shared-data");
        link("../data/token", "project/file");
        link("../.ssh", "project/keys");
        yard.home.give_away();
        let printed = yard
            .attack("cat inside/token file keys/* ../shared-data/token; ls inside keys; ln -s ../data d; cat d/token");
        assert_kept(yard, &printed);
    });
}

#[test]
fn folders_beside_the_project_cannot_be_read_or_written() {
    at_every_level(|yard| {
        let printed = yard.attack_in(
            "project",
            "cat ../elsewhere/notes.txt ../.ssh/id_ed25519; echo planted > ../elsewhere/planted; echo x > ../.bashrc; \
             echo mine > made; cat made",
            json!({ "mode": "workspace-write" }),
        );
        assert_kept(yard, &printed);
        assert!(printed.contains("mine"), "{}: its own folder is writable: {printed}", yard.show());
        for name in ["elsewhere/planted", ".bashrc"] {
            assert!(!yard.home.path(name).exists(), "{}: {name}", yard.show());
        }
        assert!(yard.project.join("made").exists());
    });
}

#[test]
fn a_read_only_run_writes_nothing_of_the_users() {
    at_every_level(|yard| {
        yard.attack(
            "echo x > made; echo x >> ../.profile; mkdir ../new; echo x > /etc/matsu-test; echo x > /usr/matsu-test",
        );
        for name in ["project/made", ".profile", "new"] {
            assert!(!yard.home.path(name).exists(), "{}: {name}", yard.show());
        }
        assert!(!std::path::Path::new("/etc/matsu-test").exists() && !std::path::Path::new("/usr/matsu-test").exists());
    });
}

#[test]
fn the_repository_of_a_run_in_the_users_tree_is_read_only() {
    at_every_level(|yard| {
        let git = |args: &[&str]| {
            let done = std::process::Command::new("git").current_dir(&yard.project).args(args).output().unwrap();
            assert!(done.status.success(), "git {args:?}: {done:?}");
        };
        git(&["init", "-q"]);
        yard.home.give_away();
        let script = "echo evil > .git/hooks/post-checkout; git config core.fsmonitor ./evil; echo x > .git/planted; \
                      mv .git .git-away; echo made > file; ls -a";
        let begun = yard.start("project", script, json!({ "mode": "workspace-write" }));
        yard.end_of(&begun["task_id"]);
        let config = std::fs::read_to_string(yard.project.join(".git/config")).unwrap();
        assert!(!config.contains("fsmonitor"), "{}: {config}", yard.show());
        for name in [".git/hooks/post-checkout", ".git/planted"] {
            assert!(!yard.project.join(name).exists(), "{}: {name}", yard.show());
        }
    });
}

#[test]
fn a_reply_states_how_a_run_is_confined_and_what_is_not_covered() {
    at_every_level(|yard| {
        let begun = yard.start("project", "true", json!({}));
        assert_eq!(begun["confinement"], yard.level, "{begun}");
        let gaps = begun["not_covered"].as_array().unwrap();
        assert!(gaps.iter().any(|gap| gap.as_str().is_some_and(|gap| gap.contains("network"))), "{begun}");
        assert_ne!(yard.end_of(&begun["task_id"])["status"], Value::Null);
    });
}
