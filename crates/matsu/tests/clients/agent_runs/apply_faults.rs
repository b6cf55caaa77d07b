//! Applying where something is in the way: a sparse checkout, markers that were left, other kinds of conflicts, a process
//! that is killed, a dependency that is missing.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::receipts::write_agent;
use super::worktrees::{git, repository};
use super::{Bench, SOON, end_of, processes, start_with, unique_sleep};
use crate::home::{kill, until};
use crate::stdio::Client;

const WRITING: &str = "[agents]\nmode_max = \"workspace-write\"\n";

fn bench() -> (Bench, Client) {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let client = bench.client();
    (bench, client)
}

#[track_caller]
fn write(client: &mut Client, script: &str) -> String {
    let task = start_with(client, script, json!({ "mode": "workspace-write" }));
    let end = end_of(client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    task
}

fn read(root: &Path, name: &str) -> String {
    std::fs::read_to_string(root.join(name)).unwrap_or_else(|error| format!("{name}: {error}"))
}

#[track_caller]
fn refused(bench: &Bench, words: &[&str]) -> String {
    let output = bench.home.command(words).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a person reads.
fn said(bench: &Bench, words: &[&str]) -> String {
    let output = bench.home.command(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn files_outside_a_sparse_checkout_are_written_as_well() {
    let (bench, mut client) = bench();
    let root = &bench.root;
    for folder in ["d1", "d2"] {
        std::fs::create_dir(root.join(folder)).unwrap();
        std::fs::write(root.join(folder).join("f"), "1\n2\n3\n").unwrap();
    }
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "folders"]);
    for cone in ["--cone", "--no-cone"] {
        git(root, &["sparse-checkout", "set", cone, "d1"]);
        assert!(!root.join("d2").exists());
        let script = "echo new > d1/newfile; echo new > d2/newfile; sed -i s/2/two/ d1/f d2/f";
        let task = write(&mut client, script);
        let applied = bench.home.run(&["apply", &task]);
        assert_eq!(applied["conflicts"], json!([]), "{applied}");
        for folder in ["d1", "d2"] {
            assert_eq!(read(root, &format!("{folder}/f")), "1\ntwo\n3\n", "{cone}");
            assert_eq!(read(root, &format!("{folder}/newfile")), "new\n", "{cone}");
        }
        let status = git(root, &["status", "--porcelain"]);
        assert_eq!(status, " M d1/f\n M d2/f\n?? d1/newfile\n?? d2/newfile\n", "{cone}");
        bench.home.run(&["apply", &task, "--undo"]);
        assert_eq!(git(root, &["status", "--porcelain"]), "", "{cone}");
        git(root, &["sparse-checkout", "disable"]);
    }
    // A file that git leaves out by a mark has the user's own lines.
    git(root, &["update-index", "--skip-worktree", "d1/f"]);
    std::fs::write(root.join("d1/f"), "mine\n1\n2\n3\n").unwrap();
    let task = write(&mut client, "echo 4 >> d1/f");
    bench.home.run(&["apply", &task]);
    assert_eq!(read(root, "d1/f"), "mine\n1\n2\n3\n4\n");
}

#[test]
fn conflict_markers_that_an_agent_leaves_are_not_resolved_and_not_written() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    write_agent(
        &bench,
        "leaver",
        &["echo the run > a.txt", "echo looked > seen.txt", "sed -i '/^[<=>]\\{7\\}/d' a.txt"],
    );
    let mut client = bench.client();
    let task = start_with(&mut client, "Greet", json!({ "cli_name": "leaver", "mode": "workspace-write" }));
    assert_eq!(end_of(&mut client, &task)["status"], "completed");
    std::fs::write(bench.root.join("a.txt"), "the user\n").unwrap();
    let sent = bench.home.run(&["apply", &task, "--send-back"]);
    let next = sent["sent_back"]["task_id"].as_str().unwrap().to_owned();
    let end = end_of(&mut client, &next);
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("CONFLICTS_LEFT")), "{end}");
    assert!(end["error"].as_str().is_some_and(|why| why.contains("a.txt")), "{end}");
    let words = refused(&bench, &["apply", &next]);
    assert!(words.contains("left conflict markers in a.txt") && words.contains("--send-back"), "{words}");
    assert_eq!(read(&bench.root, "a.txt"), "the user\n", "nothing was written");
    let sent = bench.home.run(&["apply", &next, "--send-back"]);
    let last = sent["sent_back"]["task_id"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned();
    assert_eq!(end_of(&mut client, &last)["status"], "completed");
    bench.home.run(&["apply", &last]);
    assert_eq!(read(&bench.root, "a.txt"), "the user\nthe run\n");
}

