//! Research on what people really bring: long questions, single words, other scripts and languages, odd files, programs
//! that answer prose, engines of which most are down.

use std::time::{Duration, Instant};

use matsu_testkit::skipped::skipped;
use matsu_testkit::test_site::{Mood, TestSite};
use serde_json::Value;

use crate::home::Home;

const FACT: &str = "Pods on an unreachable node are deleted after five minutes.";

/// A home whose only engine is `local`, with these documents.
fn home_with(documents: &[(&str, Vec<u8>)]) -> (Home, String) {
    let home = Home::sqlite().with_variable("MATSU_RESEARCH_BROWSER", "off");
    let folder = home.path("documents");
    std::fs::create_dir(&folder).unwrap();
    for (name, bytes) in documents {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    let folder = folder.display().to_string();
    (home, folder)
}

fn notes() -> Vec<u8> {
    let more = "The scheduler places work on nodes. A node reports its state every ten seconds.";
    format!("# Notes\n\n{FACT} {more}\n\n- [Another page](other.md)\n\n```\nkubectl delete pod five-minutes --node unreachable\n```\n").into_bytes()
}

fn claims(seen: &Value) -> Vec<&str> {
    seen["claims"].as_array().unwrap().iter().filter_map(|claim| claim["text"].as_str()).collect()
}

#[test]
fn a_question_of_any_length_and_script_is_searched_for() {
    let (home, folder) = home_with(&[("notes.md", notes())]);
    let _daemon = home.serve();
    let long = format!("What happens to pods when a node is unreachable? {}", "I would like to know it. ".repeat(75));
    assert!((1_500..2_000).contains(&long.len()), "{}", long.len());
    for question in [long.as_str(), "unreachable", "Was passiert mit Pods auf einem Node, der unreachable ist?"] {
        let seen = home.run_json(&["research", question, "--dir", &folder]);
        assert!(claims(&seen).contains(&FACT), "{question}: {seen}");
        assert!(
            claims(&seen).iter().all(|claim| !claim.contains("kubectl") && !claim.contains("Another page")),
            "{seen}"
        );
    }
    for question in ["🦆🦆🦆", "zzyzx"] {
        let ran = home.run(&["research", question, "--dir", &folder]).good();
        assert!(ran.out.contains("found no claim"), "{question}: {ran:?}");
    }
    let too_long = home.run(&["research", &"x".repeat(2_001), "--dir", &folder]);
    assert!(too_long.code == 1 && too_long.err.contains("1 to 2000 characters"), "{too_long:?}");
}

#[test]
fn a_folder_without_a_document_that_can_be_read_says_so() {
    for documents in [vec![], vec![("program.txt", b"\x7fELF\x02\x01\0\0\0".to_vec()), ("tool.rs", notes())]] {
        let (home, folder) = home_with(&documents);
        let ran = home.run(&["research", "unreachable nodes", "--dir", &folder]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.out.contains("there is no document that can be read in"), "{ran:?}");
        assert_eq!(ran.out.contains("program.txt: not a text"), !documents.is_empty(), "{ran:?}");
    }
}

#[test]
fn files_that_are_no_text_or_cannot_be_opened_are_named() {
    use std::os::unix::fs::PermissionsExt;
    let program = [b"\x7fELF\x02\x01\0\0\0", FACT.as_bytes()].concat();
    let (home, folder) = home_with(&[
        ("notes.md", notes()),
        ("program.txt", program.clone()),
        ("tool.md", program),
        ("locked.md", notes()),
    ]);
    let locked = std::path::Path::new(&folder).join("locked.md");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let ran = home.run(&["research", "What happens to pods on an unreachable node?", "--dir", &folder]).good();
    assert!(ran.out.contains(FACT) && !ran.out.contains("ELF"), "{ran:?}");
    for name in ["program.txt", "tool.md"] {
        assert!(ran.out.contains(&format!("{name}: not a text")), "{name}: {ran:?}");
    }
    // A superuser may open what no one may.
    let is_named = ran.out.contains("locked.md: it cannot be opened");
    assert!(is_named || std::fs::File::open(&locked).is_ok(), "{ran:?}");
}

#[test]
fn a_file_in_the_place_of_a_folder_is_refused_with_its_folder() {
    let (home, folder) = home_with(&[("notes.md", notes())]);
    let file = format!("{folder}/notes.md");
    let ran = home.run(&["research", "unreachable nodes", "--dir", &file]);
    assert!(ran.code == 1 && ran.err.contains("is a file") && ran.err.contains("--dir "), "{ran:?}");
    assert_eq!(home.run_json(&["tasks"])["items"], serde_json::json!([]), "nothing was created");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_work() {
    let (home, folder) = home_with(&[("notes.md", notes())]);
    let ran = home.run(&["research", "unreachable nodes", "--dir", &folder, "--out", "/nonexist/o.html"]);
    assert!(ran.code == 1 && ran.err.contains("cannot write /nonexist/o.html"), "{ran:?}");
    assert_eq!(home.run_json(&["tasks"])["items"], serde_json::json!([]), "nothing was created");
    let out = home.path("o.html").display().to_string();
    home.run(&["research", "unreachable nodes", "--dir", &folder, "--out", &out]).good();
    assert!(std::fs::read_to_string(&out).unwrap().contains("<!doctype html>"));
}

#[test]
fn files_in_other_encodings_are_found_and_read() {
    let japanese = "ゾウガメの寿命は百年を超えることがあり、飼育された個体では百五十年の記録もある。";
    let german = "Der Müllerweg führt über die große Brücke bis zum Bahnhof der Stadt.";
    // Shift_JIS of the sentence, as an editor of its time writes it.
    let shift_jis = encoding_rs::SHIFT_JIS.encode(japanese).0.into_owned();
    let mut utf16 = vec![0xff, 0xfe];
    let before: String = (0..6_000).map(|n| format!("Entry {n} is of {}.\n\n", n * n)).collect();
    for unit in format!("{before}{FACT}\n").encode_utf16() {
        utf16.extend(unit.to_le_bytes());
    }
    let latin = encoding_rs::WINDOWS_1252.encode(german).0.into_owned();
    let (home, folder) = home_with(&[("ja.txt", shift_jis), ("wide.txt", utf16), ("de.txt", latin)]);
    let _daemon = home.serve();
    for (question, expected) in
        [("ゾウガメの寿命", japanese), ("unreachable node pods", FACT), ("Wohin führt der Müllerweg?", german)]
    {
        let seen = home.run_json(&["research", question, "--dir", &folder]);
        assert!(claims(&seen).contains(&expected), "{question}: {seen}");
    }
}

#[test]
fn a_text_that_repeats_itself_is_one_claim_and_one_that_is_too_large_is_named() {
    let repeated = format!("{FACT}\n\n").repeat(10_000).into_bytes();
    let filler = "Nothing of interest stands in this line of a very long file, which goes on.\n";
    let large = format!("{}{FACT}\n", filler.repeat(17 * 1024 * 1024 / filler.len())).into_bytes();
    let (home, folder) = home_with(&[("repeated.txt", repeated), ("large.txt", large)]);
    let seen = home.run_json(&["research", "unreachable node pods", "--dir", &folder]);
    assert_eq!(claims(&seen).iter().filter(|claim| **claim == FACT).count(), 1, "{seen}");
    let skipped = seen["status"]["searches"][0]["skipped"].to_string();
    assert!(skipped.contains("large.txt") && skipped.contains("larger than 16 MB"), "{seen}");
}

/// Answers whatever it is asked with prose.
const TALKER: &str = r#"
name = "talker"
command = "/bin/sh"
args = ["-c", '''cat > /dev/null; echo 'That is a good question. I would say yes.' ''']
prompt = "stdin"
output = "text"
"#;

#[test]
fn a_program_that_answers_prose_is_a_warning() {
    let (home, folder) = home_with(&[("notes.md", notes())]);
    std::fs::create_dir(home.path("agents")).unwrap();
    std::fs::write(home.path("agents/talker.toml"), TALKER).unwrap();
    std::fs::write(home.path("config.toml"), "[research]\nmodel = \"agent:talker\"\n").unwrap();
    let config = home.path("config.toml").display().to_string();
    let seen = home.run_json(&["research", "unreachable nodes", "--dir", &folder, "--config", &config]);
    assert_eq!(claims(&seen), [""; 0], "{seen}");
    assert!(seen["status"]["warnings"].to_string().contains("could not be used"), "{seen}");
    let task = seen["task_id"].as_str().unwrap();
    let report = home.run(&["export", task, "--config", &config]).good();
    assert!(report.out.contains("could not be used"), "{report:?}");
}

/// Asks for the test of a folder that takes minutes.
const LARGE_FOLDER: &str = "MATSU_TEST_LARGE_FOLDER";

/// One call to research takes this long at most, however large the folder is.
const CALL_MAX: Duration = Duration::from_secs(180);

#[test]
fn a_folder_of_a_hundred_thousand_files_is_searched_in_bounded_time() {
    if std::env::var_os(LARGE_FOLDER).is_none() {
        skipped(&format!("a folder of 100,000 files takes minutes; {LARGE_FOLDER}=1 tries it"));
        return;
    }
    let (home, folder) = home_with(&[("needle.md", notes())]);
    for shelf in 0..100 {
        let place = home.path(&format!("documents/{shelf}"));
        std::fs::create_dir(&place).unwrap();
        for item in 0..1_000 {
            let text =
                format!("# Item {item}\n\nEntry {} is about item {item} of shelf {shelf}.\n", shelf * 1_000 + item);
            std::fs::write(place.join(format!("{item}.md")), text).unwrap();
        }
    }
    let _daemon = home.serve();
    // The first searches say that not all is indexed yet, and what they indexed stays.
    for _ in 0..5 {
        let began = Instant::now();
        let ran = home.run(&["research", "What happens to pods on an unreachable node?", "--dir", &folder, "--json"]);
        assert!(began.elapsed() < CALL_MAX, "{:?}", began.elapsed());
        let seen = ran.json();
        if claims(&seen).contains(&FACT) {
            return;
        }
        assert!(seen["status"]["warnings"].to_string().contains("not indexed yet"), "{seen}");
    }
    panic!("the sentence was not found in five searches");
}

#[test]
fn two_engines_down_are_named_beside_the_slow_one_that_answers() {
    let site = TestSite::start().unwrap();
    site.set_mood("searxng", Mood::Slow(1_500));
    site.set_mood("openalex", Mood::Broken);
    let home = Home::sqlite()
        .with_variable("MATSU_RESEARCH_SEARXNG", site.searxng())
        .with_variable("MATSU_RESEARCH_OPENALEX", site.openalex())
        .with_variable("MATSU_RESEARCH_ALLOW_HOSTS", site.hosts().join(","))
        .with_variable("MATSU_RESEARCH_STEP_MS", "0")
        .with_variable("MATSU_RESEARCH_BROWSER", "off");
    let daemon = home.serve();
    let folder = home.path("gone");
    std::fs::create_dir(&folder).unwrap();
    let wish = serde_json::json!({ "kind": "research", "query": "green tea", "folders": [folder] });
    let task = daemon.api.post("/api/v1/tasks", &wish)["task_id"].as_str().unwrap().to_owned();
    std::fs::remove_dir(&folder).unwrap();
    let task = task.as_str();
    daemon.api.post(&format!("/api/v1/tasks/{task}/searches"), &serde_json::json!({ "queries": ["green tea"] }));
    let status = crate::api::until("the search has ended", Duration::from_secs(60), || {
        let status = home.run_json(&["call", "get_status", &serde_json::json!({ "task_id": task }).to_string()]);
        (status["searches"][0]["status"] != "queued" && status["searches"][0]["status"] != "running").then_some(status)
    });
    let search = &status["searches"][0];
    assert!(search["engines"].to_string().contains("searxng"), "{status}");
    let failed = search["engines_failed"].to_string();
    // A folder that is gone has nothing in it; that is an answer, not a failure of the engine.
    assert!(failed.contains("openalex: status 500") && failed.contains("local: no results"), "{status}");
    assert!(status["warnings"].to_string().contains("engine openalex:"), "{status}");
}
