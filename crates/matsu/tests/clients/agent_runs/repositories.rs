//! Ordinary and less ordinary repositories: each works, or is refused with the reason. And `matsu apply`, byte for byte.

use std::path::Path;

use serde_json::{Value, json};

use super::worktrees::{git, repository};
use super::{Bench, end_of, program, start_with};
use crate::stdio::Client;

const WRITING: &str = "[agents]\nmode_max = \"workspace-write\"\n";

fn write(client: &mut Client, script: &str, more: Value) -> (String, Value) {
    let mut wish = json!({ "mode": "workspace-write" });
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let task = start_with(client, script, wish);
    let end = end_of(client, &task);
    (task, end)
}

fn refs(root: &Path) -> String {
    git(root, &["for-each-ref", "--format=%(refname)"])
}

/// What `matsu apply` says when it refuses.
fn refused(bench: &Bench, task: &str) -> String {
    let output = bench.home.command(&["apply", task]).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_run_without_changes_leaves_no_branch_and_no_reference() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let mut client = bench.client();
    let (_, end) = write(&mut client, "cat a.txt; git status --short", json!({}));
    assert_eq!((&end["result"], &end["changes"]["files"]), (&json!("a\n"), &json!(0)), "{end}");
    assert_eq!(refs(&bench.root), "refs/heads/main\n");
    for folder in ["worktrees", "quarantine"] {
        assert_eq!(std::fs::read_dir(bench.home.data_dir().join(folder)).unwrap().count(), 0, "{folder}");
    }
}

#[test]
fn a_result_is_kept_under_the_tasks_name_and_on_a_branch_for_people() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let mut client = bench.client();
    let (task, end) = write(&mut client, "# Greet the world\necho hello > hello.txt", json!({}));
    let branch = end["changes"]["branch"].as_str().unwrap();
    assert!(branch.starts_with("matsu/greet-the-world-"), "{branch}");
    let of = |name: &str| git(&bench.root, &["rev-parse", "--verify", name]);
    assert_eq!(of(&format!("refs/matsu/{task}/head")), of(branch));
    assert_eq!(of(&format!("refs/matsu/{task}/base")), of("main"));
    let author = git(&bench.root, &["log", "-1", "--format=%an", branch]);
    assert_eq!(author, "Matsu\n");
}

#[test]
fn a_repository_without_commits_works() {
    let bench = Bench::with(WRITING);
    git(&bench.root, &["init", "-q", "-b", "main"]);
    let mut client = bench.client();
    let (task, end) = write(&mut client, "echo first > first.txt", json!({}));
    assert_eq!((&end["status"], &end["changes"]["files"]), (&json!("completed"), &json!(1)), "{end}");
    bench.home.run(&["apply", &task]);
    assert_eq!(std::fs::read_to_string(bench.root.join("first.txt")).unwrap(), "first\n");
}

#[test]
fn a_linked_worktree_a_subdirectory_and_an_odd_name_work() {
    let bench = Bench::with(WRITING);
    let main = bench.home.path("main tree 日本語");
    std::fs::create_dir_all(&main).unwrap();
    repository(&main);
    std::fs::remove_dir_all(&bench.root).unwrap();
    git(&main, &["worktree", "add", "-q", "-b", "side", bench.root.to_str().unwrap()]);
    std::fs::create_dir_all(bench.root.join("docs")).unwrap();
    std::fs::write(bench.root.join("docs/x.md"), "x\n").unwrap();
    git(&bench.root, &["add", "."]);
    git(&bench.root, &["commit", "-q", "-m", "docs"]);
    let mut client = bench.client();
    let (task, end) = write(&mut client, "pwd; echo y > y.md", json!({ "working_directory": "docs" }));
    assert!(end["result"].as_str().is_some_and(|pwd| pwd.trim_end().ends_with("/docs")), "{end}");
    bench.home.run(&["apply", &task]);
    assert_eq!(std::fs::read_to_string(bench.root.join("docs/y.md")).unwrap(), "y\n");
    assert!(!main.join("docs").exists(), "the other tree is as it was");
}

#[test]
fn a_directory_that_is_not_committed_is_there_with_its_files() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    std::fs::create_dir_all(bench.root.join("notes")).unwrap();
    std::fs::write(bench.root.join("notes/mine"), "mine\n").unwrap();
    let mut client = bench.client();
    let (_, end) = write(&mut client, "cat mine; echo x > x", json!({ "working_directory": "notes" }));
    assert_eq!((end["result"].as_str().map(str::trim), &end["changes"]["files"]), (Some("mine"), &json!(1)), "{end}");
}

