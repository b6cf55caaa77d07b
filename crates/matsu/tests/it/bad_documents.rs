//! Documents that are made to break their readers: each is an error of its own page within its time. The daemon keeps
//! running, the search ends with what the other documents say, and a restart finds nothing broken.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use matsu_testkit::hostile;
use matsu_testkit::test_site::TestSite;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::api::until;
use crate::home::{Daemon, Home};

/// One document may take 20 s, twice: for the index and for the search. The rest is for a busy machine.
const SEARCH_MAX: Duration = Duration::from_secs(90);

fn folder(home: &Home, name: &str) -> PathBuf {
    let folder = home.path(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Research about long polling in a folder, and how long it took.
fn research(home: &Home, folder: &Path, engine: &str) -> (Value, Duration) {
    let began = Instant::now();
    let folder = folder.to_str().unwrap();
    let ran = home.run(&["research", "long polling", "--dir", folder, "--engine", engine, "--json"]);
    (ran.json(), began.elapsed())
}

#[track_caller]
fn assert_finds_the_rest(answer: &Value) {
    let claims = answer["claims"].as_array().unwrap();
    let is_found = claims.iter().any(|claim| claim["text"].as_str().unwrap().contains("reduces token use"));
    assert!(is_found, "{answer:#}");
}

/// A bad document among good ones, then alone; then again after a restart. `whys` are what its own error
/// may say; without any it need be none.
#[track_caller]
fn is_an_error_of_its_own(name: &str, write: impl Fn(&Path), whys: &[&str]) {
    let home = Home::sqlite();
    let (mixed, alone) = (folder(&home, "mixed"), folder(&home, "alone"));
    for n in 0..3 {
        let text = format!("# Note {n}\n\nLong polling reduces token use compared with plain polling in case {n}.\n");
        fs::write(mixed.join(format!("note-{n}.md")), text).unwrap();
    }
    for folder in [&mixed, &alone] {
        write(&folder.join(name));
    }
    let mut daemon = home.serve();
    for turn in ["first", "after a restart"] {
        let (answer, took) = research(&home, &mixed, "local");
        assert_finds_the_rest(&answer);
        assert!(took < SEARCH_MAX, "{turn}: {took:?}");
        let (answer, took) = research(&home, &alone, "local");
        assert!(took < SEARCH_MAX, "{turn}: {took:?}");
        let search = &answer["status"]["searches"][0];
        if !whys.is_empty() {
            assert_eq!(search["error_code"], "ALL_FETCHES_FAILED", "{turn}: {answer:#}");
            let error = search["error"].as_str().unwrap();
            assert!(whys.iter().any(|why| error.contains(why)), "{turn}: {search:#}");
        }
        assert_eq!(daemon.process.has_ended(), None, "{turn}: {}", daemon.process.printed());
        daemon.process.kill();
        daemon = home.serve();
    }
}

#[test]
fn a_pdf_that_draws_itself_is_one_error() {
    let write = |path: &Path| fs::write(path, hostile::pdf_that_draws_itself()).unwrap();
    is_an_error_of_its_own("long-polling.pdf", write, &["recurses without an end"]);
}

/// A busy machine may not come as far as the memory limit within the time.
#[test]
fn a_pdf_that_inflates_to_three_gibibytes_is_one_error() {
    let bytes = hostile::pdf_that_inflates_to(3 * 1024 * 1024 * 1024);
    let write = |path: &Path| fs::write(path, &bytes).unwrap();
    is_an_error_of_its_own("long-polling.pdf", write, &["more than 512 MiB of memory", "longer than 20 s"]);
}

#[test]
fn a_pdf_inside_a_pdf_is_not_opened() {
    let bytes = hostile::pdf_inside_a_pdf("Long polling is held open.", &hostile::pdf_that_draws_itself());
    let write = |path: &Path| fs::write(path, &bytes).unwrap();
    is_an_error_of_its_own("long-polling.pdf", write, &[]);
}

#[test]
fn html_nested_two_hundred_thousand_deep_is_one_error() {
    let write = |path: &Path| fs::write(path, hostile::html_nested(200_000)).unwrap();
    is_an_error_of_its_own("long-polling.html", write, &["nested more than 20000 deep"]);
}

/// The whole gigabyte, of which the disk holds one block.
#[test]
fn a_line_of_one_gigabyte_is_one_error() {
    let write = |path: &Path| {
        fs::write(path, "long polling ").unwrap();
        File::options().write(true).open(path).unwrap().set_len(1024 * 1024 * 1024).unwrap();
    };
    is_an_error_of_its_own("long-polling.txt", write, &["larger than 16 MB"]);
}

/// Reader processes of a daemon.
fn readers_of(daemon: &Daemon) -> Vec<Pid> {
    let pid = daemon.process.pid();
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let children = fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let arguments = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default();
            if arguments.contains("__read") {
                found.extend(child.parse().ok().and_then(Pid::from_raw));
            }
        }
    }
    found
}

/// A reader that was stopped while it was idle never answers: the page it is given fails after 20 s, the next one goes
/// to another.
#[test]
fn a_reader_that_hangs_costs_one_page() {
    let site = TestSite::start().unwrap();
    let home = Home::sqlite()
        .with_variable("MATSU_RESEARCH_SEARXNG", site.searxng())
        .with_variable("MATSU_RESEARCH_ALLOW_HOSTS", site.hosts().join(","))
        .with_variable("MATSU_RESEARCH_BROWSER", "off")
        .with_variable("MATSU_RESEARCH_STEP_MS", "0");
    let folder = folder(&home, "documents");
    fs::write(folder.join("a.md"), "# A\n\nLong polling reduces token use compared with plain polling.\n").unwrap();
    let mut daemon = home.serve();
    assert_finds_the_rest(&research(&home, &folder, "local").0);
    let warm = readers_of(&daemon);
    assert!(!warm.is_empty(), "a reader is kept warm");
    for reader in &warm {
        kill_process(*reader, Signal::STOP).unwrap();
    }
    let began = Instant::now();
    let answer = home.run_json(&["research", "long polling", "--engine", "searxng"]);
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(20), "the stopped reader was asked: {took:?}");
    assert!(took < SEARCH_MAX, "{took:?}");
    assert!(answer["status"]["searches"][0]["pages_fetched"].as_u64().unwrap() > 0, "{answer:#}");
    assert_eq!(daemon.process.has_ended(), None, "{}", daemon.process.printed());
    until("the stopped readers are gone", SEARCH_MAX, || {
        readers_of(&daemon).iter().all(|reader| !warm.contains(reader)).then_some(())
    });
    let healthy = daemon.api.post("/api/v1/tools/get_status", &json!({ "task_id": answer["task_id"] }));
    assert!(healthy.is_object(), "{healthy}");
}