#[test]
fn markers_that_a_run_writes_are_written_only_when_asked_and_old_ones_are_no_fault() {
    let (bench, mut client) = bench();
    let markers = "<<<<<<< one\\n=======\\n>>>>>>> two\\n";
    let task = write(&mut client, &format!("printf '{markers}' > notes.md"));
    assert!(refused(&bench, &["apply", &task]).contains("left conflict markers in notes.md"));
    bench.home.run(&["apply", &task, "--merge"]);
    let written = read(&bench.root, "notes.md");
    git(&bench.root, &["add", "."]);
    git(&bench.root, &["commit", "-qm", "notes"]);
    let task = write(&mut client, "echo more >> notes.md");
    bench.home.run(&["apply", &task]);
    assert_eq!(read(&bench.root, "notes.md"), format!("{written}more\n"));
}

#[test]
fn each_kind_of_conflict_is_named_for_what_it_is() {
    let (bench, mut client) = bench();
    let root = &bench.root;
    std::fs::write(root.join("p.bin"), b"\0one").unwrap();
    std::fs::write(root.join("c.txt"), "c\n").unwrap();
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "more"]);
    let task =
        write(&mut client, "echo run > a.txt; echo run > b.txt; rm c.txt; printf '\\0run' > p.bin; echo run > new.txt");
    std::fs::write(root.join("new.txt"), "mine\n").unwrap();
    std::fs::write(root.join("a.txt"), "mine\n").unwrap();
    std::fs::remove_file(root.join("b.txt")).unwrap();
    std::fs::write(root.join("c.txt"), "mine\n").unwrap();
    std::fs::write(root.join("p.bin"), b"\0mine").unwrap();
    let words = refused(&bench, &["apply", &task]);
    for expected in [
        "a.txt (you and the run changed the same lines)",
        "b.txt (you deleted it, and the run changed it)",
        "c.txt (the run deleted it, and you changed it)",
        "new.txt (the run created it, and you have a different one",
        "p.bin (you and the run changed it, and it is not text)",
    ] {
        assert!(words.contains(expected), "{expected}: {words}");
    }
    let words = said(&bench, &["apply", &task, "--merge"]);
    assert!(words.contains("Conflict markers are in: a.txt, new.txt\n"), "{words}");
    assert!(words.contains("No conflict markers could be written, so compare this file yourself: p.bin"), "{words}");
    assert!(read(root, "a.txt").contains("<<<<<<<") && !read(root, "b.txt").contains("<<<<<<<"));
}

#[test]
fn what_is_in_the_way_is_named_with_what_to_do_and_a_folder_that_became_a_file_is_applied() {
    let (bench, mut client) = bench();
    let root = &bench.root;
    std::fs::create_dir(root.join("old")).unwrap();
    std::fs::write(root.join("old/f"), "f\n").unwrap();
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "folder"]);
    let task = write(&mut client, "rm -r old; echo file > old");
    bench.home.run(&["apply", &task]);
    assert_eq!(read(root, "old"), "file\n");
    let task = write(&mut client, "echo file > dd; echo new > new.txt");
    std::fs::create_dir(root.join("dd")).unwrap();
    std::fs::write(root.join("dd/mine"), "mine\n").unwrap();
    let words = refused(&bench, &["apply", &task]);
    assert!(words.contains(": dd. ") && words.contains("Move files that are in the way"), "{words}");
    assert!(!words.contains("git ") && !root.join("new.txt").exists(), "{words}");
    git(root, &["add", "dd"]);
    let words = refused(&bench, &["apply", &task]);
    assert!(words.contains("dd (it is a file on one side and a folder on the other)"), "{words}");
    assert!(
        !words.contains('~') && refused(&bench, &["apply", &task, "--merge"]).contains("move yours away"),
        "{words}"
    );
    let task = write(&mut client, "mkdir below; echo x > below/x");
    symlink(root.join("dd"), root.join("below")).unwrap();
    let words = refused(&bench, &["apply", &task]);
    assert!(words.contains("a folder above below/x is a link"), "{words}");
    assert!(!root.join("dd/x").exists());
}