#[test]
fn sha256_and_shallow_repositories_work() {
    let bench = Bench::with(WRITING);
    git(&bench.root, &["init", "-q", "-b", "main", "--object-format=sha256"]);
    repository(&bench.root);
    let mut client = bench.client();
    let (task, end) = write(&mut client, "echo more >> a.txt", json!({}));
    assert_eq!(end["changes"]["base"].as_str().map(str::len), Some(64), "{end}");
    bench.home.run(&["apply", &task]);
    assert_eq!(std::fs::read_to_string(bench.root.join("a.txt")).unwrap(), "a\nmore\n");

    let bench = Bench::with(WRITING);
    let full = bench.home.path("full");
    std::fs::create_dir_all(&full).unwrap();
    repository(&full);
    std::fs::write(full.join("a.txt"), "second\n").unwrap();
    git(&full, &["commit", "-qam", "second"]);
    std::fs::remove_dir_all(&bench.root).unwrap();
    let from = format!("file://{}", full.display());
    git(bench.home.folder(), &["clone", "-q", "--depth=1", &from, bench.root.to_str().unwrap()]);
    let mut client = bench.client();
    let (task, end) = write(&mut client, "git log --oneline | wc -l; echo third > a.txt", json!({}));
    assert_eq!(end["result"].as_str().map(str::trim), Some("1"), "{end}");
    bench.home.run(&["apply", &task]);
    assert_eq!(std::fs::read_to_string(bench.root.join("a.txt")).unwrap(), "third\n");
}

#[test]
fn an_old_git_is_refused_with_the_version_that_is_needed() {
    let mut bench = Bench::with(WRITING);
    repository(&bench.root);
    let bin = bench.home.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    program(&bin.join("git"), "echo git version 2.30.2");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    bench.home.set("PATH", &path);
    let mut client = bench.client();
    let (_, end) = write(&mut client, "echo x > x", json!({}));
    let error = end["error"].as_str().unwrap_or_else(|| panic!("{end}"));
    assert!(error.contains("2.30.2") && error.contains("2.41") && error.contains("Update git"), "{error}");
}

/// Latin-1, bytes of no encoding, line ends, a mode, a link, a renamed and a removed file.
#[test]
fn every_kind_of_change_arrives_byte_for_byte() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    std::fs::write(bench.root.join("latin.txt"), b"caf\xe9\none\ntwo\n").unwrap();
    std::fs::write(bench.root.join("crlf.txt"), b"one\r\ntwo\r\n").unwrap();
    std::fs::write(bench.root.join("image"), (0..=255).collect::<Vec<u8>>()).unwrap();
    git(&bench.root, &["add", "."]);
    git(&bench.root, &["commit", "-qm", "more"]);
    let mut client = bench.client();
    let (task, end) = write(
        &mut client,
        "printf 'caf\\351\\none\\ntwo \\374\\n' > latin.txt; printf '\\344\\366\\n' > new-latin.txt
         printf 'one\\r\\nTWO\\r\\n' > crlf.txt
         printf '\\000\\001\\377\\376' > image; printf '\\377\\000\\n' > new-image
         chmod +x a.txt; git mv b.txt c.txt; ln -s a.txt link; mkdir 'a b'; echo 日本 > 'a b/日本.txt'",
        json!({}),
    );
    assert_eq!(end["status"], "completed", "{end}");
    let shown = bench.home.command(&["apply", &task, "--show"]).output().unwrap().stdout;
    assert!(shown.windows(5).any(|part| part == b"caf\xe9\n"), "the patch is bytes");
    bench.home.run(&["apply", &task]);
    let read = |name: &str| std::fs::read(bench.root.join(name)).unwrap();
    assert_eq!(read("latin.txt"), b"caf\xe9\none\ntwo \xfc\n");
    assert_eq!((read("new-latin.txt"), read("crlf.txt")), (b"\xe4\xf6\n".to_vec(), b"one\r\nTWO\r\n".to_vec()));
    assert_eq!((read("image"), read("new-image")), (b"\x00\x01\xff\xfe".to_vec(), b"\xff\x00\n".to_vec()));
    assert_eq!((read("c.txt"), read("a b/日本.txt")), (b"b\n".to_vec(), "日本\n".as_bytes().to_vec()));
    assert!(!bench.root.join("b.txt").exists());
    use std::os::unix::fs::PermissionsExt;
    assert_ne!(std::fs::metadata(bench.root.join("a.txt")).unwrap().permissions().mode() & 0o111, 0);
    assert_eq!(std::fs::read_link(bench.root.join("link")).unwrap(), Path::new("a.txt"));
}

