//! Repositories as people have them: start, change, review, apply, each by itself. The run sees what the user sees.

use std::path::Path;

use serde_json::{Value, json};

use super::worktrees::{git, repository};
use super::{Bench, end_of, start_with};
use crate::stdio::Client;

const WRITING: &str = "[agents]\nmode_max = \"workspace-write\"\n";

fn bench() -> Bench {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    bench
}

fn commit(root: &Path) {
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "more"]);
}

#[track_caller]
fn write(client: &mut Client, script: &str) -> (String, Value) {
    let task = start_with(client, script, json!({ "mode": "workspace-write" }));
    let end = end_of(client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    (task, end)
}

/// The patch as a person reads it, then the same in the tree.
#[track_caller]
fn review_and_apply(bench: &Bench, task: &str) -> Vec<u8> {
    let shown = bench.home.command(&["diff", task]).output().unwrap();
    assert!(shown.status.success() && !shown.stdout.is_empty(), "{shown:?}");
    let said = bench.home.run(&["apply", task]);
    assert_eq!(said["task"]["review"], "applied", "{said}");
    shown.stdout
}

fn read(root: &Path, name: &str) -> String {
    std::fs::read_to_string(root.join(name)).unwrap_or_else(|error| format!("{name}: {error}"))
}

#[test]
fn a_dirty_tree_is_seen_as_it_is_and_left_as_it_is() {
    let bench = bench();
    std::fs::write(bench.root.join("gone.txt"), "gone\n").unwrap();
    std::fs::write(bench.root.join(".gitignore"), "*.secret\n").unwrap();
    commit(&bench.root);
    let root = &bench.root;
    std::fs::write(root.join("a.txt"), "a, not committed\n").unwrap();
    std::fs::write(root.join("staged.txt"), "staged\n").unwrap();
    git(root, &["add", "staged.txt"]);
    std::fs::write(root.join("staged.txt"), "staged, then changed\n").unwrap();
    std::fs::write(root.join("untracked.txt"), "untracked\n").unwrap();
    std::fs::write(root.join("key.secret"), "ignored\n").unwrap();
    std::fs::write(root.join("large.bin"), vec![7; 11 * 1024 * 1024]).unwrap();
    std::fs::remove_file(root.join("gone.txt")).unwrap();
    let (before, index) = (git(root, &["status", "--porcelain"]), git(root, &["ls-files", "--stage"]));
    let objects = git(root, &["count-objects"]);
    let mut client = bench.client();
    let started = client.call(
        "use_agent",
        &json!({ "cli_name": "script", "message": "cat a.txt", "mode": "workspace-write", "run_async": true }),
    );
    assert!(started["message"].as_str().is_some_and(|said| said.contains("working tree")), "{started}");
    end_of(&mut client, started["task_id"].as_str().unwrap());
    assert_eq!(git(root, &["count-objects"]), objects, "a run without changes leaves nothing in the user's repository");

    let script = "cat a.txt staged.txt untracked.txt; ls gone.txt key.secret large.bin 2>&1 | wc -l; git status --short
                  echo and the run >> untracked.txt; echo b and the run > b.txt";
    let (task, end) = write(&mut client, script);
    assert_eq!(end["result"], "a, not committed\nstaged, then changed\nuntracked\n3\n", "{end}");
    let changes = &end["changes"];
    assert_eq!(
        (&changes["files"], &changes["started_from"]),
        (&json!(2), &json!("your working tree, with 5 uncommitted files")),
        "{end}"
    );
    assert_eq!(changes["not_in_base"], json!(["large.bin (11 MB)"]), "{end}");
    assert_eq!((git(root, &["status", "--porcelain"]), git(root, &["ls-files", "--stage"])), (before, index.clone()));
    let patch = String::from_utf8(review_and_apply(&bench, &task)).unwrap();
    assert!(!patch.contains("not committed"), "only what the run changed: {patch}");
    assert_eq!(read(root, "untracked.txt"), "untracked\nand the run\n");
    assert_eq!((read(root, "a.txt").as_str(), read(root, "b.txt").as_str()), ("a, not committed\n", "b and the run\n"));
    assert!(!root.join("gone.txt").exists() && root.join("large.bin").exists());
    assert_eq!(git(root, &["ls-files", "--stage"]), index, "the index is left alone");
}

#[test]
fn a_repository_without_commits_starts_from_its_files() {
    let bench = Bench::with(WRITING);
    git(&bench.root, &["init", "-q", "-b", "main"]);
    std::fs::write(bench.root.join("draft.txt"), "draft\n").unwrap();
    let mut client = bench.client();
    let (task, end) = write(&mut client, "cat draft.txt; echo more >> draft.txt; echo new > new.txt");
    assert_eq!((&end["result"], &end["changes"]["files"]), (&json!("draft\n"), &json!(2)), "{end}");
    review_and_apply(&bench, &task);
    assert_eq!(
        (read(&bench.root, "draft.txt").as_str(), read(&bench.root, "new.txt").as_str()),
        ("draft\nmore\n", "new\n")
    );
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), "?? draft.txt\n?? new.txt\n");
}

