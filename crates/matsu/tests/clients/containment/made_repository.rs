//! A run in a folder that is no repository makes one there, with links and pipes where git and Matsu look, and asks for
//! another run. The daemon follows none of them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{SECRET, Yard, at_every_level};

/// Makes the folder `made` a repository with one commit, then goes on with a script.
fn make(yard: &mut Yard, script: &str) {
    let folder = yard.home.path("made");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    yard.home.give_away();
    let names = [
        ("TOKEN", yard.home.data_dir().join("token")),
        ("SSH", yard.home.path(".ssh")),
        ("NOTES", yard.home.path("elsewhere/notes.txt")),
    ];
    let names: String = names.iter().map(|(name, path)| format!("{name}='{}'\n", path.display())).collect();
    let begin = "git init -q -b main . && git -c user.name=R -c user.email=r@localhost commit -q --allow-empty -m x";
    let made =
        yard.attack_in("made", &format!("{names}{begin}\n{script}\necho made"), json!({ "mode": "workspace-write" }));
    assert!(made.ends_with("made\n"), "{}: {made}", yard.show());
}

/// Starts a run with a tree of its own there, and returns all that is replied about it.
fn use_it(yard: &mut Yard) -> String {
    let began = Instant::now();
    let more = json!({ "mode": "workspace-write", "isolation": "worktree" });
    let begun = yard.start("made", "echo more > more.txt", more);
    let end = if begun["task_id"].is_string() { yard.end_of(&begun["task_id"]) } else { Value::Null };
    assert!(began.elapsed() < Duration::from_secs(40), "{}: {:?}", yard.show(), began.elapsed());
    let listed = yard.call("get_task_status", &json!({}));
    assert!(listed["tasks"].is_array(), "{}: the daemon works: {listed}", yard.show());
    format!("{begun}\n{end}")
}

/// The files below a folder.
fn files(yard: &Yard, folder: &str) -> Vec<String> {
    let mut found: Vec<String> = std::fs::read_dir(yard.home.path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    found
}

#[test]
fn a_settings_file_that_is_a_link_shows_nothing_of_its_target() {
    at_every_level(|yard| {
        make(yard, "ln -s \"$TOKEN\" .matsu.toml");
        let said = use_it(yard);
        assert!(!said.contains(&yard.token()), "{}: {said}", yard.show());
        assert!(said.contains(".matsu.toml"), "{}: it is named: {said}", yard.show());
    });
}

#[test]
fn references_objects_and_logs_that_are_links_are_not_written_through() {
    at_every_level(|yard| {
        let before = files(yard, ".ssh");
        for link in [
            "rm -rf .git/logs; git config core.logAllRefUpdates always; ln -s \"$SSH\" .git/logs",
            "ln -s \"$SSH\" .git/refs/matsu",
            "rm -rf .git/objects/pack; ln -s \"$SSH\" .git/objects/pack",
        ] {
            make(yard, link);
            use_it(yard);
            assert_eq!(files(yard, ".ssh"), before, "{}: {link}", yard.show());
        }
    });
}

#[test]
fn what_git_prints_about_a_linked_file_is_not_passed_on() {
    at_every_level(|yard| {
        for name in ["shallow", "packed-refs"] {
            make(yard, &format!("mkdir -p .git/info; rm -f .git/{name}; ln -s \"$NOTES\" .git/{name}"));
            let said = use_it(yard);
            assert!(!said.contains(SECRET), "{}: {name}: {said}", yard.show());
        }
    });
}

#[test]
fn a_pipe_where_a_file_is_expected_stops_nothing() {
    at_every_level(|yard| {
        for pipe in ["mkfifo .matsu.toml", "rm -rf .git; mkfifo .git", "mkfifo .git/commondir"] {
            make(yard, pipe);
            use_it(yard);
        }
    });
}