/// The user's own filter, which git runs while it writes the last file, does not come to its end.
#[test]
fn an_interrupted_apply_of_many_files_is_taken_back_soon_and_holds_up_no_other_repository() {
    let (bench, mut client) = bench();
    let root = &bench.root;
    let count = std::env::var("MATSU_TEST_APPLIED").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000);
    std::fs::create_dir(root.join("many")).unwrap();
    for at in 0..count {
        std::fs::write(root.join(format!("many/{at}")), "old\n").unwrap();
    }
    std::fs::write(root.join(".gitattributes"), "z.txt filter=slow\n").unwrap();
    std::fs::write(root.join("z.txt"), "z\n").unwrap();
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "many"]);
    let change = "for f in many/*; do echo more >> $f; done; mkdir new; i=0; while [ $i -lt 1000 ]; do echo n > new/$i; \
                  i=$((i+1)); done; echo zz > z.txt";
    let task = write(&mut client, change);
    let nap = unique_sleep();
    git(root, &["config", "filter.slow.smudge", &format!("sleep {nap}; cat")]);
    let mut command = bench.home.command(&["apply", &task]);
    let mut applying = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it is writing", Duration::from_secs(120), || (processes(&nap) > 0).then_some(()));
    // Another tree is free while this one is written.
    let other = bench.home.path("project/other");
    std::fs::create_dir(&other).unwrap();
    repository(&other);
    let place = json!({ "mode": "workspace-write", "working_directory": other.to_str().unwrap() });
    let elsewhere = start_with(&mut client, "echo more >> a.txt", place);
    assert_eq!(end_of(&mut client, &elsewhere)["status"], "completed");
    bench.home.run(&["apply", &elsewhere]);
    assert_eq!(read(&other, "a.txt"), "a\nmore\n");
    assert!(said(&bench, &["doctor"]).contains("changes are being applied to"), "a person can see it");
    std::fs::write(root.join("many/7"), "mine\n").unwrap();
    std::fs::write(root.join("new/7"), "mine\n").unwrap();
    kill(bench.home.relayed().0);
    assert!(!applying.wait().unwrap().success());
    until("its git has ended", SOON, || (processes(&nap) == 0).then_some(()));
    git(root, &["config", "filter.slow.smudge", "cat"]);
    std::fs::remove_dir_all(&other).unwrap();
    let began = Instant::now();
    let _client = bench.client();
    until("it is taken back", Duration::from_secs(60), || {
        let status = git(root, &["status", "--porcelain", "-uall"]);
        (status == " M many/7\n?? new/7\n").then_some(())
    });
    eprintln!("{count} files were taken back within {:.1} s", began.elapsed().as_secs_f64());
    assert_eq!(
        (read(root, "many/7").as_str(), read(root, "new/7").as_str()),
        ("mine\n", "mine\n"),
        "what is newer stays"
    );
}

/// Another process, with a data directory of its own, applies to the same tree.
#[test]
fn an_apply_waits_for_another_process_that_applies_to_the_same_tree() {
    let (bench, mut client) = bench();
    let task = write(&mut client, "echo more >> a.txt");
    let held = std::fs::File::open(bench.root.join(".git")).unwrap();
    held.lock().unwrap();
    let mut command = bench.home.command(&["apply", &task]);
    let mut applying = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert!(applying.try_wait().unwrap().is_none() && read(&bench.root, "a.txt") == "a\n");
    drop(held);
    assert!(applying.wait().unwrap().success());
    assert_eq!(read(&bench.root, "a.txt"), "a\nmore\n");
}

#[test]
fn an_apply_names_the_tasks_that_its_work_began_with_and_that_are_not_applied() {
    let (bench, mut client) = bench();
    let mut after = |script: &str, before: &[&String]| {
        let task = start_with(&mut client, script, json!({ "mode": "workspace-write", "depends_on": before }));
        assert_eq!(end_of(&mut client, &task)["status"], "completed");
        task
    };
    let first = after("echo 1 > f1", &[]);
    let second = after("echo 2 > f2; exit", &[&first]);
    let third = after("echo 3 > f3; exit", &[&second]);
    let words = said(&bench, &["apply", &third]);
    assert!(
        words.contains(&format!("not applied. To apply them too: matsu apply {first}; matsu apply {second}")),
        "{words}"
    );
    bench.home.run(&["apply", &first]);
    let applied = bench.home.run(&["apply", &second]);
    assert_eq!(applied["missing"], Value::Null, "{applied}");
}

#[test]
fn discard_names_the_reference_that_has_the_commits_and_none_that_is_gone() {
    let (bench, mut client) = bench();
    let (one, two) = (write(&mut client, "echo 1 > f1"), write(&mut client, "echo 2 > f2"));
    let words = said(&bench, &["discard", &one]);
    assert!(words.contains(&format!("git show refs/matsu/{one}/head")), "{words}");
    git(&bench.root, &["update-ref", "-d", &format!("refs/matsu/{two}/head")]);
    let head = git(&bench.root, &["for-each-ref", "--format=%(objectname)", "refs/heads/matsu"]);
    let words = said(&bench, &["discard", &two]);
    assert!(!words.contains("refs/matsu") && words.contains(&format!("git branch NAME {}", head.trim())), "{words}");
}