#[test]
fn edits_of_both_in_one_file_are_merged_and_the_index_is_left_alone() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let lines: String = (1..=9).map(|line| format!("line {line}\n")).collect();
    std::fs::write(bench.root.join("a.txt"), &lines).unwrap();
    git(&bench.root, &["commit", "-qam", "lines"]);
    let mut client = bench.client();
    let (task, _) = write(&mut client, "sed -i 's/line 5/line five/' a.txt; echo new > new.txt", json!({}));
    let mine = lines.replace("line 3\n", "line three\n");
    std::fs::write(bench.root.join("a.txt"), &mine).unwrap();
    std::fs::write(bench.root.join("staged.txt"), "staged\n").unwrap();
    git(&bench.root, &["add", "staged.txt"]);
    bench.home.run(&["apply", &task]);
    let merged = std::fs::read_to_string(bench.root.join("a.txt")).unwrap();
    assert_eq!(merged, mine.replace("line 5\n", "line five\n"), "an edit two lines away is no conflict");
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), " M a.txt\nA  staged.txt\n?? new.txt\n");
}

#[test]
fn a_conflict_changes_nothing_and_names_the_next_step() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let mut client = bench.client();
    let (task, _) = write(&mut client, "echo theirs > a.txt; echo new > new.txt; rm b.txt", json!({}));
    std::fs::write(bench.root.join("a.txt"), "mine\n").unwrap();
    let said = refused(&bench, &task);
    for step in [format!("matsu apply {task} --merge"), format!("matsu apply {task} --send-back")] {
        assert!(said.contains("a.txt") && said.contains(&step), "{said}");
    }
    assert_eq!(std::fs::read_to_string(bench.root.join("a.txt")).unwrap(), "mine\n");
    assert!(!bench.root.join("new.txt").exists() && bench.root.join("b.txt").exists());
    std::fs::write(bench.root.join("a.txt"), "a\n").unwrap();
    std::fs::write(bench.root.join("new.txt"), "my own new file\n").unwrap();
    assert!(refused(&bench, &task).contains("new.txt"), "a file that is not tracked is not overwritten");
    assert_eq!(std::fs::read_to_string(bench.root.join("new.txt")).unwrap(), "my own new file\n");
    std::fs::remove_file(bench.root.join("new.txt")).unwrap();
    bench.home.run(&["apply", &task]);
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), " M a.txt\n D b.txt\n?? new.txt\n");
}

#[test]
fn a_resumed_conversation_is_counted_from_the_users_commit() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let mut client = bench.client();
    let (_, first) = write(&mut client, "echo 1 > one.txt", json!({ "session_id": "talk" }));
    std::fs::write(bench.root.join("b.txt"), "moved on\n").unwrap();
    git(&bench.root, &["commit", "-qam", "the user goes on"]);
    let more = json!({ "session_id": "talk", "resume": true });
    let (task, second) = write(&mut client, "cat one.txt; echo 2 > two.txt", more);
    assert_eq!(second["result"], "1\n", "it goes on where it was: {second}");
    assert_eq!(second["changes"]["base"], first["changes"]["base"], "{second}");
    assert_eq!((&second["changes"]["files"], &second["changes"]["branch"]), (&json!(2), &first["changes"]["branch"]));
    bench.home.run(&["apply", &task]);
    let read = |name: &str| std::fs::read_to_string(bench.root.join(name)).unwrap();
    assert_eq!((read("one.txt"), read("two.txt"), read("b.txt")), ("1\n".into(), "2\n".into(), "moved on\n".into()));
}

#[test]
fn a_run_that_another_run_asked_for_starts_from_its_tree() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let mut client = bench.client();
    let child = json!({
        "cli_name": "script", "mode": "workspace-write",
        "message": "# child\ncat parent.txt && echo child > child.txt"
    });
    let child = child.to_string().replace('\'', "'\\''");
    let way = format!("python3 {}/tests/clients/agent_runs/way_back.py", env!("CARGO_MANIFEST_DIR"));
    let script = format!(
        "# parent\ngit config user.name P; git config user.email p@localhost
         echo parent > parent.txt; git add -A; git commit -qm parent
         {way} use_agent '{child}' > /dev/null
         git merge -q $(git for-each-ref --format='%(refname:short)' 'refs/heads/matsu/child*') && cat child.txt"
    );
    let (task, end) = write(&mut client, &script, json!({ "cli_name": "back" }));
    assert_eq!(end["result"], "child\n", "{end}");
    assert_eq!(end["changes"]["files"], 2, "{end}");
    bench.home.run(&["apply", &task]);
    assert_eq!(std::fs::read_to_string(bench.root.join("child.txt")).unwrap(), "child\n");
    assert_eq!(refs(&bench.root).matches("refs/heads/matsu/child").count(), 1, "its branch is the user's too");
}