#[test]
fn a_submodule_is_named_as_missing_and_stays_as_it_is() {
    let bench = bench();
    let inner = bench.home.path("inner");
    std::fs::create_dir_all(&inner).unwrap();
    repository(&inner);
    let from = inner.to_str().unwrap();
    git(&bench.root, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "sub"]);
    commit(&bench.root);
    let mut client = bench.client();
    let (task, end) = write(&mut client, "ls sub | wc -l; echo more >> a.txt");
    assert_eq!(end["result"].as_str().map(str::trim), Some("0"), "{end}");
    assert_eq!(end["changes"]["not_in_base"], json!(["sub (a submodule)"]), "{end}");
    review_and_apply(&bench, &task);
    assert_eq!((read(&bench.root, "a.txt").as_str(), read(&bench.root, "sub/a.txt").as_str()), ("a\nmore\n", "a\n"));
    let (_, end) = write(&mut client, "echo lost > sub/only.txt; echo more >> b.txt");
    assert_eq!(end["changes"]["left_out"], json!(["sub"]), "{end}");
    let folder = Path::new(end["left_work"]["folder"].as_str().unwrap());
    assert_eq!(read(folder, "sub/only.txt"), "lost\n", "the folder stays");
}

#[test]
fn a_pointer_of_git_lfs_is_a_file_like_any_other() {
    let bench = bench();
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n", "a1".repeat(32));
    std::fs::write(bench.root.join(".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n").unwrap();
    std::fs::write(bench.root.join("model.bin"), &pointer).unwrap();
    commit(&bench.root);
    let mut client = bench.client();
    let (task, end) = write(&mut client, "head -n 1 model.bin; echo more >> a.txt");
    assert_eq!(end["result"], "version https://git-lfs.github.com/spec/v1\n", "{end}");
    review_and_apply(&bench, &task);
    assert_eq!((read(&bench.root, "model.bin"), read(&bench.root, "a.txt")), (pointer, "a\nmore\n".to_owned()));
}

#[test]
fn line_ends_of_windows_stay_line_ends_of_windows() {
    let bench = bench();
    git(&bench.root, &["config", "core.autocrlf", "true"]);
    std::fs::write(bench.root.join("crlf.txt"), "one\r\ntwo\r\nthree\r\n").unwrap();
    commit(&bench.root);
    std::fs::write(bench.root.join("crlf.txt"), "ONE\r\ntwo\r\nthree\r\n").unwrap();
    let mut client = bench.client();
    let (task, _) = write(&mut client, "sed -i 's/^three/THREE/' crlf.txt");
    review_and_apply(&bench, &task);
    assert_eq!(read(&bench.root, "crlf.txt"), "ONE\r\ntwo\r\nTHREE\r\n");
}

#[test]
fn latin_1_and_binary_files_that_are_not_committed_arrive_byte_for_byte() {
    let bench = bench();
    let bytes: Vec<u8> = (0..=255).collect();
    std::fs::write(bench.root.join("image"), &bytes).unwrap();
    std::fs::write(bench.root.join("latin.txt"), b"caf\xe9\n").unwrap();
    let mut client = bench.client();
    let (task, end) = write(&mut client, "wc -c < image; printf '\\374\\n' >> latin.txt; printf '\\000\\377' >> image");
    assert_eq!(end["result"].as_str().map(str::trim), Some("256"), "{end}");
    review_and_apply(&bench, &task);
    assert_eq!(std::fs::read(bench.root.join("latin.txt")).unwrap(), b"caf\xe9\n\xfc\n");
    assert_eq!(std::fs::read(bench.root.join("image")).unwrap(), [bytes, vec![0, 255]].concat());
}

/// 10,000 files; more with MATSU_TEST_FILES.
#[test]
fn many_files_and_a_dirty_one() {
    let bench = bench();
    let files = std::env::var("MATSU_TEST_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let folders: usize = files / 100;
    for folder in 0..folders {
        let folder = bench.root.join(format!("folder-{folder}"));
        std::fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            std::fs::write(folder.join(format!("file-{file}.txt")), format!("{file}\n")).unwrap();
        }
    }
    commit(&bench.root);
    std::fs::write(bench.root.join("folder-7/file-7.txt"), "not committed\n").unwrap();
    let mut client = bench.client();
    let (task, end) =
        write(&mut client, "cat folder-7/file-7.txt; for f in folder-*/file-1.txt; do echo new > $f; done");
    assert_eq!((&end["result"], &end["changes"]["files"]), (&json!("not committed\n"), &json!(folders)), "{end}");
    review_and_apply(&bench, &task);
    assert_eq!(git(&bench.root, &["status", "--porcelain"]).lines().count(), folders + 1);
    assert_eq!(read(&bench.root, "folder-42/file-1.txt"), "new\n");
}

#[test]
fn a_repository_inside_the_tree_is_named_and_left_alone() {
    let bench = bench();
    let nested = bench.root.join("nested");
    std::fs::create_dir_all(&nested).unwrap();
    repository(&nested);
    let mut client = bench.client();
    let (task, end) = write(&mut client, "ls -d nested 2>&1 | grep -c 'No such'; echo more >> a.txt");
    assert_eq!(end["result"], "1\n", "{end}");
    assert_eq!(end["changes"]["not_in_base"], json!(["nested/ (a separate repository)"]), "{end}");
    review_and_apply(&bench, &task);
    assert_eq!((read(&bench.root, "a.txt").as_str(), read(&nested, "a.txt").as_str()), ("a\nmore\n", "a\n"));
}

#[test]
fn a_path_with_spaces_a_colon_and_other_scripts() {
    let bench = Bench::with(WRITING);
    let root = bench.root.join("my project: 日本語");
    std::fs::create_dir_all(&root).unwrap();
    repository(&root);
    std::fs::write(root.join("新しい ファイル.txt"), "未コミット\n").unwrap();
    let mut client = bench.client();
    let more = json!({ "mode": "workspace-write", "working_directory": "my project: 日本語" });
    let task =
        start_with(&mut client, "cat *ファイル.txt; echo 追加 >> '新しい ファイル.txt'; echo more >> a.txt", more);
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("未コミット\n")), "{end}");
    review_and_apply(&bench, &task);
    assert_eq!(read(&root, "新しい ファイル.txt"), "未コミット\n追加\n");
    bench.home.run(&["apply", &task, "--undo"]);
    assert_eq!((read(&root, "新しい ファイル.txt").as_str(), read(&root, "a.txt").as_str()), ("未コミット\n", "a\n"));
}

#[test]
fn a_conversation_that_changed_nothing_goes_on_from_the_tree_as_it_is_now() {
    let bench = bench();
    std::fs::write(bench.root.join("a.txt"), "first\n").unwrap();
    let mut client = bench.client();
    let more = |resume: bool| json!({ "mode": "workspace-write", "session_id": "talk", "resume": resume });
    let task = start_with(&mut client, "cat a.txt", more(false));
    assert_eq!(end_of(&mut client, &task)["result"], "first\n");
    std::fs::write(bench.root.join("a.txt"), "second\n").unwrap();
    let task = start_with(&mut client, "cat a.txt; echo third > a.txt", more(true));
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("second\n")), "{end}");
    review_and_apply(&bench, &task);
    assert_eq!(read(&bench.root, "a.txt"), "third\n");
}
